"""Every id is a position in its own list, and everything that is cited exists."""

from collections.abc import Iterator

from tensorviz.contracts.arguments import TensorArgument
from tensorviz.contracts.capture import (
    CaptureSnapshot,
    EffectProducer,
    InputProducer,
    OutputProducer,
    Raised,
    StateProducer,
)
from tensorviz.contracts.relations.lookup import PLACES, Capture, Fault, Rule
from tensorviz.contracts.trees import Path


def ids_are_positions(capture: Capture) -> Iterator[Fault]:
    for letter, records in capture.lists.items():
        for index, record in enumerate(records):
            if record.id != f"{letter}{index}":
                yield Fault((*PLACES[letter], index, "id"), "id", f"{record.id} stands where {letter}{index} belongs")


_FIELDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("l", ("file", "caller")),
    ("d", ("location",)),
    ("m", ("definition",)),
    ("p", ("value",)),
    ("c", ("module", "parent", "location", "diagnostic")),
    ("o", ("invocation", "location", "diagnostic")),
    ("v", ("previousVersion", "state")),
    ("x", ("operation", "invocation", "location", "cause")),
)
_PRODUCER_FIELDS = {
    InputProducer: "invocation",
    StateProducer: "state",
    OutputProducer: "operation",
    EffectProducer: "operation",
}


def references_resolve(capture: Capture) -> Iterator[Fault]:
    ids = capture.ids
    for letter, fields in _FIELDS:
        for field in fields:
            for index, record in enumerate(capture.lists[letter]):
                name = getattr(record, field)
                if name is not None and name not in ids:
                    yield _missing((*PLACES[letter], index, field), name)


def producers_exist(capture: Capture) -> Iterator[Fault]:
    for index, value in enumerate(capture.snapshot.values):
        field = _PRODUCER_FIELDS.get(type(value.producer))
        if field is not None and (name := getattr(value.producer, field)) not in capture.ids:
            yield _missing(("values", index, "producer", field), name)


def registrations_exist(capture: Capture) -> Iterator[Fault]:
    for letter in ("m", "p"):
        for index, record in enumerate(capture.lists[letter]):
            for place, registered in enumerate(record.paths):
                if registered.root not in capture.ids:
                    yield _missing((*PLACES[letter], index, "paths", place, "root"), registered.root)


def values_used_exist(capture: Capture) -> Iterator[Fault]:
    ids = capture.ids
    for path, value, _ in capture.uses:
        if value not in ids:
            yield _missing((*path, "value"), value)
    for index, operation in enumerate(capture.snapshot.operations):
        for place, effect in enumerate(operation.effects):
            path = ("operations", index, "effects", place)
            if effect.before not in ids:
                yield _missing((*path, "before"), effect.before)
            if isinstance(effect.after, TensorArgument) and effect.after.value not in ids:
                yield _missing((*path, "after", "value"), effect.after.value)


def summaries_cite_what_exists(capture: Capture) -> Iterator[Fault]:
    for path, name in _citations(capture.snapshot):
        if name is not None and name not in capture.ids:
            yield _missing(path, name)


def _citations(snapshot: CaptureSnapshot) -> Iterator[tuple[Path, str | None]]:
    yield ("execution", "file"), snapshot.execution.file
    if isinstance(snapshot.termination, Raised):
        yield ("termination", "diagnostic"), snapshot.termination.diagnostic
    for index, covered in enumerate(snapshot.coverage.modules):
        yield ("coverage", "modules", index, "module"), covered.module
    for index, reason in enumerate(snapshot.reasons):
        yield ("reasons", index, "subject"), reason.subject


def operators_are_listed_once(capture: Capture) -> Iterator[Fault]:
    known: set[str] = set()
    for index, operator in enumerate(capture.snapshot.operators):
        if operator.target in known:
            yield Fault(("operators", index, "target"), "operator", f"{operator.target} is listed twice")
        known.add(operator.target)
    for index, operation in enumerate(capture.snapshot.operations):
        if operation.target not in known:
            yield Fault(("operations", index, "target"), "reference", f"{operation.target} is not among the operators")


def _missing(path: Path, name: str) -> Fault:
    return Fault(path, "reference", f"there is no {name}")


IDENTITY: tuple[Rule, ...] = (ids_are_positions,)
REFERENCES: tuple[Rule, ...] = (
    references_resolve,
    producers_exist,
    registrations_exist,
    values_used_exist,
    summaries_cite_what_exists,
    operators_are_listed_once,
)
