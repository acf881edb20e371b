"""What the host remembers: attempts and captures, in memory and bounded. Safe for threads.

A capture is immutable bytes with an index of its lists, so that a page is a slice and nothing is parsed here. The
newest attempt comes first, whatever came in last: a late result never stands before newer state, and an attempt that
has ended never changes again.
"""

import threading
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field

from tensorviz.contracts.attempt import CaptureSummary, RunAttempt
from tensorviz.contracts.messages import (
    AttemptEvent,
    AttemptPage,
    CaptureEvent,
    CapturePage,
    EvictionEvent,
    HostEvent,
    StateEvent,
)

MAX_CAPTURES = 64
MAX_BYTES = 256 * 2**20
MAX_ATTEMPTS = 256
MAX_LOG_BYTES = 16 * 2**20


@dataclass(frozen=True)
class Bounds:
    """The oldest goes when there is more. The newest capture always stays, and so do attempts that still run."""

    captures: int = MAX_CAPTURES
    bytes: int = MAX_BYTES
    attempts: int = MAX_ATTEMPTS
    log_bytes: int = MAX_LOG_BYTES


@dataclass(frozen=True)
class Retained:
    """``sections`` holds, for each list of the document, where its items start, and one past its last item's comma."""

    data: bytes
    summary: CaptureSummary
    sections: dict[str, "array[int]"]

    def page(self, section: str, offset: int, limit: int) -> bytes | None:
        """The page as JSON, its items byte for byte those of the document. None when there is no such list."""
        starts = self.sections.get(section)
        if starts is None:
            return None
        total = len(starts) - 1
        first, last = min(offset, total), min(offset + limit, total)
        items = self.data[starts[first] : starts[last] - 1] if first < last else b""
        return b'{"items":[%b],"offset":%d,"total":%d}' % (items, offset, total)


@dataclass
class _Entry:
    number: int
    attempt: RunAttempt
    log: str | None = None


@dataclass
class Ledger:
    """``publish`` hears of every change, in order, and under the lock: it must return at once."""

    publish: Callable[[HostEvent], None] = lambda event: None
    bounds: Bounds = field(default_factory=Bounds)

    def __post_init__(self) -> None:
        self._lock = threading.RLock()
        self._started = 0
        self._attempts: dict[str, _Entry] = {}
        self._captures: dict[str, tuple[int, Retained]] = {}

    # -- writing

    def begin(self, attempt: RunAttempt) -> None:
        with self._lock:
            self._started += 1
            self._attempts[attempt.id] = _Entry(self._started, attempt)
            self._forget_attempts()
            self.publish(AttemptEvent(kind="attempt", attempt=attempt))

    def update(self, attempt: RunAttempt, log: str | None = None) -> None:
        """Ignored when that attempt has ended already."""
        with self._lock:
            entry = self._attempts.get(attempt.id)
            if entry is None or entry.attempt.outcome is not None:
                return
            entry.attempt = attempt
            entry.log = log if log is not None else entry.log
            self.publish(AttemptEvent(kind="attempt", attempt=attempt))
            self._forget_attempts()

    def retain(self, capture: Retained) -> None:
        """Keeps the capture in the place of its attempt among the others; then the oldest leave, if they must."""
        with self._lock:
            entry = self._attempts.get(capture.summary.attempt)
            self._captures[capture.summary.id] = (entry.number if entry else 0, capture)
            self.publish(CaptureEvent(kind="capture", capture=capture.summary))
            self._evict()

    # -- reading

    def attempt(self, name: str) -> RunAttempt | None:
        with self._lock:
            entry = self._attempts.get(name)
            return entry.attempt if entry else None

    def log(self, name: str) -> str | None:
        """What the worker printed; None when there is no such attempt or it has not ended."""
        with self._lock:
            entry = self._attempts.get(name)
            return entry.log if entry else None

    def capture(self, name: str) -> Retained | None:
        with self._lock:
            found = self._captures.get(name)
            return found[1] if found else None

    def attempts(self, offset: int, limit: int) -> AttemptPage:
        with self._lock:
            items = self._newest_attempts()
        return AttemptPage(items=tuple(items[offset : offset + limit]), offset=offset, total=len(items))

    def captures(self, offset: int, limit: int) -> CapturePage:
        with self._lock:
            items = self._newest_captures()
        return CapturePage(items=tuple(items[offset : offset + limit]), offset=offset, total=len(items))

    def state(self) -> StateEvent:
        with self._lock:
            return StateEvent(
                kind="state", attempts=tuple(self._newest_attempts()), captures=tuple(self._newest_captures())
            )

    def locked(self) -> threading.RLock:
        """For whoever must read the state and start to listen without missing a change in between."""
        return self._lock

    # -- bounds

    def _newest_attempts(self) -> list[RunAttempt]:
        entries = sorted(self._attempts.values(), key=lambda entry: -entry.number)
        return [entry.attempt for entry in entries]

    def _newest_captures(self) -> list[CaptureSummary]:
        found = sorted(self._captures.values(), key=lambda pair: -pair[0])
        return [capture.summary for _, capture in found]

    def _evict(self) -> None:
        oldest_first = sorted(self._captures.items(), key=lambda item: item[1][0])
        size = sum(len(capture.data) for _, (_, capture) in oldest_first)
        for name, (_, capture) in oldest_first[:-1]:
            if len(self._captures) <= self.bounds.captures and size <= self.bounds.bytes:
                return
            del self._captures[name]
            size -= len(capture.data)
            self.publish(EvictionEvent(kind="eviction", capture=name))

    def _forget_attempts(self) -> None:
        ended = [entry for entry in self._attempts.values() if entry.attempt.outcome is not None]
        for entry in ended[: max(0, len(self._attempts) - self.bounds.attempts)]:
            del self._attempts[entry.attempt.id]
        logged = [entry for entry in self._attempts.values() if entry.log]
        size = sum(len(entry.log or "") for entry in logged)
        for entry in logged[:-1]:
            if size <= self.bounds.log_bytes:
                return
            size -= len(entry.log or "")
            entry.log = "[this log made room for newer ones]\n"


def index(data: bytes, document: dict[str, object], encode: Callable[[object], bytes]) -> dict[str, "array[int]"]:
    """Where the items of each top-level list start in ``data``, which ``encode`` made of ``document``.

    Raises ValueError when it did not: then an offset would point anywhere.
    """
    position = 1
    found: dict[str, array[int]] = {}
    for key, value in document.items():
        position += len(encode(key)) + 1
        if isinstance(value, list):
            found[key] = starts = array("Q", [position + 1])
            for item in value:
                starts.append(starts[-1] + len(encode(item)) + 1)
            position = starts[-1] if value else position + 2
        else:
            position += len(encode(value))
        position += 1
    if position != len(data) and document:
        raise ValueError("the document is not in its canonical encoding")
    return found
