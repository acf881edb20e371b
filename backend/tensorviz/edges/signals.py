"""How a command ends early: signals and closed pipes.

SIGTERM and a closed terminal unwind the stack like Ctrl-C does, so that everything is cleaned up."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def ending_on_signals() -> Iterator[None]:
    names = [name for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {name: signal.signal(getattr(signal, name), _unwind) for name in names}
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(getattr(signal, name), handler)


def _unwind(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


def silence(*descriptors: int) -> None:
    """For a reader that has left: whatever else is written goes nowhere, and the flush at exit does not fail."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for descriptor in descriptors or (1, 2):
        os.dup2(nowhere, descriptor)
    os.close(nowhere)
