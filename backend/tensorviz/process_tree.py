"""Ends everything that a worker started: its descendants, its process group, and whatever carries its mark."""

import contextlib
import os
import signal
import time
from collections.abc import Iterable, Iterator

import psutil

MARKER = "TENSORVIZ_ATTEMPT"
"""Environment variable that a worker's processes inherit. A daemon that left the tree and the group still has it."""

_PATIENCE = 5.0
_PAUSE = 0.02


def kill_tree(leader: int, attempt: str, patience: float = _PATIENCE) -> list[int]:
    """Kills until nothing is left, and returns the ids of what could not be killed in time.

    ``leader`` is a child of ours that leads a process group and has not been waited for: dead or alive, its id is its
    own until then.
    """
    deadline = time.monotonic() + patience
    while True:
        _kill_group(leader)
        found = _alive(leader, attempt)
        _kill(found)
        if not found or time.monotonic() >= deadline:
            return [process.pid for process in found]
        psutil.wait_procs(found, timeout=_PAUSE)


def end_marked(attempt: str) -> None:
    """Kills what a dead host's attempt left running."""
    if attempt:
        _kill(marked(attempt))


def marked(attempt: str) -> Iterator[psutil.Process]:
    """Living processes of this user that carry the attempt's mark."""
    for pid in psutil.pids():
        with contextlib.suppress(psutil.Error, OSError):
            process = psutil.Process(pid)
            if process.environ().get(MARKER) == attempt and _lives(process) and pid != os.getpid():
                yield process


def _alive(leader: int, attempt: str) -> list[psutil.Process]:
    return list({process.pid: process for process in (*_descendants(leader), *marked(attempt))}.values())


def _descendants(leader: int) -> Iterator[psutil.Process]:
    with contextlib.suppress(psutil.Error):
        top = psutil.Process(leader)
        yield from (process for process in (top, *top.children(recursive=True)) if _lives(process))


def _lives(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _kill(processes: Iterable[psutil.Process]) -> None:
    for process in processes:
        with contextlib.suppress(psutil.Error):
            process.kill()


def _kill_group(leader: int) -> None:
    with contextlib.suppress(OSError, AttributeError):
        os.killpg(leader, signal.SIGKILL)
