"""Argument trees and the paths that address their nodes. Twin: ``packages/contracts/src/trees.ts``."""

from collections.abc import Iterator
from typing import Any

from tensorviz.contracts.arguments import (
    Argument,
    DataclassArgument,
    DictArgument,
    Entry,
    NamedArgument,
    NamedTupleArgument,
    OpaqueArgument,
    SequenceArgument,
    SliceArgument,
)
from tensorviz.contracts.capture import Invocation, Operation

Step = int | str
Path = tuple[Step, ...]

CONTAINERS = frozenset((SequenceArgument, NamedTupleArgument, DictArgument, DataclassArgument, SliceArgument))
_STEPS: dict[type, tuple[str, ...]] = {
    Operation: ("args", "kwargs"),
    Invocation: ("args", "kwargs"),
    SequenceArgument: ("items",),
    NamedTupleArgument: ("items",),
    DictArgument: ("entries",),
    Entry: ("key", "value"),
    DataclassArgument: ("fields",),
    NamedArgument: ("value",),
    SliceArgument: ("start", "stop", "step"),
}


def resolve(node: Any, path: Path) -> Any:
    """What ``path`` leads to below a call, a result tree or null; None where it leads nowhere."""
    for step in path:
        if isinstance(node, tuple):
            node = node[step] if isinstance(step, int) and step < len(node) else None
        elif step in _STEPS.get(type(node), ()):
            node = getattr(node, str(step))
        else:
            return None
    return node


def roots(record: Operation | Invocation, path: Path) -> Iterator[tuple[Path, Argument]]:
    """The trees of a call's arguments, with their paths."""
    for index, node in enumerate(record.args):
        yield (*path, "args", index), node
    for index, named in enumerate(record.kwargs):
        yield (*path, "kwargs", index, "value"), named.value


def below(node: Argument, path: Path) -> Iterator[tuple[Path, Argument]]:
    """The nodes directly inside a container, in order, with their paths."""
    if isinstance(node, (SequenceArgument, NamedTupleArgument)):
        for index, item in enumerate(node.items):
            yield (*path, "items", index), item
    elif isinstance(node, DictArgument):
        for index, entry in enumerate(node.entries):
            yield (*path, "entries", index, "key"), entry.key
            yield (*path, "entries", index, "value"), entry.value
    elif isinstance(node, DataclassArgument):
        for index, field in enumerate(node.fields):
            yield (*path, "fields", index, "value"), field.value
    elif isinstance(node, SliceArgument):
        yield (*path, "start"), node.start
        yield (*path, "stop"), node.stop
        yield (*path, "step"), node.step


def walk(node: Argument, path: Path) -> Iterator[tuple[Path, Argument, int]]:
    """The node and everything inside it, each with its path and the number of containers around it."""
    stack = [(path, node, 0)]
    while stack:
        at, current, depth = stack.pop()
        yield at, current, depth
        if type(current) in CONTAINERS:
            stack.extend((step, inner, depth + 1) for step, inner in below(current, at))


def is_counted(node: Argument) -> bool:
    """Whether a node uses the item budget; one that was left out because the budget was spent does not."""
    return not (isinstance(node, OpaqueArgument) and node.reason == "item_limit")
