"""Runs a capture again, from what a witness kept, and compares every result and every effect bit for bit.

    capture + witness -> the first difference, or none

Operations run in their recorded order, each by its target and schema, on the tensors that its argument tree names.
Three accounts have to agree at every step: the capture's, the witness's and that of the run that is made here.
"""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from tensorviz.contracts.arguments import (
    Argument,
    GeneratorArgument,
    RecordFunctionArgument,
    SymbolicArgument,
    TensorArgument,
)
from tensorviz.contracts.capture import CaptureSnapshot, Effect, Invocation, Operation, Value
from worker.reading import values

from .bits import Facts, digest, facts, is_nested_list, laid_on, memory_size, settle_memory, storage
from .trees import Differs, tensors_of, value_of
from .witness import Ambient, Kept, Path, Seen, Step

_OF_TORCH = ("aten._nested_get_jagged_dummy.default",)
"""Operators that give a tensor which torch keeps for itself: the run's and the replay's are two."""


class Pairs:
    """One to one: which of two accounts' names mean the same thing."""

    def __init__(self, what: str) -> None:
        self._what = what
        self.there: dict[Any, Any] = {}
        self.back: dict[Any, Any] = {}

    def join(self, name: Any, other: Any) -> None:
        if self.there.setdefault(name, other) != other or self.back.setdefault(other, name) != name:
            raise Differs(f"{self._what} {name} and {other} are the same in one account and not in the other")


@dataclass(frozen=True)
class Known:
    """What the test knows from before the run: the model's state by path, and the inputs of the first root call."""

    kept: Kept
    states: dict[str, Seen]
    inputs: dict[Path, Seen]


def events(snapshot: CaptureSnapshot) -> "Iterator[tuple[int, Operation | tuple[Invocation, str]]]":
    for operation in snapshot.operations:
        yield operation.sequence, operation
    for call in snapshot.invocations:
        yield call.entry, (call, "entry")
        if call.exit is not None:
            yield call.exit, (call, "exit")


def _name(snapshot: CaptureSnapshot, event: Any) -> str:
    if isinstance(event, Operation):
        return f"{event.id} {event.target}"
    call, edge = event
    module = snapshot.modules[int(call.module[1:])]
    return f"{edge} of {call.id} {snapshot.definitions[int(module.definition[1:])].type}"


def resolve(target: str, schema: str | None) -> Any:
    """The operator of this name, which must have this schema."""
    if schema is None:
        raise Differs("a higher-order operator has no schema to run it by")
    space, name, overload = target.split(".")
    operator = getattr(getattr(getattr(torch.ops, space), name), overload)
    if str(operator._schema) != schema:
        raise Differs(f"the schema is {operator._schema}, and was recorded as {schema}")
    return operator


@contextmanager
def _around(function: Any, ambient: Ambient) -> Iterator[None]:
    """What was around an operation. A mode sees torch's own below autograd, which would give views other objects."""
    dtype = torch.get_default_dtype()
    torch.set_default_dtype(ambient.dtype)
    try:
        with torch.set_grad_enabled(ambient.grad), _below_autograd() if function.namespace == "aten" else nullcontext():
            yield
    finally:
        torch.set_default_dtype(dtype)


@contextmanager
def _below_autograd() -> Iterator[None]:
    views = torch._C.DispatchKeySet(torch._C.DispatchKey.ADInplaceOrView)
    with torch._C._AutoDispatchBelowAutograd(), torch._C._ExcludeDispatchKeyGuard(views):
        yield


class Interpreter:
    """The state of a run: which tensor each recorded object is, and at which of its values it stands."""

    def __init__(self, snapshot: CaptureSnapshot, steps: "list[Step]", known: Known) -> None:
        self._snapshot = snapshot
        self._steps = steps
        self._known = known
        self._schemas = {operator.target: operator.operatorSchema for operator in snapshot.operators}
        self._memories: dict[int, torch.UntypedStorage] = {}
        self._objects = Pairs("object")
        self._storages = Pairs("storage")
        self._places = Pairs("memory")
        self._names = Pairs("size")
        self._current: dict[str, str] = {}
        self._symbols: dict[Any, Any] = {}
        self._handles: list[Any] = []
        self.tensors: dict[str, Tensor] = {}

    def run(self) -> None:
        """Raises Differs at the first difference, with the event where it is."""
        if len(self._snapshot.operations) != len(self._steps):
            recorded, dispatched = len(self._snapshot.operations), len(self._steps)
            raise Differs(f"{recorded} operations were recorded and {dispatched} dispatched")
        for _, event in sorted(events(self._snapshot), key=lambda item: item[0]):
            try:
                self.step(event)
            except Differs as difference:
                raise Differs(f"{_name(self._snapshot, event)}: {difference}") from None
            except LookupError as missing:
                raise Differs(f"{_name(self._snapshot, event)}: {missing} is not known") from missing

    def step(self, event: "Operation | tuple[Invocation, str]") -> None:
        if isinstance(event, Operation):
            self._operation(event, self._steps[int(event.id[1:])])
        else:
            call, edge = event
            trees = (*call.args, *(item.value for item in call.kwargs)) if edge == "entry" else (call.output,)
            for value in values(self._snapshot, *trees):
                self._use(value)

    def compare_result(self, result: Any, returned: "dict[int, Seen]") -> None:
        """What the first root call returned is what was recorded, and what the replay came to."""
        for path, tree, tensor in tensors_of(self._snapshot.invocations[0].output, result):
            value, seen = self._value(tree.value), returned[id(tensor)]
            self._use(value)
            try:
                self._check(value, seen, self._tensor(value, seen))
            except Differs as difference:
                raise Differs(f"result at {list(path)}: {difference}") from None

    # -- operations

    def _operation(self, operation: Operation, step: Step) -> None:
        if operation.target != step.target:
            raise Differs(f"{step.target} was dispatched")
        function = resolve(operation.target, self._schemas[operation.target])
        args, kwargs = self._arguments(operation, step)
        if step.random is not None:
            torch.set_rng_state(step.random)
        size, result = memory_size(args), None
        try:
            with _around(function, step.ambient):
                result = function(*args, **kwargs)
            settle_memory(function, result, size)
        except Exception as error:
            self._failed(operation, step, error)
            return
        self._effects(operation, step)
        self._output(operation, step, result)
        self._arguments_after(operation, step)

    def _failed(self, operation: Operation, step: Step, error: Exception) -> None:
        kind = f"{type(error).__module__}.{type(error).__qualname__}"
        if step.error is None or operation.status != "failed":
            raise Differs(f"the replay raised {kind}: {error}"[:300])
        if step.error != kind:
            raise Differs(f"the run raised {step.error}, and the replay {kind}")

    def _arguments(self, operation: Operation, step: Step) -> "tuple[list[Any], dict[str, Any]]":
        def lookup(tree: Argument, path: Path) -> Any:
            match tree:
                case TensorArgument():
                    return self._operand(self._value(tree.value), step.arguments.get(path), path)
                case GeneratorArgument():
                    return torch.Generator(tree.device).set_state(step.generators[path])
                case SymbolicArgument():
                    return self._symbols[tree.expression]
                case RecordFunctionArgument():
                    return self._handles.pop()
            raise AssertionError(tree)

        args = [value_of(tree, ("args", number), lookup) for number, tree in enumerate(operation.args)]
        kwargs = {
            item.name: value_of(item.value, ("kwargs", number, "value"), lookup)
            for number, item in enumerate(operation.kwargs)
        }
        return args, kwargs

    def _operand(self, value: Value, seen: Seen | None, path: Path) -> Tensor:
        if seen is None:
            raise Differs(f"at {list(path)} the run had no tensor")
        self._use(value)
        tensor = self._tensor(value, seen)
        self._check(value, seen, tensor)
        return tensor

    def _tensor(self, value: Value, seen: Seen) -> Tensor:
        if value.object not in self.tensors:
            self._bind(value, self._make(seen))
        return self.tensors[value.object]

    def _make(self, seen: Seen) -> Tensor:
        """A tensor that no operation made: on memory that was kept, or on what the replay has in its place."""
        if seen.storage is None or seen.digest is None:
            return self._known.kept.tensors[seen.object]
        if seen.storage not in self._memories:
            if seen.storage not in self._known.kept.memories:
                raise Differs("a tensor on memory that nothing recorded made")
            self._memories[seen.storage] = self._known.kept.memories[seen.storage].clone()
        dtype = getattr(torch, seen.facts.dtype.removeprefix("torch."))
        return laid_on(self._memories[seen.storage], dtype, seen.facts.offset, seen.facts.shape, seen.facts.strides)

    # -- results

    def _output(self, operation: Operation, step: Step, result: Any) -> None:
        for path, tree, tensor in tensors_of(operation.output, result):
            value, seen = self._value(tree.value), step.output[path]
            self._use(value)
            if value.object not in self.tensors:
                self._bind(value, tensor)
            if self.tensors[value.object] is not tensor and operation.target not in _OF_TORCH:
                raise Differs(f"at {list(path)} of the output the replay has another tensor than {value.object}")
            self._check(value, seen, self.tensors[value.object])
        if operation.target.startswith("profiler._record_function_enter"):
            self._handles.append(result)

    def _effects(self, operation: Operation, step: Step) -> None:
        told = {self._value(effect.before).object for effect in operation.effects}
        for effect in operation.effects:
            self._effect(effect, step)
        before = {seen.object: seen.digest for seen in step.arguments.values()}
        for number, seen in step.after.items():
            name = self._objects.back.get(number)
            if name is not None and name not in told and before.get(number, "an alias") != seen.digest:
                raise Differs(f"{name} was written, and no effect says so")

    def _effect(self, effect: Effect, step: Step) -> None:
        before = self._value(effect.before)
        if not isinstance(effect.after, TensorArgument):
            raise Differs(f"the effect on {before.object} is opaque: {effect.after.reason}")
        after = self._value(effect.after.value)
        if self._current.get(before.object, before.id) not in (before.id, after.id):
            raise Differs(f"{before.id} is not what {before.object} was before the write")
        self._current[after.object] = after.id
        number = self._objects.there.get(after.object)
        if number is None:
            return  # an alias that no operation has used yet
        if number not in step.after:
            raise Differs(f"the witness saw no write to {after.object}")
        self._check(after, step.after[number], self._tensor(after, step.after[number]))

    def _arguments_after(self, operation: Operation, step: Step) -> None:
        for number, seen in step.after.items():
            name = self._objects.back.get(number)
            if name in self.tensors:
                self._check(self._value(self._current[name]), seen, self.tensors[name])

    # -- tensors

    def _bind(self, value: Value, tensor: Tensor) -> None:
        self.tensors[value.object] = tensor
        if not is_nested_list(tensor):
            self._symbols.update((name, size) for name, size in zip(value.shape, tensor.shape, strict=False))

    def _use(self, value: Value) -> None:
        """A reference means the newest value of its object, and an input or a state is the one of that name."""
        if value.object not in self._current:
            self._identify(value)
        if self._current.setdefault(value.object, value.id) != value.id:
            raise Differs(f"{value.id} is used where {value.object} is at {self._current[value.object]}")

    def _identify(self, value: Value) -> None:
        producer = value.producer
        seen = None
        if producer.kind == "state":
            paths = self._snapshot.state[int(producer.state[1:])].paths
            seen = next((self._known.states.get(path.path) for path in paths if path.root == "m0"), None)
        elif producer.kind == "input" and producer.invocation == "c0":
            seen = self._known.inputs.get(producer.path)
        if seen is not None:
            self._objects.join(value.object, seen.object)

    def _check(self, value: Value, seen: Seen, tensor: Tensor) -> None:
        self._objects.join(value.object, seen.object)
        self._check_memory(value, seen, tensor)
        if value.type != seen.type:
            raise Differs(f"{value.id} is a {seen.type}, and was recorded as a {value.type}")
        recorded, replayed = _facts(value), facts(tensor)
        if recorded != seen.facts or self._named(recorded, replayed) != recorded:
            raise Differs(f"{value.id} was recorded as {recorded}, was {seen.facts} and is replayed as {replayed}")
        if seen.digest is not None and digest(tensor) != seen.digest:
            raise Differs(f"{value.id} has other bits in the replay than in the run")

    def _check_memory(self, value: Value, seen: Seen, tensor: Tensor) -> None:
        memory = storage(tensor)
        if memory is not None and seen.storage is not None:
            self._storages.join(value.storage, seen.storage)
            self._memories.setdefault(seen.storage, memory)
            self._places.join(seen.storage, id(memory))

    def _named(self, recorded: Facts, replayed: Facts) -> Facts:
        """The replayed facts with the run's names for sizes that have no number."""
        if not any(isinstance(size, str) for size in recorded.shape):
            return replayed
        pairs = [(recorded.shape, replayed.shape), (recorded.strides or (), replayed.strides or ())]
        for name, size in (both for names, sizes in pairs for both in zip(names, sizes, strict=True)):
            self._names.join(name, size)
        return replayed._replace(shape=recorded.shape, strides=recorded.strides)

    def _value(self, name: str) -> Value:
        return self._snapshot.values[int(name[1:])]


def _facts(value: Value) -> Facts:
    return Facts(
        value.shape, value.strides, value.storageOffset, value.dtype, value.device, value.layout, value.logicalBytes
    )
