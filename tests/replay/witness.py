"""A dispatch mode that shares no code with the recorder: keeps what a replay needs, and the bits that it must reach.

It stands below the recorder and sees each operation as the recorder passes it on. Tensors are held weakly, so that they
live as long as without it; the memory of those that no operation made is copied when it is first seen.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.weak import TensorWeakRef, WeakIdKeyDictionary, WeakTensorKeyDictionary

from .bits import UNSPECIFIED, Facts, digest, facts, memory_size, settle_memory, storage

Path = tuple[str | int, ...]


class Seen(NamedTuple):
    """A tensor at one moment. ``object`` and ``storage`` are numbers in the order of first sight."""

    object: int
    storage: int | None
    type: str
    facts: Facts
    digest: str | None


class Step(NamedTuple):
    """One dispatched operation.

    ``arguments`` are its tensors before it; ``after`` are they, and all live tensors on a memory that the schema says
    is written, after it, by number. ``random`` is the default generator's state where it is not what the last random
    operation left, and ``grad`` the grad mode, which a few kernels ask for. A digest of None compares with nothing.
    """

    target: str
    error: str | None
    arguments: dict[Path, Seen]
    generators: dict[Path, Tensor]
    random: Tensor | None
    grad: bool
    output: dict[Path, Seen]
    after: dict[int, Seen]


class Kept:
    """What no operation made: copies of memories by number, and of tensors that have no single memory."""

    def __init__(self) -> None:
        self.memories: dict[int, torch.UntypedStorage] = {}
        self.tensors: dict[int, Tensor] = {}


class Witness(TorchDispatchMode):
    supports_higher_order_operators = True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        return True

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[Step] = []
        self.kept = Kept()
        self._objects = WeakTensorKeyDictionary()
        self._storages = WeakIdKeyDictionary()
        self._unspecified = WeakTensorKeyDictionary()
        self._sharing: dict[int, dict[int, TensorWeakRef]] = {}
        self._counts = {"objects": 0, "storages": 0}
        self._random: str | None = None

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if str(func) == "prim.device.default":  # how a fake tensor tells its device
            return func(*args, **kwargs)
        tensors = dict(leaves(args, kwargs, Tensor))
        arguments = {path: self.keep(tensor) for path, tensor in tensors.items()}
        written = {arguments[path].storage for path in _written(func, args, kwargs) if path in arguments}
        generators = {path: item.get_state() for path, item in leaves(args, kwargs, torch.Generator)}
        random = self._random_state(func)
        size = memory_size(args)
        grad = torch.is_grad_enabled()
        output, error = None, None
        try:
            output = func(*args, **kwargs)
            settle_memory(func, output, size)
        except Exception as raised:
            error = f"{type(raised).__module__}.{type(raised).__qualname__}"
            raise
        finally:
            self._remember(func)
            results = list(inside(output, (), Tensor))
            self._unspecified.update(
                (tensor, True) for path, tensor in results if path in UNSPECIFIED.get(str(func), ())
            )
            result = {path: self.see(tensor) for path, tensor in results}
            after = {seen.object: seen for seen in map(self.see, [*tensors.values(), *self._sharers(written)])}
            step = Step(str(func), error, arguments, generators, random, grad, result, after)
            self.steps.append(step)
        return output

    def keep(self, tensor: Tensor) -> Seen:
        """Sees a tensor, and copies its memory if that is new: no operation has made it."""
        memory = storage(tensor)
        is_new = tensor not in self._objects if memory is None else memory not in self._storages
        seen = self.see(tensor)
        if is_new and memory is not None and seen.storage is not None and seen.digest is not None:
            self.kept.memories[seen.storage] = memory.clone()
        elif is_new and memory is None:
            with torch.no_grad(), torch._C.DisableTorchFunctionSubclass():
                plain = tensor.detach()
                self.kept.tensors[seen.object] = plain if plain._is_zerotensor() else plain.clone()
        return seen

    def see(self, tensor: Tensor) -> Seen:
        number = self._number(self._objects, tensor, "objects")
        memory = storage(tensor)
        place = None if memory is None else self._number(self._storages, memory, "storages")
        if place is not None:
            self._sharing.setdefault(place, {}).setdefault(number, TensorWeakRef(tensor))
        kind = type(tensor)
        bits = None if tensor in self._unspecified else digest(tensor)
        return Seen(number, place, f"{kind.__module__}.{kind.__qualname__}", facts(tensor), bits)

    def _number(self, known: Any, item: Any, kind: str) -> int:
        if item not in known:
            known[item] = self._counts[kind]
            self._counts[kind] += 1
        return known[item]

    def _sharers(self, places: "set[int | None]") -> Iterator[Tensor]:
        for place in places - {None}:
            for ref in list(self._sharing.get(place, {}).values()):  # type: ignore[arg-type]
                tensor = ref()
                memory = None if tensor is None else storage(tensor)
                if tensor is not None and memory is not None and self._storages.get(memory) == place:
                    yield tensor

    def _random_state(self, func: Any) -> Tensor | None:
        if torch.Tag.nondeterministic_seeded not in getattr(func, "tags", ()):
            return None
        state = torch.get_rng_state()
        return state if digest(state) != self._random else None

    def _remember(self, func: Any) -> None:
        if torch.Tag.nondeterministic_seeded in getattr(func, "tags", ()):
            self._random = digest(torch.get_rng_state())


def _written(func: Any, args: Any, kwargs: Any) -> Iterator[Path]:
    """Where the schema says that an operator writes."""
    schema = getattr(func, "_schema", None)
    names = list(kwargs)
    for number, argument in enumerate(schema.arguments if schema is not None else ()):
        if argument.alias_info is None or not argument.alias_info.is_write:
            continue
        if number < len(args):
            yield from (path for path, _ in inside(args[number], ("args", number), Tensor))
        elif argument.name in kwargs:
            at = ("kwargs", names.index(argument.name), "value")
            yield from (path for path, _ in inside(kwargs[argument.name], at, Tensor))


def leaves(args: Any, kwargs: Any, kind: Any) -> Iterator[tuple[Path, Any]]:
    """Everything of a kind in what a call was given, by its path in the contract's tree."""
    for number, value in enumerate(args):
        yield from inside(value, ("args", number), kind)
    for number, value in enumerate(kwargs.values()):
        yield from inside(value, ("kwargs", number, "value"), kind)


def inside(value: Any, path: Path, kind: Any) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, kind):
        yield path, value
    elif isinstance(value, (list, tuple)):
        for number, item in enumerate(value):
            yield from inside(item, (*path, "items", number), kind)
    elif isinstance(value, dict):
        for number, item in enumerate(dict.values(value)):
            yield from inside(item, (*path, "entries", number, "value"), kind)
    elif hasattr(type(value), "__dataclass_fields__") and not isinstance(value, type):
        for number, name in enumerate(name for name in type(value).__dataclass_fields__ if name in vars(value)):
            yield from inside(vars(value)[name], (*path, "fields", number, "value"), kind)
