"""What an overload declares about itself, read once from its operator schema: name, schema text, and what it writes."""

from functools import lru_cache
from typing import Any, NamedTuple

import torch

from tensorviz_worker.journal import quote
from tensorviz_worker.ways import Way

_DEVICE_READ = "prim.device.default"


class Recipe(NamedTuple):
    """``target`` is encoded. ``writes`` are the arguments that the operator may write: position and name of each.

    With ``training_argument``, it writes them only when the argument at that position is true. A custom operator is
    one that torch does not bring. What is not ``recorded`` when it is called is no operation, or is told later. ``way``
    is how it has to be called, if not as it is; that is asked for each recording, because kernels can be added later.
    """

    target: str
    schema: "str | None"
    writes: "tuple[tuple[int, str], ...]"
    recorded: bool = True
    custom: bool = False
    training_argument: "int | None" = None
    way: "Way | None" = None


_STATISTICS = ("running_mean", "running_var")
_TRAINING = ("training", "train", "use_input_stats")


@lru_cache(maxsize=4096)
def recipe_of(func: Any) -> Recipe:
    """A higher-order operator has no schema and no declared writes, and is told once it has run.

    Reading a fake tensor's device is no operation.
    """
    name = str(func)[:1024]
    target = quote(name)
    schema = getattr(func, "_schema", None)
    if schema is None:
        return Recipe(target, None, (), recorded=not isinstance(func, torch._ops.HigherOrderOperator))
    text = str(schema)[:16384]
    names = [argument.name for argument in schema.arguments]
    writes = tuple(
        (index, argument.name)
        for index, argument in enumerate(schema.arguments)
        if argument.alias_info is not None and argument.alias_info.is_write
    )
    training = next((names.index(name) for name in _TRAINING if name in names), None)
    if not writes and training is not None and all(name in names for name in _STATISTICS):
        # Normalizations update their running statistics in training, and some schemas do not say so.
        writes = tuple((names.index(name), name) for name in _STATISTICS)
        return Recipe(target, text, writes, training_argument=training)
    return Recipe(target, text, writes, recorded=name != _DEVICE_READ, custom=not name.startswith("aten."))


def written_arguments(recipe: Recipe, args: Any, kwargs: Any) -> "list[tuple[str, Any]]":
    """Path and tensor of each operand that the call may write; a list argument contributes each of its tensors.

    A path is JSON text without its brackets, as everywhere in the recorder.
    """
    found: list[tuple[str, Any]] = []
    if recipe.training_argument is not None and not _trains(args, recipe.training_argument):
        return found
    for index, name in recipe.writes:
        if index < len(args):
            _collect(args[index], f'"args",{index}', found)
        elif name in kwargs:
            _collect(kwargs[name], f'"kwargs",{list(kwargs).index(name)},"value"', found)
    return found


def _trains(args: Any, index: int) -> bool:
    """An argument that is not where the schema has it was given by name: then the write is assumed."""
    return index >= len(args) or args[index] is True


def _collect(value: Any, path: str, found: "list[Any]") -> None:
    if isinstance(value, torch.Tensor):
        found.append((path, value))
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            _collect(item, f'{path},"items",{index}', found)
