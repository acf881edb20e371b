"""Programs that do unusual things: the result is the same, every operation is there, and what is missing is told."""

import copy
import functools
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
import torch
from torch import nn
from torch._higher_order_ops.associative_scan import associative_scan
from torch._higher_order_ops.map import map as map_over
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.masked import masked_tensor
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.flex_attention import flex_attention
from torch.overrides import TorchFunctionMode
from torch.utils._debug_mode import DebugMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import (
    CheckpointPolicy,
    checkpoint,
    checkpoint_sequential,
    create_selective_checkpoint_contexts,
)
from torch.utils.flop_counter import FlopCounterMode

from .witness import Row, assert_recorded_as_said, recorded, row

func = torch.func

# -- transforms


def ensemble(model: Any, x: torch.Tensor) -> Any:
    parameters, buffers = func.stack_module_state([model.linear, model.other])
    base = copy.deepcopy(model.linear).to("meta")
    return func.vmap(lambda p, b, row_: func.functional_call(base, (p, b), (row_,)), (0, 0, None))(
        parameters, buffers, x
    )


def gradients_of_each_sample(model: Any, x: torch.Tensor) -> Any:
    parameters = {name: parameter.detach() for name, parameter in model.linear.named_parameters()}

    def loss(parameters: Any, sample: torch.Tensor) -> torch.Tensor:
        return func.functional_call(model.linear, parameters, (sample,)).square().sum()

    return func.vmap(func.grad(loss), (None, 0))(parameters, x)


def pulls_back(model: Any, x: torch.Tensor) -> Any:
    output, pull, *_ = func.vjp(lambda y: y.sin() @ model.linear.weight, x)
    return pull(torch.ones_like(output))


# -- compilation


def compiled(function: Any, backend: Any = "eager") -> Any:
    return lambda model, x: torch.compile(lambda y: function(model, y), backend=backend)(x)


def breaks_the_graph(model: Any, x: torch.Tensor) -> torch.Tensor:
    y = model.linear(x)
    torch._dynamo.graph_break()
    return y.sin()


def compiled_backward(model: Any, x: torch.Tensor) -> Any:
    compiled(lambda model, y: model.linear(y).relu(), "aot_eager")(model, x).sum().backward()
    return model.linear.weight.grad


def compiled_child(model: Any, x: torch.Tensor) -> Any:
    return torch.compile(model.other, backend="eager")(model.linear(x))


def compiled_in_place(model: Any, x: torch.Tensor) -> Any:
    model.linear.compile(backend="eager")
    return model.linear(x)


def uncompiled_inside(model: Any, x: torch.Tensor) -> Any:
    layer: Any = torch.compiler.disable(model.linear)
    return torch.compile(lambda y: layer(y.sin()).cos(), backend="eager")(x)


# -- checkpoints


def then_backward(forward: Any) -> Any:
    def program(model: Any, x: torch.Tensor) -> list[Any]:
        x = x.clone().requires_grad_()
        y = forward(model, x)
        y.sum().backward()
        return [y, x.grad, model.linear.weight.grad]

    return program


def keeps_products(_: Any, operator: Any, *__: Any, **___: Any) -> CheckpointPolicy:
    keep = operator is torch.ops.aten.addmm.default
    return CheckpointPolicy.MUST_SAVE if keep else CheckpointPolicy.PREFER_RECOMPUTE


def selective(model: Any, x: torch.Tensor) -> Any:
    contexts = functools.partial(create_selective_checkpoint_contexts, keeps_products)
    return checkpoint(lambda y: model.other(model.linear(y).sin()).cos(), x, use_reentrant=False, context_fn=contexts)


def within_another(model: Any, x: torch.Tensor) -> Any:
    def inner(y: torch.Tensor) -> torch.Tensor:
        return model.linear(y).sin()

    return checkpoint(lambda y: checkpoint(inner, model.other(y), use_reentrant=False), x, use_reentrant=False)


# -- modes of computing


def autocast(model: Any, x: torch.Tensor) -> list[torch.Tensor]:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        half = model.linear(model.linear(x))
        with torch.autocast("cpu", enabled=False):
            return [half, model.linear(x)]


def inference(model: Any, x: torch.Tensor) -> torch.Tensor:
    with torch.inference_mode():
        y = model.linear(x)
        y.add_(1).view(-1).mul_(2)
    return y * 2


def without_gradient(model: Any, x: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        y = model.linear(x)
        with torch.enable_grad():
            y = model.linear(y)
    with torch.set_grad_enabled(False):
        return y + 1


def deterministic(model: Any, x: torch.Tensor) -> torch.Tensor:
    torch.use_deterministic_algorithms(True)
    try:
        return model.linear(x)
    finally:
        torch.use_deterministic_algorithms(False)


def another_default(_: Any, x: torch.Tensor) -> list[torch.Tensor]:
    with torch.device("meta"):
        elsewhere = torch.ones(3)
    torch.set_default_dtype(torch.float64)
    try:
        return [elsewhere, torch.ones(4) + x]
    finally:
        torch.set_default_dtype(torch.float32)


# -- tensors of other kinds


def jagged(x: torch.Tensor, **options: Any) -> torch.Tensor:
    return torch.nested.nested_tensor([x, x[:1]], layout=torch.jagged, **options)


def jagged_with_gradient(model: Any, x: torch.Tensor) -> Any:
    (model.linear(jagged(x, requires_grad=True)) * 2).values().sum().backward()
    return model.linear.weight.grad


def coordinates(_: Any, x: torch.Tensor) -> list[torch.Tensor]:
    sparse = x.to_sparse()
    sparse.mul_(2)
    return [sparse + sparse, torch.sparse.mm(sparse, x.T), sparse.coalesce().values(), sparse.to_dense()]


def sparse_gradient(_: Any, __: torch.Tensor) -> Any:
    layer = nn.Embedding(5, 3, sparse=True)
    layer(torch.tensor([1, 2])).sum().backward()
    return layer.weight.grad


def quantized(_: Any, x: torch.Tensor) -> list[Any]:
    by_tensor = torch.quantize_per_tensor(x, 0.1, 0, torch.qint8)
    by_channel = torch.quantize_per_channel(x, torch.ones(2), torch.zeros(2, dtype=torch.long), 0, torch.qint8)
    return [by_tensor, by_channel, by_tensor.dequantize(), by_channel.int_repr(), by_tensor.q_scale()]


def complex_views(_: Any, x: torch.Tensor) -> list[torch.Tensor]:
    c = torch.complex(x, x).conj()
    c.imag.add_(1)
    return [c * 2, c.imag.resolve_neg(), c.real, c.H, torch.view_as_real(c.resolve_conj()), torch.fft.fft(x)]


def small_floats(_: Any, x: torch.Tensor) -> list[torch.Tensor]:
    kinds = (torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz)
    return [x.to(kind).to(torch.float32) for kind in kinds] + [x.abs().to(torch.float8_e8m0fnu).to(torch.float32)]


def unsigned(_: Any, __: torch.Tensor) -> list[torch.Tensor]:
    kinds = (torch.uint16, torch.uint32, torch.uint64)
    return [torch.tensor([1, 2], dtype=kind) for kind in kinds] + [torch.full((1,), 2**63, dtype=torch.uint64)]


def masked(_: Any, x: torch.Tensor) -> Any:
    tensor: Any = masked_tensor(x, x > 0) * 2
    return tensor.to_tensor(0)


class Wrapper(torch.Tensor):
    """A subclass with ``__torch_dispatch__``, which computes with the tensor inside it."""

    inside: torch.Tensor

    @staticmethod
    def __new__(cls, inside: torch.Tensor) -> Any:
        return torch.Tensor._make_wrapper_subclass(cls, inside.shape, dtype=inside.dtype)

    def __init__(self, inside: torch.Tensor) -> None:
        self.inside = inside

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        unwrapped = [arg.inside if isinstance(arg, Wrapper) else arg for arg in args]
        return Wrapper(func(*unwrapped, **(kwargs or {})))


def wraps(_: Any, x: torch.Tensor) -> torch.Tensor:
    result: Any = Wrapper(x) * 2 + 1
    return result.inside


class Tagged(torch.Tensor):
    """A subclass without behaviour of its own."""


class Logged(torch.Tensor):
    """A subclass with ``__torch_function__``."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return super().__torch_function__(func, types, args, kwargs or {})


class HidesItsShape(torch.Tensor):
    @property
    def shape(self) -> Any:  # type: ignore[override]
        raise RuntimeError("do not call me")


# -- modes of the program's own


class Doubles(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        return result * 2 if func is torch.ops.aten.add.Tensor else result


class Skips(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return args[0] if func is torch.ops.aten.sin.default else func(*args, **(kwargs or {}))


class Functions(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def under(mode: Callable[[], Any]) -> Any:
    def program(model: Any, x: torch.Tensor) -> torch.Tensor:
        with mode():
            return (model.linear(x) + 1).sin().cos()

    return program


def counts_flops(model: Any, x: torch.Tensor) -> int:
    with FlopCounterMode(display=False) as counter:
        model.linear(x).sum().backward()
    return counter.get_total_flops()


def fake_inside(_: Any, x: torch.Tensor) -> list[Any]:
    with FakeTensorMode():
        size = torch.ones(3, 4).sin().shape
    return [x + 1, tuple(size)]


# -- operators of the program's own


@torch.library.custom_op("tensorviz_hard::wave", mutates_args=())
def wave(x: torch.Tensor) -> torch.Tensor:
    return x.sin() + 1


wave.register_autograd(lambda _, grad: grad * 2)


def custom_operator(model: Any, x: torch.Tensor) -> list[Any]:
    y = wave(model.linear(x))
    y.sum().backward()
    return [y, model.linear.weight.grad]


LIBRARY = torch.library.Library("tensorviz_hard", "FRAGMENT")
LIBRARY.define("composed(Tensor x) -> Tensor")
LIBRARY.impl("composed", lambda x: x.sin() * 2, "CompositeImplicitAutograd")


# -- control flow operators


def branches(model: Any, x: torch.Tensor) -> Any:
    return torch.cond(x.sum() > 0, lambda y: model.linear(y).sin(), lambda y: model.other(y).cos(), (x,))


def loops(_: Any, x: torch.Tensor) -> Any:
    return list(while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y.sin()), (torch.tensor(0), x)))


def branches_within(model: Any, x: torch.Tensor) -> Any:
    def inner(y: torch.Tensor) -> Any:
        return torch.cond(y.sum() > 9, lambda z: z.sin(), lambda z: functional.dropout(model.linear(z), 0.3), (y,))

    return while_loop(lambda i, _: i < 2, lambda i, y: (i + 1, inner(y)), (torch.tensor(0), x))[1]


def scans(_: Any, x: torch.Tensor) -> Any:
    return list(scan(lambda carry, y: (carry + y, carry * y + 0), torch.zeros(4), x))


def loops_to(_: Any, x: torch.Tensor) -> torch.Tensor:
    return while_loop(lambda i, y: i < 2, lambda i, y: (i + 1, y.sin()), (torch.tensor(0), x))[1].sum()


def scans_to(_: Any, x: torch.Tensor) -> torch.Tensor:
    return scan(lambda carry, y: (carry * y.sin(), (carry * y).cos()), torch.ones(4), x)[1].sum()


def maps_to(model: Any, x: torch.Tensor) -> torch.Tensor:
    return map_over(lambda y, weight: y.sin() @ weight, x, model.other.weight).sum()


def attends(x: torch.Tensor) -> torch.Tensor:
    q = x.view(1, 1, 2, 4)
    return functional.scaled_dot_product_attention(q, q, q, is_causal=True)


def attends_by_formula(_: Any, x: torch.Tensor) -> torch.Tensor:
    with sdpa_kernel(SDPBackend.MATH):
        return attends(x)


# -- the ordinary


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


def indexes(_: Any, x: torch.Tensor) -> list[torch.Tensor]:
    return [x[0], x[..., 1], x[:, None], x[[0, 1]], x[x > 0], x[0, 1:], x[-1:, ::2], *torch.where(x > 0)]


def takes_apart(_: Any, x: torch.Tensor) -> list[torch.Tensor]:
    return [*x.split(1), *x.chunk(2), *x.unbind(1), *torch.sort(x), *x.max(dim=0), x.unique()]


def with_numbers(_: Any, x: torch.Tensor) -> list[torch.Tensor]:
    numbers = [x + 1, x * 2.5, x + True, x**2, x / 3, x * float("inf"), x * -0.0, torch.full((1,), 2**53 + 1)]
    return [*numbers, x.to(torch.complex64) * 1j, x.half(), x.bool(), x.to(torch.uint8)]


def survives(model: Any, x: torch.Tensor) -> torch.Tensor:
    survived = x
    for attempt in (lambda: x @ torch.ones(5), lambda: x.view(7), lambda: model.linear(x.T[:, :1])):
        try:
            attempt()
        except RuntimeError:
            survived = survived + 1
    return survived


def uses_addresses_again(_: Any, x: torch.Tensor) -> torch.Tensor:
    """Many short-lived tensors, at addresses that are used again and again."""
    for _ in range(300):
        x = (x + 1).view(-1).view(2, 4) - 1
    return x


def losses(model: Any, x: torch.Tensor) -> list[torch.Tensor]:
    y, labels = model.linear(x), torch.tensor([0, 2])
    return [functional.cross_entropy(y, labels), functional.mse_loss(y, x), functional.kl_div(y.log_softmax(-1), x)]


ROWS: dict[str, Row] = {
    "indexing of every kind": row(indexes),
    "split, chunk, unbind, sort, max, unique": row(takes_apart),
    "numbers and dtypes of every kind": row(with_numbers),
    "results in dicts, named tuples, dataclasses": row(
        lambda _, x: {"pair": Pair(x + 1, x), "box": Box(x * 2), 3: Lying(result=[x + 1])}
    ),
    "a result that nobody can read": row(lambda _, x: (x + 1, object()), "unsupported_argument"),
    "errors of operations that the model survives": row(survives),
    "addresses used again": row(uses_addresses_again),
    "losses": row(losses),
    "`einsum`": row(lambda _, x: torch.einsum("ij,kj->ik", x, x)),
    "random numbers, dropout, a generator": row(
        lambda _, x: functional.dropout(x + torch.rand(4, generator=torch.Generator().manual_seed(1)), 0.5)
    ),
    "recurrent layers": row(lambda _, x: nn.LSTM(4, 5, 2, bidirectional=True)(x), "dynamic_state"),
    "`vmap`": row(lambda model, x: func.vmap(lambda y: (y @ model.linear.weight).sin() + torch.arange(4))(x)),
    "`vmap` that writes in place": row(lambda _, x: func.vmap(lambda y: y.add_(1))(x.clone())),
    "`vmap` in `vmap`, in chunks": row(lambda _, x: func.vmap(func.vmap(torch.sin), chunk_size=1)(x)),
    "`vmap` with random numbers": row(lambda _, x: func.vmap(lambda y: y + torch.rand(4), randomness="different")(x)),
    "a module called inside `vmap`": row(lambda model, x: func.vmap(model.linear)(x), "unsupported_tensor"),
    "`func.grad`, `func.hessian`": row(lambda _, x: [func.grad(total)(x), func.hessian(total)(x)]),
    "a module called inside `func.grad`": row(
        lambda model, x: func.grad(lambda y: model.linear(y).sum())(x), "unsupported_tensor"
    ),
    "`vjp`": row(pulls_back),
    "`jvp`, `jacrev`, `jacfwd`": row(
        lambda _, x: [func.jvp(torch.sin, (x,), (x,)), func.jacrev(torch.sin)(x), func.jacfwd(torch.sin)(x)]
    ),
    "`linearize`": row(lambda _, x: func.linearize(torch.sin, x)[1](x), "dynamic_state"),
    "`functionalize`": row(lambda _, x: func.functionalize(lambda y: y.clone().add_(1).view(-1))(x)),
    "`functional_call`": row(lambda model, x: func.functional_call(model.linear, {"weight": x.new_ones(4, 4)}, (x,))),
    "`stack_module_state` and `vmap`: an ensemble": row(ensemble, "unsupported_tensor", "dynamic_state"),
    "gradients of each sample": row(gradients_of_each_sample, "unsupported_tensor"),
    "`torch.compile`, backend eager": row(compiled(lambda model, y: model.linear(y).relu())),
    "`torch.compile`, backend aot_eager, with its backward": row(compiled_backward),
    "`torch.compile`, a backend of the program's own": row(
        compiled(lambda model, y: model.linear(y).relu(), lambda graph, _: graph.forward)
    ),
    "`torch.compile` with graph breaks": row(compiled(breaks_the_graph)),
    "a compiled child, `Module.compile`": row(lambda model, x: compiled_child(model, compiled_in_place(model, x))),
    "`torch.compiler.disable` inside compiled code": row(uncompiled_inside),
    "`torch.fx` graphs, `make_fx`": row(lambda _, x: make_fx(lambda y: y.sin() + 1)(x)(x)),
    "`torch.export`, and a call of what it gives": row(
        lambda model, x: torch.export.export(model.linear, (x,)).module()(x), "dynamic_state"
    ),
    "`torch.cond`": row(branches, "unsupported_argument"),
    "`torch.cond`, with its backward": row(
        then_backward(lambda model, x: branches(model, model.linear(x))), "unsupported_argument"
    ),
    "`torch.cond` in `torch.cond`, with its backward": row(
        then_backward(lambda model, x: torch.cond(x.sum() > 9, torch.sin, lambda y: branches(model, y).cos(), (x,))),
        "unsupported_argument",
    ),
    "`torch.cond` in `while_loop`": row(branches_within, "unsupported_argument"),
    "`torch.cond` under `torch.compile`, with its backward": row(
        then_backward(compiled(branches, "aot_eager")), "unsupported_argument"
    ),
    "`while_loop`, `scan`, `map`, with their backward": row(
        then_backward(lambda model, x: sum(loop(model, model.linear(x)) for loop in (loops_to, scans_to, maps_to))),
        "unsupported_argument",
    ),
    "`while_loop`": row(loops, "unsupported_argument"),
    "`scan`": row(scans, "unsupported_argument"),
    "`map` over a tensor": row(
        lambda model, x: map_over(lambda y, w: y.sin() @ w, x, model.linear.weight), "unsupported_argument"
    ),
    "`associative_scan`": row(lambda _, x: associative_scan(torch.add, x, dim=0, combine_mode="generic")),
    "`flex_attention`": row(
        lambda _, x: flex_attention(
            *[x.view(1, 1, 2, 4).repeat(1, 1, 8, 4)] * 3, score_mod=lambda score, *_: score * 2
        ),
        "unsupported_argument",
        "unsupported_tensor",
    ),
    "checkpoint without reentry": row(then_backward(lambda model, x: checkpoint(model.linear, x, use_reentrant=False))),
    "checkpoint with reentry": row(then_backward(lambda model, x: checkpoint(model.linear, x, use_reentrant=True))),
    "checkpoint within checkpoint": row(then_backward(within_another)),
    "checkpoint with dropout": row(
        then_backward(
            lambda model, x: checkpoint(lambda y: functional.dropout(model.linear(y), 0.5), x, use_reentrant=False)
        )
    ),
    "`checkpoint_sequential`": row(
        then_backward(lambda model, x: checkpoint_sequential([model.linear, model.other], 2, x, use_reentrant=False))
    ),
    "selective checkpoint": row(then_backward(selective)),
    "autocast": row(autocast),
    "inference mode": row(inference),
    "`no_grad`, `enable_grad`, `set_grad_enabled`": row(without_gradient),
    "deterministic algorithms": row(deterministic),
    "another default device or dtype": row(another_default),
    "nested tensors, jagged": row(lambda model, x: (model.linear(jagged(x)) * 2).values()),
    "nested tensors, jagged, with backward": row(jagged_with_gradient),
    "nested tensors, jagged, padded": row(lambda _, x: torch.nested.to_padded_tensor(jagged(x), 0.0)),
    "nested tensors, strided": row(lambda _, x: torch.nested.nested_tensor([x, x[:1]]) * 2),
    "sparse tensors, coordinates": row(coordinates),
    "sparse tensors, compressed: CSR, CSC, BSR, BSC": row(
        lambda _, x: [x.to_sparse_csr() @ x.T, x.to_sparse_csc(), x.to_sparse_bsr((2, 2)), x.to_sparse_bsc((2, 2))]
    ),
    "a sparse gradient": row(sparse_gradient, "dynamic_state"),
    "quantized tensors, per tensor and per channel": row(quantized),
    "complex tensors, conjugate and negative views": row(complex_views),
    "float8 of every kind": row(small_floats),
    "`uint16`, `uint32`, `uint64`": row(unsigned),
    "`mkldnn` layout": row(lambda _, x: (x.to_mkldnn() + x.to_mkldnn()).to_dense()),
    "meta tensors": row(lambda _, x: [torch.empty(2, 3, device="meta") + 1, x.to("meta")]),
    "tensors without elements or dimensions": row(
        lambda _, x: [torch.empty(0, 3).sum(), torch.tensor(3.0) * x, torch.empty(2, 0) @ torch.empty(0, 2)]
    ),
    "expanded, unfolded, reinterpreted tensors": row(
        lambda _, x: [x.expand(3, 2, 4), x.unfold(1, 2, 1), x.view(torch.int32), x.view(torch.uint8)]
    ),
    "masked tensors": row(masked, "unobserved_operation"),
    "a subclass with `__torch_dispatch__`": row(wraps, "unobserved_operation"),
    "a subclass without behaviour": row(lambda _, x: x.as_subclass(Tagged) * 2),
    "a subclass with `__torch_function__`": row(lambda _, x: (x.as_subclass(Logged) * 2 + 1).sum()),
    "a subclass that refuses to tell its shape": row(
        lambda _, x: (x.as_subclass(HidesItsShape) * 2).as_subclass(torch.Tensor)
    ),
    "a dispatch mode inside that changes results": row(under(Doubles)),
    "a dispatch mode inside that leaves operations out": row(under(Skips)),
    "a function mode inside": row(under(Functions)),
    "`FlopCounterMode` inside": row(counts_flops),
    "`DebugMode` inside": row(under(DebugMode)),
    "`FakeTensorMode` inside": row(fake_inside),
    "a profiler inside": row(under(lambda: torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]))),
    "`record_function`": row(under(lambda: torch.profiler.record_function("range"))),
    "a custom operator with a gradient": row(custom_operator),
    "an operator composed of others": row(lambda model, x: torch.ops.tensorviz_hard.composed(model.linear(x))),
    "scaled dot product attention": row(lambda _, x: attends(x)),
    "attention by a chosen backend": row(attends_by_formula),
}


def total(x: torch.Tensor) -> torch.Tensor:
    return x.sin().square().sum()


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.filterwarnings("ignore")
def test_the_coverage_page_tells_of(name: str) -> None:
    assert_recorded_as_said(ROWS[name])


@pytest.mark.skipif(shutil.which("g++") is None, reason="inductor needs a C++ compiler")
@pytest.mark.filterwarnings("ignore")
def test_what_inductor_compiles_is_told_apart_from_what_it_leaves_to_torch() -> None:
    snapshot = recorded(compiled(lambda model, y: model.linear(y).relu().sin(), "inductor"))
    assert [reason.code for reason in snapshot.reasons] == ["compiled_region"]
    assert snapshot.operations[0].target == "aten.addmm.out"
