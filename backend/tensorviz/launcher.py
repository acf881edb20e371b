"""The command prefix of every worker: confines itself, then becomes the user's interpreter.

Run by path with our interpreter, isolated, so that nothing of the user's has been executed yet:

    python -I -S launcher.py HOST_PID COMMAND...

What is set here survives the exec: the worker dies with the host and leaves no core file. The sandbox belongs here too.
"""

import contextlib
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main(host: int, command: "list[str]") -> None:
    _die_with(host)
    _write_no_core_file()
    try:
        os.execv(command[0], command)
    except OSError as error:
        sys.exit(f"tensorviz: {command[0]} does not start: {error.strerror}")


def _die_with(host: int) -> None:
    """Linux only. The signal comes when the thread that spawned us ends: it waits for us, so that is the host's end."""
    if not sys.platform.startswith("linux"):
        return
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != host:  # the host ended before the call above
        os._exit(1)


def _write_no_core_file() -> None:
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
