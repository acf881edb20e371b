"""What must hold between the records of a capture. ``packages/contracts/src/relations.ts`` is the twin of this file."""

from collections.abc import Iterable
from typing import NamedTuple

from tensorviz.contracts.capture import CaptureSnapshot

Step = int | str
Path = tuple[Step, ...]
MAX_FAULTS = 50


class Fault(NamedTuple):
    """One place where a document is wrong. ``code`` is stable; ``message`` is for people."""

    path: Path
    code: str
    message: str


def in_order(faults: Iterable[Fault]) -> list[Fault]:
    """By path, where a number comes before a name, then by code."""
    return sorted(faults, key=lambda fault: ([(isinstance(step, str), step) for step in fault.path], fault.code))


def check(capture: CaptureSnapshot, size: int | None = None) -> list[Fault]:
    """The faults of a structurally valid capture; none for a valid one. ``size`` is that of its encoding, if known."""
    return []
