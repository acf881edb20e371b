"""Module definitions, instances, registered paths and state, read from instance dictionaries alone.

A model may override ``modules``, ``parameters`` or ``__getattr__``; none of these is called.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch.jit._script import OrderedDictWrapper
from torch.nn import Module, Parameter
from torch.nn.parameter import UninitializedTensorMixin  # pyright: ignore[reportAttributeAccessIssue]

from tensorviz_worker.tensors import REFUSALS

_own = object.__getattribute__

MAX_PATHS = 100_000
_MAX_DECORATORS = 32


def children(module: Any) -> "Iterator[tuple[str, Any]]":
    return _registered(module, "_modules", torch.nn.Module)


def parameters(module: Any) -> "Iterator[tuple[str, Any]]":
    return _registered(module, "_parameters", torch.Tensor)


def buffers(module: Any) -> "Iterator[tuple[str, Any]]":
    return _registered(module, "_buffers", torch.Tensor)


def _registered(module: Any, table: str, kind: type) -> "Iterator[tuple[str, Any]]":
    for name, item in list(_table(module, table)):
        if isinstance(name, str) and isinstance(item, kind):
            yield name, item


def _table(module: Any, name: str) -> "Iterable[tuple[str, Any]]":
    """The entries of a table of the module's. That of a scripted or traced module is torch's own view of C++ tables."""
    try:
        own = _own(module, "__dict__")
    except AttributeError:
        return ()
    traced = own.get("_actual_script_module")
    table = (own if traced is None else _own(traced, "__dict__")).get(name)
    return table.items() if isinstance(table, (dict, OrderedDictWrapper)) else ()


def join(path: str, name: str) -> str:
    """The path of a member. A name that is empty or has a dot is bracketed: it must not read as another path."""
    if not name or "." in name or "[" in name:
        return f"{path}[{name!r}]"
    return f"{path}.{name}" if path else name


def walk(root: Any) -> "Iterator[tuple[str, Any]]":
    """Every registered path and its module, parents first; a cycle is entered once. At most ``MAX_PATHS`` of them."""
    left = MAX_PATHS
    stack: list[tuple[str, Any, frozenset[int]]] = [("", root, frozenset())]
    while stack and left:
        path, module, above = stack.pop()
        left -= 1
        yield path, module
        if id(module) in above:
            continue
        inside = above | {id(module)}
        below = [(join(path, name), child, inside) for name, child in children(module)]
        stack.extend(reversed(below))


def forward_code(kind: type) -> Any:
    """The code object of a class's ``forward``, under its decorators; None when it is not a Python function."""
    function = getattr(kind, "forward", None)
    for _ in range(_MAX_DECORATORS):
        inner = getattr(function, "__wrapped__", None)
        if inner is None:
            break
        function = inner
    return getattr(function, "__code__", None)


def has_own_call(kind: type) -> bool:
    """Whether a class puts a ``__call__`` before that of ``nn.Module``, which it may or may not call."""
    for base in kind.__mro__:
        if base is Module:
            return False
        if "__call__" in base.__dict__:
            return not base.__module__.startswith("torch.")
    return False


def is_uninitialized(tensor: Any) -> bool:
    return isinstance(tensor, UninitializedTensorMixin)


class ParameterCounter:
    """Counts the elements of a module's unique registered parameters, within one allowance of reads for the capture."""

    def __init__(self, allowance: int) -> None:
        self._left = allowance

    def count(self, module: Any) -> str:
        """The encoded field of an invocation: the count, or why there is none."""
        count, unavailable = self._count(module)
        return f',"parameterCount":{count}' if unavailable is None else f',"parameterCountUnavailable":"{unavailable}"'

    def _count(self, module: Any) -> "tuple[int, str | None]":
        """This runs at every call, over all that is below the module: nothing is called that need not be."""
        total, found, seen = 0, [module], {id(module)}
        parameters: set[int] = set()
        for current in found:  # which grows meanwhile
            for _, parameter in _table(current, "_parameters"):
                if parameter is None or id(parameter) in parameters:
                    continue
                size = parameter.numel() if type(parameter) is Parameter else _numel(parameter)
                if size is None:
                    return 0, "unsupported_metadata"
                parameters.add(id(parameter))
                total += size
                if len(parameters) > self._left:
                    self._left = 0
                    return 0, "read_limit"
            for _, child in _table(current, "_modules"):
                if id(child) not in seen and isinstance(child, Module):
                    seen.add(id(child))
                    found.append(child)
        self._left -= len(parameters)
        return total, None


def _numel(parameter: Any) -> "int | None":
    if not isinstance(parameter, torch.Tensor):
        return 0
    if is_uninitialized(parameter):
        return None
    try:
        with torch._C.DisableTorchFunctionSubclass():
            size = parameter.numel()
    except REFUSALS:
        return None
    return size if type(size) is int else None
