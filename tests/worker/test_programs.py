"""Small generated programs: every capture is valid, and its facts are the ones that torch tells."""

from dataclasses import dataclass, field
from typing import Any

import torch
from hypothesis import HealthCheck, Phase, event, given, settings
from hypothesis import strategies as st
from torch import nn

import tensorviz
from tensorviz.contracts.arguments import TensorArgument
from tensorviz.contracts.base import encode
from tensorviz.contracts.capture import CaptureSnapshot, Operation, Value
from tensorviz.contracts.validate import parse_capture

from .reading import value, values

Instruction = tuple[str, int, int]

VIEWS = {
    "transpose": lambda x: x.transpose(0, -1) if x.dim() else x.unsqueeze(0),
    "flatten": lambda x: x.reshape(-1),  # a view or a copy, as the strides allow
    "first": lambda x: x[:1] if x.dim() else x.view(()),
    "every other": lambda x: x[..., ::2] if x.dim() else x.detach(),
    "unsqueeze": lambda x: x.unsqueeze(0),
    "expand": lambda x: x.unsqueeze(0).expand(2, *x.shape),
    "detach": lambda x: x.detach(),
    "diagonal": lambda x: x.diagonal() if x.dim() >= 2 else x.view(x.shape),
}
NEW = {
    "double": lambda x, _: x * 2,
    "sum": lambda x, y: x.sum() + y.sum(),
    "concatenate": lambda x, y: torch.cat([x.reshape(-1), y.reshape(-1), x.reshape(-1)]),
    "compare": lambda x, y: x > y.mean(),
    "integers": lambda x, _: torch.arange(x.numel()),
    "clone": lambda x, _: x.clone(),
    "largest": lambda x, _: x.flatten().max(dim=0),
}
WRITES = {
    "add_": lambda x, _: x.add_(1),
    "mul_": lambda x, _: x.mul_(0.5),
    "zero_": lambda x, _: x.zero_(),
    "copy_": lambda x, y: x.copy_(y.reshape(-1)[0]),
    "part": lambda x, _: x[..., :1].fill_(3) if x.dim() else x.fill_(3),
    "out": lambda x, _: torch.neg(x, out=x),
}
CALLS = ("shared", "nested", "other")


@dataclass
class Register:
    tensors: list[torch.Tensor] = field(default_factory=list)

    def pick(self, number: int) -> torch.Tensor:
        return self.tensors[number % len(self.tensors)]

    def add(self, result: Any) -> None:
        """Keeps every tensor of a result, so that all of them are alive and returned at the end."""
        if isinstance(result, torch.Tensor):
            self.tensors.append(result)
        else:
            for item in result:
                self.add(item)


class Scale(nn.Module):
    calls: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor(1.5))
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x: torch.Tensor) -> dict[str, Any]:
        self.calls.add_(1)
        return {"scaled": x * self.weight, "both": [x, (x.abs(), None)]}


class Nested(nn.Module):
    def __init__(self, shared: Scale) -> None:
        super().__init__()
        self.shared = shared
        self.again = shared

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.again(self.shared(x)["scaled"])["scaled"]


class Program(nn.Module):
    """Runs instructions on a growing list of tensors, and returns all of them in a container of some shape."""

    def __init__(self, instructions: list[Instruction], container: str) -> None:
        super().__init__()
        self.instructions = instructions
        self.container = container
        self.shared = Scale()
        self.other = Scale()
        self.nested = Nested(self.shared)

    def forward(self, *inputs: torch.Tensor) -> Any:
        register = Register(list(inputs))
        for name, first, second in self.instructions:
            x, y = register.pick(first), register.pick(second)
            if name in CALLS:
                result = getattr(self, name)(x.to(torch.float32))
                register.add(result if isinstance(result, torch.Tensor) else [result["scaled"], result["both"][1][0]])
            elif name in VIEWS:
                register.add(VIEWS[name](x))
            elif name in NEW:
                register.add(NEW[name](x, y))
            else:
                WRITES[name](x, y)
        found = register.tensors
        return {"list": found, "tuple": tuple(found), "dict": dict(enumerate(found)), "deep": [found[:1], [found[1:]]]}[
            self.container
        ]


def is_written(name: str) -> bool:
    return name in WRITES


@st.composite
def programs(draw: st.DrawFn) -> tuple[list[Instruction], str, bool]:
    names = st.sampled_from([*VIEWS, *NEW, *WRITES, *WRITES, *CALLS])
    numbers = st.integers(0, 30)
    instructions = draw(st.lists(st.tuples(names, numbers, numbers), min_size=1, max_size=12))
    return instructions, draw(st.sampled_from(["list", "tuple", "dict", "deep"])), draw(st.booleans())


def flat(tree: Any) -> list[torch.Tensor]:
    if isinstance(tree, torch.Tensor):
        return [tree]
    return [tensor for item in (tree.values() if isinstance(tree, dict) else tree) for tensor in flat(item)]


def run(program: tuple[list[Instruction], str, bool]) -> tuple[CaptureSnapshot, list[torch.Tensor]] | None:
    """The capture of the program and the tensors that it returned; None for a program that torch refuses."""
    instructions, container, grad = program
    torch.manual_seed(0)
    base = torch.randn(4, 3)
    inputs = (base, base[1:3], torch.ones(2, 2))  # two of them share a storage
    model = Program(instructions, container)
    with torch.set_grad_enabled(grad):
        recording = tensorviz.capture(model, *inputs)
    if isinstance(recording.error, (RuntimeError, IndexError)):
        event("torch refused the program")
        assert recording.status == "partial"
        parse_capture(encode(recording.snapshot))
        return None
    return recording.snapshot, flat(recording.result)


def check(program: tuple[list[Instruction], str, bool]) -> tuple[CaptureSnapshot, list[torch.Tensor]] | None:
    result = run(program)
    if result is not None:
        snapshot, _ = result
        assert snapshot.status == "complete", snapshot.reasons
    return result


generated = settings(
    max_examples=200,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow],
)


@generated
@given(programs())
def test_every_program_gives_a_capture_that_satisfies_the_contract(program: Any) -> None:
    result = check(program)
    if result is not None:
        assert parse_capture(encode(result[0])) == result[0]


@generated
@given(programs())
def test_value_facts_are_torchs_own(program: Any) -> None:
    if (result := check(program)) is None:
        return
    snapshot, tensors = result
    recorded = values(snapshot, snapshot.invocations[0].output)
    assert [told(item) for item in recorded] == [known(tensor) for tensor in tensors]


def told(item: Value) -> tuple[Any, ...]:
    return (
        item.shape,
        item.strides,
        item.storageOffset,
        item.dtype,
        item.version,
        item.requiresGrad,
        item.logicalBytes,
    )


def known(tensor: torch.Tensor) -> tuple[Any, ...]:
    return (
        tuple(tensor.shape),
        tensor.stride(),
        tensor.storage_offset(),
        str(tensor.dtype),
        tensor._version,
        tensor.requires_grad,
        tensor.numel() * tensor.element_size(),
    )


@generated
@given(programs())
def test_identities_are_shared_exactly_where_torch_shares_them(program: Any) -> None:
    if (result := check(program)) is None:
        return
    snapshot, tensors = result
    recorded = values(snapshot, snapshot.invocations[0].output)
    assert grouping([item.object for item in recorded]) == grouping([id(tensor) for tensor in tensors])
    assert grouping([item.storage for item in recorded]) == grouping(
        [tensor.untyped_storage()._cdata for tensor in tensors]
    )


def grouping(keys: list[Any]) -> list[int]:
    """For each position, the first position with the same key."""
    return [keys.index(key) for key in keys]


@generated
@given(programs())
def test_every_write_makes_one_new_version_of_the_written_tensor_and_of_its_aliases(program: Any) -> None:
    if (result := check(program)) is None:
        return
    snapshot, _ = result
    current: dict[str, Value] = {}
    for operation in snapshot.operations:
        for item in values(snapshot, *operation.args, *(argument.value for argument in operation.kwargs)):
            assert current.setdefault(item.object, item).id == item.id, "an operand is the latest version of its object"
        check_effects(snapshot, operation, current)
        for item in values(snapshot, operation.output):
            assert current.setdefault(item.object, item).id == item.id


def check_effects(snapshot: CaptureSnapshot, operation: Operation, current: dict[str, Value]) -> None:
    written = {effect.argument for effect in operation.effects if effect.relation == "operand"}
    assert written == declared_writes(operation)
    after_of: dict[str, str] = {}
    for effect in operation.effects:
        before = value(snapshot, effect.before)
        assert isinstance(effect.after, TensorArgument)
        after = value(snapshot, effect.after.value)
        assert (after.object, after.storage) == (before.object, before.storage)
        assert (after.previousVersion, after.logicalVersion) == (before.id, before.logicalVersion + 1)
        assert after_of.setdefault(after.object, after.id) == after.id
        if before.object in current and current[before.object].id != after.id:
            assert current[before.object].id == before.id
        current[before.object] = after
        if effect.relation == "operand":
            assert values(snapshot, at(operation, effect.argument)) == [before]
    storages = {value(snapshot, effect.before).storage for effect in operation.effects}
    assert {item.object for item in current.values() if item.storage in storages} >= set(after_of)


def declared_writes(operation: Operation) -> set[tuple[Any, ...]]:
    """By torch's own schema, apart from the recorder's reading of it."""
    packet, _, overload = operation.target.removeprefix("aten.").partition(".")
    schema = getattr(getattr(torch.ops.aten, packet), overload)._schema
    names = {
        item.name: number
        for number, item in enumerate(schema.arguments)
        if item.alias_info and item.alias_info.is_write
    }
    found: set[tuple[Any, ...]] = {("args", number) for number in names.values() if number < len(operation.args)}
    found |= {("kwargs", number, "value") for number, argument in enumerate(operation.kwargs) if argument.name in names}
    return found


def at(operation: Operation, path: tuple[Any, ...]) -> Any:
    if path[0] == "args":
        return operation.args[path[1]]
    return operation.kwargs[path[1]].value


@generated
@given(programs())
def test_every_live_alias_of_a_written_tensor_gets_its_effect(program: Any) -> None:
    """All tensors of a program stay alive until its end, so torch's storages say which effects there must be."""
    if (result := check(program)) is None:
        return
    snapshot, _ = result
    recorded = values(snapshot, snapshot.invocations[0].output)
    for item in recorded:
        born = birth(snapshot, item.object)
        writes = [
            operation
            for operation in snapshot.operations
            if operation.sequence > born
            and any(value(snapshot, effect.before).storage == item.storage for effect in operation.effects)
        ]
        assert item.logicalVersion == len(writes)


def birth(snapshot: CaptureSnapshot, obj: str) -> int:
    """The sequence number of the operation that made a tensor; -1 for one from outside."""
    first = next(item for item in snapshot.values if item.object == obj)
    if first.producer.kind != "output":
        return -1
    return snapshot.operations[int(first.producer.operation[1:])].sequence
