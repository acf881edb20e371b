"""What an overload declares about itself, read once from its operator schema: name, schema text, and what it writes."""

from typing import Any, NamedTuple

import torch

_DEVICE_READ = "prim.device.default"


class Recipe(NamedTuple):
    """``writes`` are the arguments that the operator may write: position and name of each.

    With ``training_argument``, it writes them only when the argument at that position is true.
    """

    target: str
    schema: "str | None"
    writes: "tuple[tuple[int, str], ...]"
    recorded: bool = True
    training_argument: "int | None" = None


_STATISTICS = ("running_mean", "running_var")
_TRAINING = ("training", "train", "use_input_stats")


def recipe_of(func: Any) -> Recipe:
    """A higher-order operator has no schema and no declared writes. Reading a fake tensor's device is no operation."""
    target = str(func)[:1024]
    schema = getattr(func, "_schema", None)
    if schema is None:
        return Recipe(target, None, ())
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
        return Recipe(target, text, tuple((names.index(name), name) for name in _STATISTICS), True, training)
    return Recipe(target, text, writes, target != _DEVICE_READ)


def written_arguments(recipe: Recipe, args: Any, kwargs: Any) -> "list[tuple[tuple[str | int, ...], Any]]":
    """Path and tensor of each operand that the call may write; a list argument contributes each of its tensors."""
    found: list[tuple[tuple[str | int, ...], Any]] = []
    if recipe.training_argument is not None and not _trains(args, recipe.training_argument):
        return found
    for index, name in recipe.writes:
        if index < len(args):
            _collect(args[index], ("args", index), found)
        elif name in kwargs:
            _collect(kwargs[name], ("kwargs", list(kwargs).index(name), "value"), found)
    return found


def _trains(args: Any, index: int) -> bool:
    """An argument that is not where the schema has it was given by name: then the write is assumed."""
    return index >= len(args) or args[index] is True


def _collect(value: Any, path: Any, found: "list[Any]") -> None:
    if isinstance(value, torch.Tensor):
        found.append((path, value))
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            _collect(item, (*path, "items", index), found)
