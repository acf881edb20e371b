"""The contract's argument trees and Python's values, read side by side. Shares no code with the recorder's encoder."""

import struct
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from tensorviz.contracts.arguments import (
    Argument,
    BoolArgument,
    ComplexArgument,
    DataclassArgument,
    DictArgument,
    EllipsisArgument,
    EnumArgument,
    FloatArgument,
    GeneratorArgument,
    IntArgument,
    NamedTupleArgument,
    NoneArgument,
    OpaqueArgument,
    RecordFunctionArgument,
    SequenceArgument,
    SliceArgument,
    StringArgument,
    SymbolicArgument,
    TensorArgument,
    TorchArgument,
)

from .witness import Path

Lookup = Callable[[Argument, Path], Any]


class Differs(Exception):
    """What the capture says and what happened are two things, or the capture does not say enough to know."""


def value_of(tree: Argument, path: Path, lookup: Lookup) -> Any:
    """The Python value of a tree. ``lookup`` gives tensors, generators, symbols and profiler handles."""
    match tree:
        case TensorArgument() | GeneratorArgument() | SymbolicArgument() | RecordFunctionArgument():
            return lookup(tree, path)
        case SequenceArgument() | NamedTupleArgument():
            items = [value_of(item, (*path, "items", number), lookup) for number, item in enumerate(tree.items)]
            return items if tree.kind == "list" else tuple(items)
        case SliceArgument():
            parts = (("start", tree.start), ("stop", tree.stop), ("step", tree.step))
            return slice(*(value_of(item, (*path, name), lookup) for name, item in parts))
        case OpaqueArgument():
            raise Differs(f"an argument of type {tree.type} is opaque: {tree.reason}")
        case DictArgument() | DataclassArgument() | EnumArgument():
            raise Differs(f"no dispatcher call carries a {tree.kind}")
        case _:
            return scalar_of(tree)


def scalar_of(tree: Argument) -> Any:
    match tree:
        case NoneArgument():
            return None
        case EllipsisArgument():
            return ...
        case BoolArgument() | StringArgument():
            return tree.value
        case IntArgument():
            return int(tree.value)
        case FloatArgument():
            return float(tree.value)
        case ComplexArgument():
            return complex(float(tree.real), float(tree.imag))
        case TorchArgument(kind="device"):
            return torch.device(tree.value)
        case TorchArgument():
            return getattr(torch, tree.value.removeprefix("torch."))
    raise Differs(f"{tree.kind} is no scalar")


def tensors_of(tree: Argument | None, value: Any, path: Path = ()) -> Iterator[tuple[Path, TensorArgument, Tensor]]:
    """The tensors that a tree and a value name at the same place. Raises Differs where they differ otherwise."""
    if isinstance(tree, TensorArgument) and isinstance(value, Tensor):
        yield path, tree, value
    elif isinstance(tree, (SequenceArgument, NamedTupleArgument)) and isinstance(value, (list, tuple)):
        _same_length(tree.items, value, path)
        for number, (item, part) in enumerate(zip(tree.items, value, strict=True)):
            yield from tensors_of(item, part, (*path, "items", number))
    elif isinstance(tree, DictArgument) and isinstance(value, dict):
        _same_length(tree.entries, list(dict.keys(value)), path)
        for number, (entry, key) in enumerate(zip(tree.entries, dict.keys(value), strict=True)):
            list(tensors_of(entry.key, key, path))
            yield from tensors_of(entry.value, dict.__getitem__(value, key), (*path, "entries", number, "value"))
    elif isinstance(tree, DataclassArgument) and hasattr(type(value), "__dataclass_fields__"):
        for number, field in enumerate(tree.fields):
            yield from tensors_of(field.value, vars(value)[field.name], (*path, "fields", number, "value"))
    elif not _is_same_leaf(tree, value):
        raise Differs(f"at {list(path)} the capture has {tree} and the run {type(value).__name__} {value!r:.80}")


def _same_length(items: Any, values: Any, path: Path) -> None:
    if len(items) != len(values):
        raise Differs(f"at {list(path)} the capture has {len(items)} items and the run {len(values)}")


def _is_same_leaf(tree: Argument | None, value: Any) -> bool:
    match tree:
        case OpaqueArgument() | EnumArgument() | SliceArgument():
            return not isinstance(value, Tensor)
        case SymbolicArgument():
            return isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool))
        case RecordFunctionArgument():
            return isinstance(value, torch.ScriptObject)
        case None | TensorArgument() | SequenceArgument() | NamedTupleArgument() | DictArgument() | DataclassArgument():
            return False
        case GeneratorArgument():
            return isinstance(value, torch.Generator)
    wanted = scalar_of(tree)
    return type(wanted) is type(value) and _bits(wanted) == _bits(value)


def _bits(value: Any) -> Any:
    """Of a float, so that nan is nan and -0 is not 0."""
    if isinstance(value, float):
        return struct.pack("d", value)
    return (_bits(value.real), _bits(value.imag)) if isinstance(value, complex) else value
