"""The budgets of one capture, and the account of what was left out. Everything that is written goes through here."""

from typing import Any, NamedTuple

_RESERVE = 4096
"""For what is not in the journal, or not yet: limits, setup, reasons, the end."""
_PER_RESULT = 2048
_PER_CALL_RESERVE = 512
PER_EVENT = 16
PER_MODULE = 64
PER_DIAGNOSTIC = 64
"""The record of an event, of a module with its coverage, and of an exception have some words more in the capture."""


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

    ``left`` is how many bytes the capture still has room for, with what every open call needs for its end set aside.
    Values find room as long as it is not below ``floor``, so that an event that began has its results.
    """

    floor = -_PER_RESULT

    def __init__(self, journal: Any, limits: Limits) -> None:
        self.limits = limits
        self.left = limits.bytes - journal.size - _RESERVE - _PER_RESULT
        self.stopped: str | None = None
        self.omitted = {"operations": 0, "invocations": 0, "values": 0}
        self.pending: list[str] = []
        self._put = journal.write
        self._gaps: set[str] = set()

    def note(self, line: str) -> None:
        """Keeps a line that belongs to the event whose own line comes next: one write puts an event on record."""
        self.left -= len(line)
        self.pending.append(line)

    def write(self, line: str) -> None:
        """Puts a line on record, after those that were noted."""
        self.left -= len(line)
        pending = self.pending
        if pending:
            pending.append(line)
            line = "\n".join(pending)
            pending.clear()
        self._put(line)

    def open_call(self) -> None:
        self.left -= _PER_CALL_RESERVE

    def close_call(self) -> None:
        self.left += _PER_CALL_RESERVE

    def gap(self, code: str) -> None:
        """Something happened that is not among the facts; the code is the contract's reason."""
        if code not in self._gaps:
            self._gaps.add(code)
            self.write(f'{{"gap":{{"code":"{code}"}}}}')

    def omit(self, kind: str, code: str) -> None:
        """Leaves one event out, for the budget with this reason code.

        The first time, everything stops: later events would cite what is not there.
        """
        if self.stopped is None:
            self.stopped = code
            self.gap(code)
        self.omitted[kind] += 1

    def omit_value(self) -> None:
        """A spent value budget leaves opaque references and stops nothing else."""
        if self.stopped is None and self.left >= self.floor:
            self.gap("value_limit")
            self.omitted["values"] += 1
        else:
            self.omit("values", "byte_limit")

    def fits_reserve(self, text: str) -> bool:
        """Whether a result may be kept after its event began: it has the room reserved for it, or there is more."""
        return len(text) < _PER_CALL_RESERVE or len(text) <= self.left
