"""Programs that Hypothesis makes up: each capture that calls itself complete reaches the same bits again."""

from collections.abc import Callable
from typing import Any

import torch
from hypothesis import event, given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from worker.test_programs import Program, generated, programs

from .oracle import Watched, judge, watch, watch_call

Instruction = tuple[str, int, int]
some = settings(generated, max_examples=100)


def rows(x: Tensor) -> Tensor:
    return x if x.dim() > 1 else x.reshape(1, -1)


def same_size(x: Tensor, y: Tensor) -> Tensor:
    """As many elements of ``y`` as ``x`` has, in its shape."""
    return y.reshape(-1).repeat(x.numel() // max(y.numel(), 1) + 1)[: x.numel()].reshape(x.shape)


# Each gets two tensors, and gives those that are new.
VIEWS: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "alias": lambda x, _: x.detach() if not x.requires_grad else x.view_as(x),
    "strided": lambda x, _: rows(x).as_strided((2,), (1,), rows(x).storage_offset()) if x.numel() > 1 else x[None],
    "windows": lambda x, _: rows(x).unfold(1, 1, 1),
    "unbind": lambda x, _: rows(x).unbind(),
    "split": lambda x, _: x.reshape(-1).split(2),
    "turned": lambda x, _: rows(x).t() if rows(x).dim() == 2 else x.mT,
    "picked": lambda x, _: rows(x)[-1, ::2],
    "broadcast": lambda x, _: x.expand(2, *x.shape),
}
RESULTS: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "product": lambda x, y: rows(x) @ rows(same_size(x, y)).mT,
    "dropout": lambda x, _: nn.functional.dropout(x, 0.5),
    "random": lambda x, _: torch.rand_like(x),
    "odd floats": lambda x, _: x * float("nan") + -0.0,
    "softmax": lambda x, _: x.reshape(-1).softmax(0),
    "sorted": lambda x, _: rows(x).sort(-1, descending=True),
    "constant": lambda x, _: x + torch.tensor(0.25),
    "stack": lambda x, y: torch.stack([x, same_size(x, y), x]),
    "doubles": lambda x, _: x.double().float(),
    "checkpoint": lambda x, _: checkpoint(lambda y: nn.functional.dropout(y.sin(), 0.3), x, use_reentrant=False),
    "left as found": lambda x, _: torch.empty_like(x),
    "number": lambda x, _: x * x.detach().nan_to_num().sum().item(),
}
WRITES: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "copy": lambda x, y: x.copy_(same_size(x, y)),
    "overlap": lambda x, _: x.reshape(-1)[1:].copy_(x.reshape(-1)[:-1].clone()),
    "index": lambda x, _: rows(x).index_put_((torch.tensor([0, 0]),), torch.ones(()), accumulate=True),
    "mask": lambda x, _: x.masked_fill_(x > 0, -1.0),
    "draw": lambda x, _: x.uniform_(),
    "list": lambda x, y: torch.ops.aten._foreach_add_.Scalar([x, y] if x is not y else [x], 1.0),
    "out": lambda x, y: torch.mul(same_size(x, y), 2.0, out=x) if not x._is_view() else x.neg_(),
    "turn in place": lambda x, _: x.t_() if x.dim() == 2 else x.unsqueeze_(0),
}
EVERYTHING = {**VIEWS, **RESULTS, **WRITES}


@st.composite
def wide_programs(draw: st.DrawFn) -> tuple[list[Instruction], bool, int]:
    """Instructions, whether gradients flow to the inputs, and the seed."""
    names = st.sampled_from([*VIEWS, *RESULTS, *WRITES, *WRITES])
    numbers = st.integers(0, 30)
    instructions = draw(st.lists(st.tuples(names, numbers, numbers), min_size=1, max_size=14))
    return instructions, draw(st.booleans()), draw(st.integers(0, 3))


def run(instructions: list[Instruction], with_gradients: bool, seed: int) -> Watched:
    torch.manual_seed(seed)
    base = torch.randn(3, 4, requires_grad=with_gradients)

    def block() -> list[Tensor]:
        found = [base * 1, base[1:], torch.ones(2, 2)]
        for name, first, second in instructions:
            with torch.set_grad_enabled(with_gradients and name not in WRITES):
                result = EVERYTHING[name](found[first % len(found)], found[second % len(found)])
            if name not in WRITES:
                found += [result] if isinstance(result, Tensor) else list(result)
        if with_gradients:
            sum((item.sum() for item in found if item.requires_grad), start=base.sum()).backward()
        return found

    return watch(block)


def assert_replays(watched: Watched) -> None:
    if watched.error is not None:
        event(f"torch refused the program with {type(watched.error).__name__}")
    verdict = judge(watched)
    assert verdict.difference is None
    assert (verdict.snapshot.status == "complete") == (verdict.error is None), verdict


@some
@given(wide_programs())
def test_a_program_of_views_writes_lists_random_numbers_and_gradients_replays(program: Any) -> None:
    assert_replays(run(*program))


@some
@given(programs())
def test_a_program_of_shared_modules_and_nested_containers_replays(program: Any) -> None:
    instructions, container, grad = program
    torch.manual_seed(0)
    base = torch.randn(4, 3)
    with torch.set_grad_enabled(grad):
        assert_replays(watch_call(Program(instructions, container), base, base[1:3], torch.ones(2, 2)))
