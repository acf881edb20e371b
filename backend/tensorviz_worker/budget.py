"""The budgets of one capture, and the account of what was left out. Everything that is written goes through here."""

from typing import Any, NamedTuple

_RESERVE = 64 * 1024
_PER_CALL_RESERVE = 512
_PER_EVENT = 16


class Limits(NamedTuple):
    """The names are the contract's."""

    bytes: int = 16 * 2**20
    operations: int = 50_000
    invocations: int = 20_000
    values: int = 200_000
    argumentDepth: int = 32
    argumentItems: int = 10_000
    text: int = 4096
    parameterReads: int = 100_000


class Budget:
    """``stopped`` is the reason code of the budget that ended the recording, or None while it goes on.

    ``events`` and ``open_calls`` are kept by the recorder: an event's record has some words more in the capture than
    its lines in the journal, and every open call still needs room for its end.
    """

    def __init__(self, journal: Any, limits: Limits) -> None:
        self.write = journal.write
        self.limits = limits
        self.stopped: str | None = None
        self.omitted = {"operations": 0, "invocations": 0, "values": 0}
        self.events = 0
        self.open_calls = 0
        self._journal = journal
        self._gaps: set[str] = set()

    def gap(self, code: str) -> None:
        """Something happened that is not among the facts; the code is the contract's reason."""
        if code not in self._gaps:
            self._gaps.add(code)
            self.write(f'{{"gap":{{"code":"{code}"}}}}')

    def omits(self, kind: str, code: str, used: int, limit: int) -> bool:
        """Whether one more event is left out, and counts it then.

        The first time that a budget is spent, everything stops: later events would cite what is not there.
        """
        if self.stopped is None and used >= limit:
            self._stop(code)
        return self.omits_bytes(kind, 0)

    def omits_bytes(self, kind: str, size: int) -> bool:
        if self.stopped is None and not self._has_room(size + _PER_CALL_RESERVE * self.open_calls):
            self._stop("byte_limit")
        if self.stopped is None:
            return False
        self.omitted[kind] += 1
        return True

    def omits_value(self, used: int) -> bool:
        """A spent value budget leaves opaque references and stops nothing else."""
        if self.stopped is None and used < self.limits.values:
            return False
        if self.stopped is None:
            self.gap("value_limit")
        self.omitted["values"] += 1
        return True

    def fits_reserve(self, text: str) -> bool:
        """Whether a result may be kept after its event began: it has the room reserved for it, or there is more."""
        return len(text) < _PER_CALL_RESERVE or self._has_room(len(text))

    def _has_room(self, size: int) -> bool:
        return self._journal.size + _PER_EVENT * self.events + size + _RESERVE <= self.limits.bytes

    def _stop(self, code: str) -> None:
        self.stopped = code
        self.gap(code)
