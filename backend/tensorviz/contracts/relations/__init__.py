"""What must hold between the records of a capture.

``check`` runs a table of small rules over a structurally valid capture. Rules come in phases, and a later phase may
rely on what an earlier one established. ``packages/contracts/src/relations`` is the twin of this folder: same files,
rules, codes and paths, in the same order.
"""

from collections.abc import Iterable
from itertools import islice

from tensorviz.contracts.capture import CaptureSnapshot
from tensorviz.contracts.relations import arguments, coverage, events, failures, locations, references, values
from tensorviz.contracts.relations.lookup import Capture, Fault, Rule

__all__ = ["MAX_FAULTS", "Fault", "check", "in_order"]

MAX_FAULTS = 50
PHASES: tuple[tuple[Rule, ...], ...] = (
    references.IDENTITY,
    references.REFERENCES,
    (*locations.RULES, *events.RULES, *failures.RULES, *values.RULES, *arguments.RULES, *coverage.RULES),
)


def check(snapshot: CaptureSnapshot, size: int | None = None) -> list[Fault]:
    """The faults of a structurally valid capture, at most 50 of them. ``size`` is that of its encoding."""
    capture = Capture(snapshot, size)
    for phase in PHASES:
        found = list(islice((fault for rule in phase for fault in rule(capture)), MAX_FAULTS))
        if found:
            return in_order(found)
    return []


def in_order(faults: Iterable[Fault]) -> list[Fault]:
    """By path, where a number comes before a name, then by code."""
    return sorted(faults, key=lambda fault: ([(isinstance(step, str), step) for step in fault.path], fault.code))
