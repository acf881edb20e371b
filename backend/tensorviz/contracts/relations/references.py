"""Every id is a position in its own list, and everything that is cited exists."""

from collections.abc import Iterator

from tensorviz.contracts.arguments import TensorArgument
from tensorviz.contracts.capture import EffectProducer, InputProducer, OutputProducer, Raised, StateProducer
from tensorviz.contracts.relations.index import PLACES, Capture, Fault, Rule
from tensorviz.contracts.trees import Path


def ids_are_positions(capture: Capture) -> Iterator[Fault]:
    for letter, records in capture.lists.items():
        for index, record in enumerate(records):
            if record.id != f"{letter}{index}":
                yield Fault((*PLACES[letter], index, "id"), "id", f"{record.id} stands where {letter}{index} belongs")


_FIELDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("l", ("file",)),
    ("d", ("location",)),
    ("m", ("definition",)),
    ("p", ("value",)),
    ("c", ("module", "parent", "location", "diagnostic")),
    ("o", ("invocation", "location", "diagnostic")),
    ("v", ("previousVersion", "state")),
    ("x", ("operation", "invocation", "location")),
)
_PRODUCER_FIELDS = {
    InputProducer: "invocation",
    StateProducer: "state",
    OutputProducer: "operation",
    EffectProducer: "operation",
}


def references_resolve(capture: Capture) -> Iterator[Fault]:
    for letter, fields in _FIELDS:
        for field in fields:
            for index, record in enumerate(capture.lists[letter]):
                yield from _missing(capture, (*PLACES[letter], index, field), getattr(record, field))


def producers_exist(capture: Capture) -> Iterator[Fault]:
    for index, value in enumerate(capture.snapshot.values):
        field = _PRODUCER_FIELDS.get(type(value.producer))
        if field is not None:
            yield from _missing(capture, ("values", index, "producer", field), getattr(value.producer, field))


def registrations_exist(capture: Capture) -> Iterator[Fault]:
    for letter in ("m", "p"):
        for index, record in enumerate(capture.lists[letter]):
            for place, registered in enumerate(record.paths):
                yield from _missing(capture, (*PLACES[letter], index, "paths", place, "root"), registered.root)


def values_used_exist(capture: Capture) -> Iterator[Fault]:
    for use in capture.uses:
        yield from _missing(capture, (*use.path, "value"), use.value)
    for index, operation in enumerate(capture.snapshot.operations):
        for place, effect in enumerate(operation.effects):
            path = ("operations", index, "effects", place)
            yield from _missing(capture, (*path, "before"), effect.before)
            if isinstance(effect.after, TensorArgument):
                yield from _missing(capture, (*path, "after", "value"), effect.after.value)


def summaries_cite_what_exists(capture: Capture) -> Iterator[Fault]:
    snapshot = capture.snapshot
    yield from _missing(capture, ("execution", "file"), snapshot.execution.file)
    if isinstance(snapshot.termination, Raised):
        yield from _missing(capture, ("termination", "diagnostic"), snapshot.termination.diagnostic)
    for index, covered in enumerate(snapshot.coverage.modules):
        yield from _missing(capture, ("coverage", "modules", index, "module"), covered.module)
    for index, reason in enumerate(snapshot.reasons):
        yield from _missing(capture, ("reasons", index, "subject"), reason.subject)


def operators_are_listed_once(capture: Capture) -> Iterator[Fault]:
    known: set[str] = set()
    for index, operator in enumerate(capture.snapshot.operators):
        if operator.target in known:
            yield Fault(("operators", index, "target"), "operator", f"{operator.target} is listed twice")
        known.add(operator.target)
    for index, operation in enumerate(capture.snapshot.operations):
        if operation.target not in known:
            yield Fault(("operations", index, "target"), "reference", f"{operation.target} is not among the operators")


def _missing(capture: Capture, path: Path, name: str | None) -> Iterator[Fault]:
    if name is not None and name not in capture.ids:
        yield Fault(path, "reference", f"there is no {name}")


IDENTITY: tuple[Rule, ...] = (ids_are_positions,)
REFERENCES: tuple[Rule, ...] = (
    references_resolve,
    producers_exist,
    registrations_exist,
    values_used_exist,
    summaries_cite_what_exists,
    operators_are_listed_once,
)
