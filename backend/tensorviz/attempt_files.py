"""The private directory of one attempt, and the journal that the worker writes into it."""

import contextlib
import json
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import get_args

from tensorviz.contracts.attempt import Stage

_PREFIX = "tensorviz-attempt-"
_YOUNG = 5.0
_CHUNK = 2**18
_STAGES: dict[bytes, Stage] = {f'{{"stage":"{stage}"}}'.encode(): stage for stage in get_args(Stage)}


@contextlib.contextmanager
def attempt_directory() -> Iterator[Path]:
    """A new directory that only this user can enter, locked while it is in use and removed afterwards."""
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    try:
        with _locked(folder):
            yield folder
    finally:
        _remove(folder)


def sweep(end: Callable[[str], object]) -> None:
    """Removes what a host that was killed left behind: directories of this user that nobody holds the lock of.

    ``end`` is told the attempt that such a directory was for, so that the processes which carry its mark go first.
    """
    for folder in Path(tempfile.gettempdir()).glob(_PREFIX + "*"):
        with contextlib.suppress(OSError):
            facts = folder.lstat()
            if stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.geteuid() and time.time() - facts.st_mtime > _YOUNG:
                with _locked(folder):
                    end(_attempt_of(folder))
                    _remove(folder)


def _attempt_of(folder: Path) -> str:
    """The name that the plan gives; a mark that nobody carries when the program wrote over it."""
    try:
        name = json.loads((folder / "plan.json").read_bytes()[:_CHUNK])["attempt"]
    except (OSError, ValueError, TypeError, KeyError):
        return ""
    return name if isinstance(name, str) else ""


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """The kernel drops the lock with our last descriptor, so a dead host holds none."""
    import fcntl

    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def _remove(folder: Path) -> None:
    """Also when the worker took away its own permissions below."""
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        for root, _, _ in os.walk(folder):
            for entry in os.scandir(root):
                if entry.is_dir(follow_symlinks=False):
                    os.chmod(entry.path, 0o700)
        shutil.rmtree(folder, ignore_errors=True)


class Journal:
    """Follows the file while it grows. Its end may be zeros that have not been written yet."""

    def __init__(self, path: Path, limit: int) -> None:
        self._path = path
        self._limit = limit
        self._descriptor: int | None = None
        self._seen = 0
        self._stage: Stage | None = None
        self._operations = 0

    def progress(self) -> tuple[Stage, int] | None:
        """The stage and the number of operations begun, as far as whole lines tell. None before the first stage."""
        while self._take(self._from(self._seen, _CHUNK)):
            pass
        return None if self._stage is None else (self._stage, self._operations)

    def read(self) -> bytes:
        """All of it up to the zeros, and never more than the limit."""
        parts: list[bytes] = []
        size = 0
        while size < self._limit and (chunk := self._from(size, min(_CHUNK, self._limit - size))):
            parts.append(chunk)
            size += len(chunk)
            if chunk.endswith(b"\0"):
                break
        return b"".join(parts).rstrip(b"\0")

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _take(self, data: bytes) -> bool:
        """Whether there may be more to read."""
        whole = data[: data.rfind(b"\n", 0, _end(data)) + 1]
        self._seen += len(whole)
        for line in whole.splitlines():
            if line.startswith(b'{"begin":'):
                self._operations += 1
            elif line in _STAGES:
                self._stage = _STAGES[line]
        return bool(whole) and self._seen < self._limit

    def _from(self, offset: int, size: int) -> bytes:
        if self._descriptor is None:
            self._descriptor = self._open()
        return b"" if self._descriptor is None else os.pread(self._descriptor, size, offset)

    def _open(self) -> int | None:
        """None unless it is a plain file: the worker's code owns the directory and may have put anything there."""
        try:
            descriptor = os.open(self._path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return None
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return descriptor
        os.close(descriptor)
        return None


def _end(data: bytes) -> int:
    zero = data.find(b"\0")
    return len(data) if zero < 0 else zero
