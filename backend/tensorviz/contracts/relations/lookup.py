"""What the rules share: faults, and a capture with what several of them look up."""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from tensorviz.contracts.arguments import Argument, NamedTupleArgument, OpaqueArgument, TensorArgument
from tensorviz.contracts.capture import (
    CaptureSnapshot,
    EffectProducer,
    ExternalProducer,
    InputProducer,
    Invocation,
    Operation,
    OutputProducer,
    Value,
)
from tensorviz.contracts.trees import CONTAINERS, Path, is_counted, walk

MAX_NESTING = 64
"""JSON levels of an encoded capture, the outermost object being the first."""
NEVER = 2**53
_FIRST = -1

PLACES: dict[str, Path] = {
    "f": ("source", "files"),
    "l": ("locations",),
    "d": ("definitions",),
    "m": ("modules",),
    "p": ("state",),
    "c": ("invocations",),
    "o": ("operations",),
    "v": ("values",),
    "x": ("diagnostics",),
}


Use = tuple[Path, str, int]
"""A tensor node: where it stands, its value, and the sequence number before which that value was made."""
_CITED = frozenset((TensorArgument, OpaqueArgument)) | CONTAINERS


class Fault(NamedTuple):
    """One place where a document is wrong. ``code`` is stable; ``message`` is for people."""

    path: Path
    code: str
    message: str


class Container(NamedTuple):
    """The measures of a tree whose root is a container: items, levels of containers, levels of JSON."""

    path: Path
    items: int
    depth: int
    levels: int


class Capture:
    """A capture with what several rules look up."""

    def __init__(self, snapshot: CaptureSnapshot, size: int | None) -> None:
        self.snapshot = snapshot
        self.size = size
        self.lists = _lists(snapshot)
        self.ids = {record.id for records in self.lists.values() for record in records}
        self.uses: list[Use] = []
        self.containers: list[Container] = []
        self.named_tuples: list[tuple[Path, NamedTupleArgument]] = []
        self.has_opaque = False
        self._collect()

    def at(self, name: str) -> Any:
        """The record of this id. References have been checked."""
        return self.lists[name[0]][int(name[1:])]

    @cached_property
    def made(self) -> dict[str, int]:
        """When each value came to be: the sequence number of its producer. References have been checked."""
        return {value.id: self._made(value) for value in self.snapshot.values}

    def _made(self, value: Value) -> int:
        producer = value.producer
        if isinstance(producer, (OutputProducer, EffectProducer)):
            return self.at(producer.operation).sequence
        if isinstance(producer, InputProducer):
            return self.at(producer.invocation).entry
        return _FIRST

    def _collect(self) -> None:
        for index, operation in enumerate(self.snapshot.operations):
            before = operation.sequence
            self._collect_arguments(operation, ("operations", index), before)
            if type(operation.output) in _CITED:
                self._sort_out(("operations", index, "output"), operation.output, before + 1)
        for index, call in enumerate(self.snapshot.invocations):
            self._collect_arguments(call, ("invocations", index), call.entry + 1)
            if type(call.output) in _CITED:
                before = NEVER if call.exit is None else call.exit
                self._sort_out(("invocations", index, "output"), call.output, before)

    def _collect_arguments(self, record: Operation | Invocation, path: Path, before: int) -> None:
        for index, node in enumerate(record.args):
            if type(node) in _CITED:
                self._sort_out((*path, "args", index), node, before)
        for index, named in enumerate(record.kwargs):
            if type(named.value) in _CITED:
                self._sort_out((*path, "kwargs", index, "value"), named.value, before)

    def _sort_out(self, path: Path, node: Any, before: int) -> None:
        kind = type(node)
        if kind is TensorArgument:
            self.uses.append((path, node.value, before))
        elif kind is OpaqueArgument:
            self.has_opaque = True
        else:
            self._measure(path, node, before)

    def _measure(self, path: Path, root: Argument, before: int) -> None:
        items = depth = levels = 0
        for at, node, around in walk(root, path):
            items += is_counted(node)
            if type(node) not in CONTAINERS:
                levels = max(levels, len(at) + 1)
                if type(node) in _CITED:
                    self._sort_out(at, node, before)
                continue
            depth = max(depth, around + 1)
            levels = max(levels, len(at) + 2)
            if isinstance(node, NamedTupleArgument):
                self.named_tuples.append((at, node))
        self.containers.append(Container(path, items, depth, levels))


Rule = Callable[[Capture], Iterable[Fault]]


def is_unobserved(producer: Any) -> bool:
    return isinstance(producer, ExternalProducer) and producer.reason == "unobserved_write"


def _lists(snapshot: CaptureSnapshot) -> dict[str, Sequence[Any]]:
    return {
        "f": snapshot.source.files,
        "l": snapshot.locations,
        "d": snapshot.definitions,
        "m": snapshot.modules,
        "p": snapshot.state,
        "c": snapshot.invocations,
        "o": snapshot.operations,
        "v": snapshot.values,
        "x": snapshot.diagnostics,
    }
