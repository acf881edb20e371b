"""What all tests need of the process that runs them."""

import signal


def pytest_configure() -> None:
    # A shell that starts a job in the background has it ignore interrupts, and so would every process under test.
    signal.signal(signal.SIGINT, signal.default_int_handler)
