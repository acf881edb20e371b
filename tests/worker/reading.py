"""A capture as lines: the language in which these tests speak of what was recorded."""

from collections.abc import Iterator

from tensorviz.contracts.arguments import (
    Argument,
    DataclassArgument,
    DictArgument,
    NamedTupleArgument,
    OpaqueArgument,
    SequenceArgument,
    SliceArgument,
    TensorArgument,
)
from tensorviz.contracts.capture import CaptureSnapshot, Invocation, Operation, Value


def leaves(tree: Argument | None) -> Iterator[Argument]:
    """The leaves of an argument tree, in order; dict keys are not leaves."""
    match tree:
        case None:
            return
        case SequenceArgument() | NamedTupleArgument():
            for item in tree.items:
                yield from leaves(item)
        case DictArgument():
            for entry in tree.entries:
                yield from leaves(entry.value)
        case DataclassArgument():
            for field in tree.fields:
                yield from leaves(field.value)
        case SliceArgument():
            for item in (tree.start, tree.stop, tree.step):
                yield from leaves(item)
        case _:
            yield tree


def value(snapshot: CaptureSnapshot, identifier: str) -> Value:
    return snapshot.values[int(identifier[1:])]


def values(snapshot: CaptureSnapshot, *trees: Argument | None) -> list[Value]:
    """The tensors among the leaves of the trees, in order."""
    found = (leaf for tree in trees for leaf in leaves(tree))
    return [value(snapshot, leaf.value) for leaf in found if isinstance(leaf, TensorArgument)]


def fact(tensor: Value) -> str:
    """``float32[2, 3]``"""
    return f"{tensor.dtype.removeprefix('torch.')}{list(tensor.shape)}"


def facts(snapshot: CaptureSnapshot, *trees: Argument | None) -> str:
    """The tensors of the trees as text; what the recorder could not read shows as ``<type>``."""
    words = []
    for tree in trees:
        for leaf in leaves(tree):
            if isinstance(leaf, TensorArgument):
                words.append(fact(value(snapshot, leaf.value)))
            elif isinstance(leaf, OpaqueArgument):
                words.append(f"<{leaf.type}>")
    return ", ".join(words)


def line(snapshot: CaptureSnapshot, operation: Operation) -> str:
    """``aten.mm.default(float32[2, 3], float32[3, 4]) -> float32[2, 4]``, or ``-> !RuntimeError``, or ``-> ?``."""
    operands = facts(snapshot, *operation.args, *(item.value for item in operation.kwargs))
    result = {"completed": facts(snapshot, operation.output), "in_flight": "?"}.get(operation.status)
    if operation.status == "failed":
        result = "!" + snapshot.diagnostics[int(operation.diagnostic[1:])].exception if operation.diagnostic else "!"
    return f"{operation.target}({operands}) -> {result}"


def lines(snapshot: CaptureSnapshot) -> list[str]:
    return [line(snapshot, operation) for operation in snapshot.operations]


def path(snapshot: CaptureSnapshot, invocation: Invocation | str | None) -> str | None:
    """The first registered path of the module that a call belongs to; None where there is none."""
    if isinstance(invocation, str):
        invocation = snapshot.invocations[int(invocation[1:])]
    if invocation is None:
        return None
    paths = snapshot.modules[int(invocation.module[1:])].paths
    return paths[0].path if paths else None


def place(snapshot: CaptureSnapshot, location: str | None) -> str | None:
    """``net.py:12``"""
    if location is None:
        return None
    found = snapshot.locations[int(location[1:])]
    return f"{snapshot.source.files[int(found.file[1:])].path.rpartition('/')[2]}:{found.line}"


def last_event(snapshot: CaptureSnapshot) -> Operation | Invocation:
    """The operation or call that began last."""
    events = [(operation.sequence, operation) for operation in snapshot.operations]
    events += [(call.entry, call) for call in snapshot.invocations]
    return max(events, key=lambda event: event[0])[1]
