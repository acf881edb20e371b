"""A dispatch mode that shares no code with the recorder: keeps what a replay needs, and the bits that it must reach.

It stands below the recorder and sees each operation as the recorder passes it on. Tensors are held weakly, so that they
live as long as without it; the memory of those that no operation made is copied when it is first seen.
"""

import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch._C._dynamo.eval_frame import _FrameAction, _FrameExecStrategy, set_code_exec_strategy
from torch._subclasses.fake_tensor import FakeTensor
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


class Ambient(NamedTuple):
    """What kernels ask for beside their arguments: the grad mode, and the dtype of what has none given."""

    grad: bool
    dtype: torch.dtype


class Step(NamedTuple):
    """One dispatched operation.

    ``arguments`` are its tensors before it; ``after`` are they, and all live tensors on a memory that the schema says
    is written, after it, by number. ``random`` is the default generator's state where it is not what the last random
    operation left. A digest of None compares with nothing.
    """

    target: str
    error: str | None
    arguments: dict[Path, Seen]
    generators: dict[Path, Tensor]
    random: Tensor | None
    ambient: Ambient
    output: dict[Path, Seen]
    after: dict[int, Seen]


class Kept:
    """What no operation made: copies of memories by number, and of tensors that have no single memory."""

    def __init__(self) -> None:
        self.memories: dict[int, torch.UntypedStorage] = {}
        self.tensors: dict[int, Tensor] = {}


_QUESTIONS = (
    "prim.device.default",
    "prim.layout.default",
    "aten.sym_size.default",
    "aten.sym_stride.default",
    "aten.sym_storage_offset.default",
)


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
        if str(func) in _QUESTIONS and (func is torch.ops.prim.device.default or _is_asked_by_the_recorder()):
            return func(*args, **kwargs)
        tensors = dict(leaves(args, kwargs, Tensor))
        arguments = {path: self.keep(tensor) for path, tensor in tensors.items()}
        written = {arguments[path].storage for path in _written(func, args, kwargs) if path in arguments}
        generators = {path: item.get_state() for path, item in leaves(args, kwargs, torch.Generator)}
        random = self._random_state(func)
        size = memory_size(args)
        ambient = Ambient(torch.is_grad_enabled(), torch.get_default_dtype())
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
            step = Step(str(func), error, arguments, generators, random, ambient, result, after)
            self.steps.append(step)
        return output

    def keep(self, tensor: Tensor) -> Seen:
        """Sees a tensor, and copies its memory if that is new: no operation has made it."""
        memory = storage(tensor)
        is_new = tensor not in self._objects if memory is None else memory not in self._storages
        seen = self.see(tensor)
        if is_new and memory is not None and seen.storage is not None and seen.digest is not None:
            self.kept.memories[seen.storage] = memory.clone()
        elif is_new:
            with torch.no_grad(), torch._C.DisableTorchFunctionSubclass():
                self.kept.tensors[seen.object] = _copy(tensor)
        return seen

    def see(self, tensor: Tensor) -> Seen:
        number = self._number(self._objects, tensor, "objects")
        memory = storage(tensor)
        place = None if memory is None else self._number(self._storages, memory, "storages")
        if place is not None:
            self._sharing.setdefault(place, {}).setdefault(number, TensorWeakRef(tensor))
        kind = kind_of(tensor)
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


def _is_asked_by_the_recorder() -> bool:
    """Reading the facts of some subclasses dispatches. The recorder passes on operations in its mode's own method."""
    frame = sys._getframe(2)
    while frame is not None and "tensorviz_worker" not in frame.f_code.co_filename:
        frame = frame.f_back
    return frame is not None and frame.f_code.co_name != "__torch_dispatch__"


def _copy(tensor: Tensor) -> Tensor:
    """As good as it can be had: some subclasses have no copies."""
    try:
        plain = tensor.detach()
        return plain if plain._is_zerotensor() else plain.clone()
    except (RuntimeError, TypeError):
        return tensor


def kind_of(tensor: Tensor) -> type:
    """A fake tensor stands for a real one, and is told as that."""
    if isinstance(tensor, FakeTensor):
        return torch.nn.Parameter if isinstance(tensor, torch.nn.Parameter) else Tensor
    return type(tensor)


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


_skipped = _FrameExecStrategy(_FrameAction.SKIP, _FrameAction.SKIP)
set_code_exec_strategy(Witness.__torch_dispatch__.__code__, _skipped)  # torch.compile must not follow us
