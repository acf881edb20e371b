"""Programs that do unusual things: the result is the same, the capture is valid, and the recorder never gives up."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import tensorviz
from tensorviz.contracts.base import encode
from tensorviz.contracts.validate import parse_capture

Function = Callable[..., Any]


class Shadowing(nn.Module):
    """Overrides what a careless observer would call."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(3, 3)

    def never(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("do not call me")

    modules = parameters = named_parameters = named_modules = children = buffers = never

    def __len__(self) -> int:
        return 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x)


class Runs(nn.Module):
    """A model that is one function; it also owns a few modules to play with."""

    def __init__(self, function: Function) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.function = function
        self.linear = nn.Linear(3, 3)
        self.other = nn.Linear(3, 3)
        self.recurrent = nn.GRU(3, 3)
        self.shadowing = Shadowing()

    def forward(self, x: torch.Tensor) -> Any:
        return self.function(self, x)


class Pair(NamedTuple):
    first: torch.Tensor
    second: torch.Tensor


@dataclass
class Box:
    inside: torch.Tensor
    name: str = "box"


class Lying(dict):
    """A dict whose methods are not to be believed."""

    def items(self) -> Any:
        raise RuntimeError("do not call me")

    __iter__ = keys = values = items


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        return grads[0] * 2 + 0 * x


class Tagged(torch.Tensor):
    """A subclass without behaviour of its own."""


def grow(model: Any, x: torch.Tensor) -> torch.Tensor:
    model.extra = nn.Linear(3, 3)
    return model.extra(x)


def remove(model: Any, x: torch.Tensor) -> torch.Tensor:
    y = model.other(x)
    del model.other
    return y


def cycle(model: Any, x: torch.Tensor) -> torch.Tensor:
    model.linear.up = [model]
    tree: list[Any] = [x]
    tree.append(tree)
    return model.linear(x) + len(tree)


def in_a_thread(model: Any, x: torch.Tensor) -> torch.Tensor:
    results: list[torch.Tensor] = []
    thread = threading.Thread(target=lambda: results.append(model.linear(x)))
    thread.start()
    thread.join(30)
    return results[0]


def catches(model: Any, x: torch.Tensor) -> torch.Tensor:
    survived = x
    for attempt in (lambda: x @ torch.ones(5), lambda: x.view(7), lambda: model.linear(x.T[:, :1])):
        try:
            attempt()
        except RuntimeError:
            survived = survived + 1
    return survived


def through_generators(model: Any, x: torch.Tensor) -> torch.Tensor:
    def layers() -> Any:
        yield model.linear
        yield model.other

    return sum((layer(x) for layer in layers()), start=torch.zeros(3))


def trains(model: Any, x: torch.Tensor) -> torch.Tensor:
    optimizer = torch.optim.Adam([model.linear.weight])
    with torch.enable_grad():
        model.linear(x).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    return model.linear.weight.detach().clone()


def forgets(model: Any, x: torch.Tensor) -> torch.Tensor:
    """Many short-lived tensors at addresses that are used again and again."""
    for _ in range(300):
        x = (x + 1).view(-1).view(2, 3) - 1
    return x


COMPLETE: dict[str, Function] = {
    "a module called without __call__": lambda model, x: model.linear.forward(x),
    "a module called twice": lambda model, x: model.linear(model.linear(x)),
    "a module made in forward and not kept": lambda model, x: nn.ReLU()(x),
    "functional calls with other parameters": lambda model, x: torch.func.functional_call(
        model.linear, {"weight": x.new_ones(3, 3) * 2}, (x,)
    ),
    "dict, named tuple and dataclass": lambda model, x: {"pair": Pair(x + 1, x), "box": Box(x * 2), 3: [x]},
    "a dict with lying methods": lambda model, x: Lying(result=x + 1),
    "torch's own named tuples": lambda model, x: torch.sort(x).values + x.max(dim=0).values,
    "an autograd function": lambda model, x: Twice.apply(x),
    "split, chunk and unbind": lambda model, x: [*x.split(1), *x.chunk(2), *x.unbind(1)],
    "indexing of every kind": lambda model, x: [
        x[0],
        x[..., 1],
        x[:, None],
        x[[0, 1]],
        x[x > 0],
        x[0, 1:],
        x[-1:, ::2],
    ],
    "scalars of every kind": lambda model, x: [x + 1, x * 2.5, x + True, x**2, x / 3, x.to(torch.complex64) * 1j],
    "other dtypes": lambda model, x: [x.half(), x.bfloat16(), x.double(), x.int(), x.bool(), x.to(torch.uint8)],
    "empty and scalar tensors": lambda model, x: [x[:0], x.sum(), torch.empty(0, 3), torch.tensor(1.0)],
    "random numbers and a generator": lambda model, x: torch.rand(3, generator=torch.Generator().manual_seed(1)) + x,
    "out= and foreach": lambda model, x: writes_lists(x),
    "an in-place write through a view": lambda model, x: (y := x.clone(), y[:, 0].add_(1), y.T.mul_(2))[0],
    "a resized tensor": lambda model, x: torch.empty(0).resize_(2, 3).copy_(x),
    "autocast": lambda model, x: autocast(model, x),
    "checkpoint": lambda model, x: checkpoint(model.linear, x, use_reentrant=False),
    "einsum and scaled dot product attention": lambda model, x: attend(torch.einsum("ij,kj->ik", x, x)[None, None]),
    "errors that the model survives": catches,
    "generators": through_generators,
    "addresses used again": forgets,
    "a subclass of Tensor": lambda model, x: x.as_subclass(Tagged) + 1,
    "a module list changed while it runs": remove,
    "a cycle among objects": cycle,
    "a module that shadows what observers call": lambda model, x: model.shadowing(x),
    "a loss": lambda model, x: nn.functional.cross_entropy(model.linear(x), torch.tensor([0, 2])),
    "numbers out of a tensor": lambda model, x: x * x.sum().item() + x.shape[0] + float(x[0, 0]),
    "inference mode inside": lambda model, x: in_inference_mode(model, x),
    "no grad inside": torch.no_grad()(lambda model, x: model.linear(x)),
    "recurrent layers": lambda model, x: model.recurrent(x),
    "a large integer and unusual floats": lambda model, x: [x * float("inf"), x * -0.0, torch.full((1,), 2**53 + 1)],
}
PARTIAL: dict[str, tuple[Function, set[str]]] = {
    "a thread": (in_a_thread, {"unobserved_thread"}),
    "a parameter made in forward": (lambda model, x: x @ nn.Parameter(torch.ones(3, 3)), {"dynamic_state"}),
    "a module added in forward": (grow, {"dynamic_state"}),
    "an object that nobody can read": (lambda model, x: (x + 1, object()), {"unsupported_argument"}),
}
EITHER: dict[str, Function] = {
    "a numpy array": lambda model, x: torch.from_numpy(x.numpy() * 2),
    "tolist": lambda model, x: torch.tensor(x.tolist()) + 1,
    "a replaced .data": lambda model, x: replace_data(model, x),
    "vmap": lambda model, x: torch.func.vmap(lambda row: model.linear(row).sum())(x),
    "grad of a function": lambda model, x: torch.func.grad(lambda y: model.linear(y).sum())(x),
    "jacobian": lambda model, x: torch.func.jacrev(model.linear)(x[0]),
    "a forward derivative": lambda model, x: torch.func.jvp(model.linear, (x,), (x,))[1],
    "reentrant checkpoint": lambda model, x: checkpoint(model.linear, x.requires_grad_(), use_reentrant=True),
    "a training step": trains,
    "sparse tensors": lambda model, x: torch.sparse.mm(x.to_sparse(), x.T),
    "compressed sparse rows": lambda model, x: x.to_sparse_csr() @ x.T,
    "nested tensors": lambda model, x: torch.nested.nested_tensor([x, x[:1]], layout=torch.jagged).values(),
    "a quantized tensor": lambda model, x: torch.quantize_per_tensor(x, 0.1, 0, torch.qint8).dequantize(),
    "a scripted child": lambda model, x: torch.jit.script(nn.Linear(3, 3))(x).shape,
    "meta tensors": lambda model, x: torch.empty(2, 3, device="meta") + 1,
    "control flow operators": lambda model, x: torch.cond(x.sum() > 0, lambda y: y + 1, lambda y: y - 1, (x,)),
}


def writes_lists(x: torch.Tensor) -> list[torch.Tensor]:
    tensors = [torch.add(x, 1, out=torch.empty(2, 3)), x * 2]
    torch.ops.aten._foreach_add_.Scalar(tensors, 1.0)
    return tensors


def attend(x: torch.Tensor) -> torch.Tensor:
    return nn.functional.scaled_dot_product_attention(x, x, x)


def autocast(model: Any, x: torch.Tensor) -> torch.Tensor:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return model.linear(x)


def in_inference_mode(model: Any, x: torch.Tensor) -> torch.Tensor:
    with torch.inference_mode():
        y = model.linear(x)
        y.add_(1)
    return y.clone()


def replace_data(model: Any, x: torch.Tensor) -> torch.Tensor:
    model.linear.weight.data = torch.ones(3, 3)
    model.linear.weight.data.mul_(2)
    return model.linear(x)


def same(first: Any, second: Any) -> bool:
    if isinstance(first, torch.Tensor):
        if first.layout is not torch.strided:
            first, second = first.to_dense(), second.to_dense()
        if first.is_meta:
            return second.is_meta
        return type(first) is type(second) and torch.equal(first.nan_to_num(), second.nan_to_num())
    if isinstance(first, dict):
        pairs = zip(dict.items(first), dict.items(second), strict=True)
        return all(a == b and same(x, y) for (a, x), (b, y) in pairs)
    if isinstance(first, (list, tuple)):
        return len(first) == len(second) and all(map(same, first, second))
    if isinstance(first, Box):
        return same(first.inside, second.inside)
    return type(first) is type(second)


def recorded(function: Function) -> Any:
    """The capture of a program, after its result was compared with that of a run that nobody watched."""
    x = torch.linspace(-1, 1, 6).view(2, 3)
    expected = Runs(function)(x.clone())
    run = tensorviz.capture(Runs(function), x.clone())
    assert run.error is None
    assert same(run.result, expected)
    assert "instrumentation_error" not in {reason.code for reason in run.snapshot.reasons}
    assert parse_capture(encode(run.snapshot)) == run.snapshot
    return run.snapshot


@pytest.mark.parametrize("name", COMPLETE)
def test_recorded_in_full_is(name: str) -> None:
    snapshot = recorded(COMPLETE[name])
    assert (snapshot.status, snapshot.reasons) == ("complete", ())


@pytest.mark.parametrize("name", PARTIAL)
def test_disclosed_as_a_gap_is(name: str) -> None:
    function, reasons = PARTIAL[name]
    snapshot = recorded(function)
    assert {reason.code for reason in snapshot.reasons} == reasons


@pytest.mark.parametrize("name", EITHER)
@pytest.mark.filterwarnings("ignore")
def test_recorded_or_disclosed_and_never_disturbed_is(name: str) -> None:
    snapshot = recorded(EITHER[name])
    assert snapshot.operations
