"""Module definitions, instances, registered paths and state, read from instance dictionaries alone.

A model may override ``modules``, ``parameters`` or ``__getattr__``; none of these is called.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch.nn.parameter import UninitializedTensorMixin  # pyright: ignore[reportAttributeAccessIssue]

MAX_PATHS = 100_000
_MAX_DECORATORS = 32


def children(module: Any) -> "Iterator[tuple[str, Any]]":
    return _registered(module, "_modules", torch.nn.Module)


def parameters(module: Any) -> "Iterator[tuple[str, Any]]":
    return _registered(module, "_parameters", torch.Tensor)


def buffers(module: Any) -> "Iterator[tuple[str, Any]]":
    return _registered(module, "_buffers", torch.Tensor)


def _registered(module: Any, table: str, kind: type) -> "Iterator[tuple[str, Any]]":
    try:
        entries = object.__getattribute__(module, "__dict__").get(table)
    except AttributeError:
        return
    if isinstance(entries, dict):
        for name, item in list(entries.items()):
            if isinstance(name, str) and isinstance(item, kind):
                yield name, item


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


def is_uninitialized(tensor: Any) -> bool:
    return isinstance(tensor, UninitializedTensorMixin)


class ParameterCounter:
    """Counts the elements of a module's unique registered parameters, within one allowance of reads for the capture."""

    def __init__(self, allowance: int) -> None:
        self._left = allowance

    def count(self, module: Any) -> "tuple[int | None, str | None]":
        """The count and None, or None and why there is none: ``unsupported_metadata`` or ``read_limit``."""
        seen_modules: set[int] = set()
        seen: set[int] = set()
        stack, total = [module], 0
        while stack:
            current = stack.pop()
            if id(current) in seen_modules:
                continue
            seen_modules.add(id(current))
            if isinstance(current, torch.jit.ScriptModule):  # its parameters are not in Python's tables
                return None, "unsupported_metadata"
            for _, parameter in parameters(current):
                if id(parameter) in seen:
                    continue
                if self._left <= 0:
                    return None, "read_limit"
                self._left -= 1
                seen.add(id(parameter))
                size = None if is_uninitialized(parameter) else _numel(parameter)
                if size is None:
                    return None, "unsupported_metadata"
                total += size
            stack.extend(child for _, child in children(current))
        return total, None


def _numel(parameter: Any) -> "int | None":
    try:
        with torch._C.DisableTorchFunctionSubclass():
            size = parameter.numel()
    except Exception:
        return None
    return size if type(size) is int else None
