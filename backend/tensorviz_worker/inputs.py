"""Finds the arguments of the recorded call: a named function, else the conventions that people already use.

In order: ``--inputs FILE.py:FUNCTION``; ``example_inputs`` or ``get_inputs`` in the file; ``example_input_array``
(Lightning), ``example_inputs`` or ``dummy_inputs`` (transformers) on the model; nothing, when ``forward`` needs none.
A dict with names as keys is keyword arguments, a list or tuple is positional ones, ``(args, kwargs)`` is both, anything
else is the one argument.
"""

import inspect
import types
from typing import Any, NamedTuple

from tensorviz_worker.refusal import Refusal

_IN_FILE = ("example_inputs", "get_inputs", "example_input_array", "dummy_inputs")
_ON_MODEL = ("example_input_array", "example_inputs", "dummy_inputs", "get_inputs")


class Inputs(NamedTuple):
    """``kind`` and ``name`` are the contract's InputSource."""

    kind: str
    name: "str | None"
    args: "tuple[Any, ...]"
    kwargs: "dict[str, Any]"


def from_function(function: Any, name: str) -> Inputs:
    return Inputs("function", name, *to_call(function()))


def by_convention(module: types.ModuleType, model: Any) -> Inputs:
    """Raises Refusal(inputs_missing) when no convention is met and ``forward`` needs arguments."""
    for owner, names, prefix in ((module, _IN_FILE, ""), (model, _ON_MODEL, f"{type(model).__name__}.")):
        for name in names:
            value = _value_of(owner, name)
            if value is not None:
                return Inputs("convention", prefix + name, *to_call(value))
    needed = required_arguments(model)
    if needed:
        raise Refusal(
            "inputs_missing",
            f"nothing supplies the inputs of {type(model).__name__}.forward: {', '.join(needed)}",
            "add two lines to the file: 'def example_inputs():' and '    return (torch.randn(...),)', "
            "or name a function with --inputs FILE.py:FUNCTION",
        )
    return Inputs("none", None, (), {})


def to_call(value: Any) -> "tuple[tuple[Any, ...], dict[str, Any]]":
    if _is_kwargs(value):
        return (), dict(value)
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], (list, tuple)) and _is_kwargs(value[1]):
        return tuple(value[0]), dict(value[1])
    if type(value) in (list, tuple):
        return tuple(value), {}
    return (value,), {}


def _is_kwargs(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(name, str) for name in value)


def _value_of(owner: Any, name: str) -> Any:
    found = getattr(owner, name, None)
    return found() if isinstance(found, (types.FunctionType, types.MethodType)) else found


def required_arguments(model: Any) -> "list[str]":
    try:
        parameters = inspect.signature(model.forward).parameters.values()
    except (TypeError, ValueError):
        return []
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [p.name for p in parameters if p.default is p.empty and p.kind not in variadic]
