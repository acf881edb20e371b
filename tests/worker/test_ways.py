"""An operator that a mode calls computes what it computes without one: its gradient, version counts and casts too."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tensorviz_worker.ways import way_of

LIBRARY = torch.library.Library("tensorviz_ways", "FRAGMENT")


def define(schema: str, kernel: Callable[..., Any], key: str) -> None:
    LIBRARY.define(schema)
    LIBRARY.impl(schema.partition("(")[0], kernel, key)


define("wave(Tensor x) -> Tensor", lambda x: x.sin(), "CPU")
define("composed(Tensor x) -> Tensor", lambda x: x.sin() * 2, "CompositeExplicitAutograd")
define("square(Tensor x) -> Tensor", lambda x: x @ x, "CPU")
define("add_one_(Tensor(a!) x) -> ()", lambda x: (x.add_(1), None)[1], "CPU")
define("first(Tensor(a) x) -> Tensor(a)", lambda x: x[0], "CPU")
own = torch.ops.tensorviz_ways


class Calls(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        way = way_of(func)
        return func(*args, **(kwargs or {})) if way is None else way(func, args, kwargs or {})


def leaf() -> torch.Tensor:
    return torch.linspace(0.1, 1, 4).view(2, 2).requires_grad_()


def gradient(operator: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    x = leaf()
    operator(x).sum().backward()
    return x.grad


def written_before_backward(write: Callable[[torch.Tensor], Any]) -> str:
    """What autograd says of a tensor that it had saved, and that was written behind its back."""
    x = leaf()
    y = x.exp()
    with torch.no_grad():
        write(y)
    with pytest.raises(RuntimeError) as raised:
        y.sum().backward()
    return str(raised.value)


def casts(compute: Callable[[torch.Tensor], torch.Tensor], within: Callable[[], Any] = nullcontext) -> torch.dtype:
    with within(), torch.autocast("cpu", dtype=torch.bfloat16):
        return compute(leaf().detach()).dtype


def bilinear_in_half() -> torch.Tensor:
    x = leaf().detach()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return torch.nn.functional.bilinear(x, x, torch.full((2, 2, 2), 0.3))


def a_view() -> tuple[bool, int, int]:
    x = torch.zeros(2, 2)
    view = own.first(x)
    view.add_(1)
    return view._is_view(), x._version, view._version


def written_without_gradient() -> tuple[int, bool]:
    x = torch.ones(2, 2)
    with torch.inference_mode():
        x.square_()
        return x._version, x.T._is_view()


def written_below_autograd() -> int:
    """As in a branch of ``torch.cond``."""
    x = torch.ones(2, 2)
    with torch._C._AutoDispatchBelowAutograd():
        x.square_()
    return x._version


PROGRAMS: dict[str, Callable[[], Any]] = {
    "the gradient of an operator that only has a kernel": lambda: gradient(own.wave),
    "the gradient of an operator that is composed of others": lambda: gradient(own.composed),
    "the write of an operator that only has a kernel": lambda: written_before_backward(own.add_one_),
    "the write of a list of tensors": lambda: written_before_backward(
        lambda y: torch.ops.aten._foreach_add_.Scalar([y], 1.0)
    ),
    "a view that an operator gives": a_view,
    "a cast inside an operator": lambda: casts(own.square),
    "a cast inside torch's own operator": bilinear_in_half,
    "a cast inside an operator that inference leaves whole": lambda: casts(
        lambda x: torch.einsum("ij,jk->ik", x, x), torch.inference_mode
    ),
    "a cast inside an operator that comes whole below autograd": lambda: casts(
        lambda x: torch.einsum("ij,jk->ik", x, x), torch._C._AutoDispatchBelowAutograd
    ),
    "writes and views of other tensors in inference mode": written_without_gradient,
    "a write of a composed operator below autograd": written_below_autograd,
    "an operator without a rule for vmap": lambda: torch.func.vmap(own.wave)(leaf().detach()),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.filterwarnings("ignore")
def test_called_by_a_mode_it_is_the_same(name: str) -> None:
    expected = PROGRAMS[name]()
    with Calls():
        found = PROGRAMS[name]()
    assert torch.equal(found, expected) if isinstance(expected, torch.Tensor) else found == expected
    assert isinstance(expected, torch.Tensor) or found is not None


def test_nearly_every_operator_of_torch_is_called_as_it_is() -> None:
    aten = torch.ops.aten
    plain = (aten.add.Tensor, aten.add_.Tensor, aten.mm.default, aten.linear.default, aten._foreach_add.Scalar)
    assert [way_of(operator) for operator in (*plain, torch.ops.prim.device.default)] == [None] * 6
    assert way_of(torch.cond) is None
