"""Registration, the common order of events, containment, and what each status implies."""

from collections.abc import Iterator
from typing import Any

from tensorviz.contracts.capture import Invocation, Raised, Returned
from tensorviz.contracts.relations.lookup import NEVER, PLACES, Capture, Fault, Rule
from tensorviz.contracts.trees import Path


def states_are_registered(capture: Capture) -> Iterator[Fault]:
    for index, state in enumerate(capture.snapshot.state):
        if not state.paths:
            yield Fault(("state", index, "paths"), "path", "is registered nowhere")


def roots_own_the_empty_path(capture: Capture) -> Iterator[Fault]:
    owners = {path.root: module.id for module in capture.snapshot.modules for path in module.paths if path.path == ""}
    for letter in ("m", "p"):
        for index, record in enumerate(capture.lists[letter]):
            for place, registered in enumerate(record.paths):
                if owners.get(registered.root) != registered.root:
                    path = (*PLACES[letter], index, "paths", place, "root")
                    yield Fault(path, "path", f"the empty path below {registered.root} is not its own")


def paths_are_registered_once(capture: Capture) -> Iterator[Fault]:
    for letter in ("m", "p"):
        taken: set[tuple[str, str]] = set()
        for index, record in enumerate(capture.lists[letter]):
            for place, registered in enumerate(record.paths):
                key = (registered.root, registered.path)
                if key in taken:
                    yield Fault((*PLACES[letter], index, "paths", place), "path", "is registered already")
                taken.add(key)


def events_are_in_order(capture: Capture) -> Iterator[Fault]:
    for letter, field in (("o", "sequence"), ("c", "entry")):
        last = -1
        for index, record in enumerate(capture.lists[letter]):
            number = getattr(record, field)
            if number <= last:
                yield Fault((*PLACES[letter], index, field), "order", f"{number} does not follow {last}")
            last = number


def events_have_their_own_numbers(capture: Capture) -> Iterator[Fault]:
    taken = {operation.sequence for operation in capture.snapshot.operations}
    for index, call in enumerate(capture.snapshot.invocations):
        for field, number in (("entry", call.entry), ("exit", call.exit)):
            if number in taken:
                yield Fault(("invocations", index, field), "order", f"{number} numbers another event too")
            elif number is not None:
                taken.add(number)
        if call.exit is not None and call.exit < call.entry:
            yield Fault(("invocations", index, "exit"), "order", "is before the entry")


def calls_contain_their_events(capture: Capture) -> Iterator[Fault]:
    for index, call in enumerate(capture.snapshot.invocations):
        if call.parent is not None:
            parent = capture.at(call.parent)
            if not _holds(parent, call.entry, NEVER if call.exit is None else call.exit):
                yield Fault(("invocations", index, "parent"), "containment", f"is not open during all of {call.id}")
    for index, operation in enumerate(capture.snapshot.operations):
        if operation.invocation is not None:
            call = capture.at(operation.invocation)
            if not _holds(call, operation.sequence, operation.sequence):
                yield Fault(("operations", index, "invocation"), "containment", f"is not open at {operation.id}")


def _holds(call: Invocation, first: int, last: int) -> bool:
    return call.entry < first and (call.exit is None or last < call.exit)


def operations_match_their_status(capture: Capture) -> Iterator[Fault]:
    for index, operation in enumerate(capture.snapshot.operations):
        path, status = ("operations", index), operation.status
        yield from _status(path, status, "output", operation.output, present=status == "completed")
        yield from _status(path, status, "diagnostic", operation.diagnostic, present=status == "failed")
        if status == "in_flight" and operation.effects:
            yield Fault((*path, "effects"), "status", "an operation in flight has no effects yet")


def calls_match_their_status(capture: Capture) -> Iterator[Fault]:
    for index, call in enumerate(capture.snapshot.invocations):
        path, status = ("invocations", index), call.status
        yield from _status(path, status, "output", call.output, present=status == "completed")
        yield from _status(path, status, "diagnostic", call.diagnostic, present=status in ("failed", "stopped"))
        yield from _status(path, status, "exit", call.exit, present=status != "in_flight")


def only_an_interrupted_run_is_in_flight(capture: Capture) -> Iterator[Fault]:
    snapshot = capture.snapshot
    ended = isinstance(snapshot.termination, (Returned, Raised))
    broken = any(reason.code == "instrumentation_error" for reason in snapshot.reasons)
    for letter in ("c", "o"):
        for index, record in enumerate(capture.lists[letter]):
            if record.status == "in_flight" and ended and not broken:
                yield Fault((*PLACES[letter], index, "status"), "status", "nothing is in flight after the run ended")
    for index, operation in enumerate(snapshot.operations[:-1]):
        if operation.status == "in_flight":
            yield Fault(("operations", index, "status"), "status", "only the last operation can be in flight")


def _status(path: Path, status: str, field: str, value: Any, *, present: bool) -> Iterator[Fault]:
    if (value is not None) != present:
        yield Fault((*path, field), "status", f"{status}, yet {field} is {'missing' if present else 'there'}")


RULES: tuple[Rule, ...] = (
    states_are_registered,
    roots_own_the_empty_path,
    paths_are_registered_once,
    events_are_in_order,
    events_have_their_own_numbers,
    calls_contain_their_events,
    operations_match_their_status,
    calls_match_their_status,
    only_an_interrupted_run_is_in_flight,
)
