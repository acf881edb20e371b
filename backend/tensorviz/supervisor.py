"""Plan -> one worker process, watched to its end. Whatever happens, no process, file or descriptor of it is left.

The worker gets a private directory with ``plan.json`` and writes ``journal`` beside it. Both are gone when ``run``
returns or raises. The deadline counts from the launch: starting the interpreter and importing torch are part of it.
"""

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tensorviz.attempt_files import Journal, attempt_directory
from tensorviz.contracts.attempt import ExecutionPlan, Stage
from tensorviz.contracts.base import encode
from tensorviz.contracts.capture import Cancelled, Exited, Killed, TimedOut
from tensorviz.process_tree import MARKER, kill_tree

Ended = Exited | Killed | TimedOut | Cancelled
Progress = Callable[[Stage, int], None]
"""Told the stage and the number of operations begun so far, whenever either changes."""

LOG_BYTES = 256 * 2**10
_TICK = 0.05
_LAST_WORDS = 1.0
_PACKAGE = Path(__file__).resolve().parent
_LAUNCHER = _PACKAGE / "launcher.py"
_WORKER = _PACKAGE.parent / "tensorviz_worker" / "__main__.py"
_OURS = ("TENSORVIZ_", "__PYVENV_LAUNCHER__")


@dataclass(frozen=True)
class WorkerRun:
    """What a worker left: its journal (untrusted, ``ingest`` reads it), how it ended, and what it printed."""

    journal: bytes
    ended: Ended
    log: str


def run(
    plan: ExecutionPlan,
    *,
    on_progress: Progress = lambda stage, operations: None,
    cancel: threading.Event | None = None,
    worker: Path = _WORKER,
) -> WorkerRun:
    """Blocks until the worker and everything it started are gone. Call it from a thread that lives that long."""
    with attempt_directory() as folder:
        path = folder / "plan.json"
        _write_private(path, encode(plan))
        on_progress("starting", 0)
        with (
            contextlib.closing(Journal(folder / "journal", 2 * plan.limits.bytes + 4 * 2**20)) as journal,
            _launched(plan, folder, [str(worker), str(path)]) as process,
        ):
            log = Log(process.stdout.fileno())  # type: ignore[union-attr]
            try:
                ended = _Watch(process, log, journal, on_progress, cancel or threading.Event()).wait(plan.timeout)
            finally:
                left = kill_tree(process.pid, plan.attempt)
            log.read_until_closed(_LAST_WORDS)
            if left:
                log.append(f"\n[tensorviz could not end the processes {left}]\n".encode())
            return WorkerRun(journal.read(), ended or _status(process.wait(_LAST_WORDS)), log.text())


def _write_private(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "wb") as stream:
        stream.write(data)


@contextlib.contextmanager
def _launched(plan: ExecutionPlan, folder: Path, arguments: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [*command_prefix(), plan.python, "-s", "-u", *arguments],
        cwd=plan.workspace,
        env=worker_environment(plan.attempt) | _temporary_folder(folder),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):  # it hangs in the kernel; init will reap it
                process.wait(_LAST_WORDS)
        process.stdout.close()  # type: ignore[union-attr]


def command_prefix() -> list[str]:
    """What runs before the user's interpreter does, and confines it."""
    return [sys.executable, "-I", "-S", str(_LAUNCHER), str(os.getpid())]


def worker_environment(attempt: str) -> dict[str, str]:
    """The caller's environment without what is ours: secrets, and our own folder on the import path."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
    entries = environment.pop("PYTHONPATH", "").split(os.pathsep)
    kept = [entry for entry in entries if entry and os.path.realpath(entry) != str(_PACKAGE.parent)]
    if kept:
        environment["PYTHONPATH"] = os.pathsep.join(kept)
    return environment | {MARKER: attempt}


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Without waiting for it where that can be helped: until then its id cannot become another process's."""
    if not hasattr(os, "waitid"):
        return process.poll() is not None
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _temporary_folder(attempt: Path) -> dict[str, str]:
    """What the program and its libraries leave in their temporary folder goes with the attempt."""
    folder = attempt / "tmp"
    folder.mkdir(mode=0o700)
    return dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(folder))


def _status(code: int) -> Ended:
    if code >= 0:
        return Exited(kind="exited", code=code)
    try:
        return Killed(kind="killed", signal=signal.Signals(-code).name)
    except ValueError:  # a real-time signal has no name
        return Killed(kind="killed", signal=f"SIG{-code}")


class _Watch:
    """Waits for the worker, the deadline or the cancellation, and reads log and journal meanwhile."""

    def __init__(
        self, process: subprocess.Popen[bytes], log: "Log", journal: Journal, tell: Progress, cancel: threading.Event
    ) -> None:
        self._process = process
        self._log = log
        self._journal = journal
        self._tell = tell
        self._cancel = cancel
        self._told: tuple[Stage, int] = ("starting", 0)

    def wait(self, seconds: float) -> Ended | None:
        """None when the worker ended by itself: its status says how."""
        deadline = time.monotonic() + seconds
        with _exit_selector(self._process.pid) as selector:
            selector.register(self._log.descriptor, selectors.EVENT_READ, self._log)
            while True:
                self._look(selector)
                self._progress()
                if _has_ended(self._process):
                    return None
                if self._cancel.is_set():
                    return Cancelled(kind="cancelled")
                if time.monotonic() >= deadline:
                    return TimedOut(kind="timed_out", seconds=seconds)

    def _look(self, selector: selectors.BaseSelector) -> None:
        for key, _ in selector.select(_TICK):
            if key.data is self._log and not self._log.read():
                selector.unregister(key.fileobj)

    def _progress(self) -> None:
        seen = self._journal.progress() or self._told
        if seen != self._told:
            self._told = seen
            self._tell(*seen)


@contextlib.contextmanager
def _exit_selector(pid: int) -> Iterator[selectors.BaseSelector]:
    """A selector that wakes when the process ends, where the kernel offers that; elsewhere the tick finds out."""
    with selectors.DefaultSelector() as selector:
        try:
            descriptor = os.pidfd_open(pid)
        except (AttributeError, OSError):
            yield selector
            return
        try:
            selector.register(descriptor, selectors.EVENT_READ)
            yield selector
        finally:
            os.close(descriptor)


class Log:
    """What arrives on a pipe, drained without ever blocking the writer. Head and tail are kept."""

    def __init__(self, descriptor: int, size: int = LOG_BYTES) -> None:
        os.set_blocking(descriptor, False)
        self.descriptor = descriptor
        self._half = size // 2
        self._head = bytearray()
        self._tail = bytearray()
        self._dropped = 0

    def read(self) -> bool:
        """Takes what is there. False when every writer has closed the pipe."""
        try:
            data = os.read(self.descriptor, 2**16)
        except BlockingIOError:
            return True
        self.append(data)
        return bool(data)

    def read_until_closed(self, seconds: float) -> None:
        """After the death of the writers: what they had written. Bounded, should one have escaped."""
        deadline = time.monotonic() + seconds
        with selectors.DefaultSelector() as selector:
            selector.register(self.descriptor, selectors.EVENT_READ)
            while (left := deadline - time.monotonic()) > 0:
                if selector.select(left) and not self.read():
                    return

    def text(self) -> str:
        gap = f"\n[... {self._dropped:,} bytes not kept ...]\n".encode() if self._dropped else b""
        return bytes(self._head + gap + self._tail).decode("utf-8", "replace")

    def append(self, data: bytes) -> None:
        room = self._half - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        excess = len(self._tail) - self._half
        if excess > 0:
            del self._tail[:excess]
            self._dropped += excess
