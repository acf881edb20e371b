"""What an overload declares about itself, read once from its operator schema: name, schema text, and what it writes."""

from typing import Any, NamedTuple

import torch

_DEVICE_READ = "prim.device.default"


class Recipe(NamedTuple):
    """``writes`` are the arguments that the operator may write: position and name of each."""

    target: str
    schema: "str | None"
    writes: "tuple[tuple[int, str], ...]"
    recorded: bool = True
    only_in_training: bool = False


_RUNNING_STATISTICS = ((3, "running_mean"), (4, "running_var"))
_TRAINING_ARGUMENT = 5


def recipe_of(func: Any) -> Recipe:
    """A higher-order operator has no schema and no declared writes. Reading a fake tensor's device is no operation."""
    target = str(func)[:1024]
    schema = getattr(func, "_schema", None)
    if schema is None:
        return Recipe(target, None, ())
    if func in (torch.ops.aten.native_batch_norm.default, torch.ops.aten.cudnn_batch_norm.default):
        # The kernels update the running statistics in training, and the schemas do not say so.
        return Recipe(target, str(schema), _RUNNING_STATISTICS, only_in_training=True)
    writes = tuple(
        (index, argument.name)
        for index, argument in enumerate(schema.arguments)
        if argument.alias_info is not None and argument.alias_info.is_write
    )
    return Recipe(target, str(schema)[:16384], writes, target != _DEVICE_READ)


def written_arguments(recipe: Recipe, args: Any, kwargs: Any) -> "list[tuple[tuple[str | int, ...], Any]]":
    """Path and tensor of each operand that the call may write; a list argument contributes each of its tensors."""
    found: list[tuple[tuple[str | int, ...], Any]] = []
    if recipe.only_in_training and args[_TRAINING_ARGUMENT] is not True:
        return found
    for index, name in recipe.writes:
        if index < len(args):
            _collect(args[index], ("args", index), found)
        elif name in kwargs:
            _collect(kwargs[name], ("kwargs", list(kwargs).index(name), "value"), found)
    return found


def _collect(value: Any, path: Any, found: "list[Any]") -> None:
    if isinstance(value, torch.Tensor):
        found.append((path, value))
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            _collect(item, (*path, "items", index), found)
