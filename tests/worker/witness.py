"""Runs a small program unwatched, under a mode that shares no code with ours, and recorded; the three must agree.

A program is a function of a model and an input. A row of docs/coverage.md is such a program, and what is said of it.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, is_dataclass
from types import FunctionType
from typing import Any

import torch
from torch import nn
from torch._ops import HigherOrderOperator
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

import tensorviz
from tensorviz.contracts.base import encode
from tensorviz.contracts.capture import CaptureSnapshot
from tensorviz.contracts.validate import parse_capture

Program = Callable[[Any, torch.Tensor], Any]


class Model(nn.Module):
    """Is one program, and owns a few modules for it to use."""

    kept: torch.Tensor

    def __init__(self, program: Program) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.program = program
        self.linear, self.other, self.norm = nn.Linear(4, 4), nn.Linear(4, 4), nn.BatchNorm1d(4)
        self.register_buffer("kept", torch.zeros(4))

    def forward(self, x: torch.Tensor) -> Any:
        return self.program(self, x)


@dataclass(frozen=True)
class Row:
    """What a program does, and for which reasons its capture is partial. Without any, the capture is complete."""

    program: Program
    reasons: frozenset[str]
    make: Callable[[Program], nn.Module] = Model


def row(program: Program, *reasons: str) -> Row:
    return Row(program, frozenset(reasons))


def row_of_module(make: Callable[[], nn.Module], *reasons: str) -> Row:
    """The program is one call of the module that is made."""
    return Row(lambda model, x: model(x), frozenset(reasons), lambda _: _seeded(make))


def _seeded(make: Callable[[], nn.Module]) -> nn.Module:
    torch.manual_seed(0)
    return make()


class Witness(TorchDispatchMode):
    """Lists the operations that torch dispatches."""

    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        return True

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if isinstance(func, HigherOrderOperator):
            return self._operator_with_bodies(func, args, kwargs or {})
        if func is not torch.ops.prim.device.default:  # how a fake tensor tells its device; no computation
            self.seen.append(str(func))
        return func(*args, **(kwargs or {}))

    def _operator_with_bodies(self, func: Any, args: Any, kwargs: Any) -> Any:
        """It is listed when it has run, after the operations of the functions that it calls."""
        try:
            return func(*tree_map_only((FunctionType, nn.Module), self._watching, args), **kwargs)
        finally:
            self.seen.append(str(func))

    def _watching(self, body: Any) -> Any:
        def watched(*args: Any) -> Any:
            with self:
                return body(*args)

        return watched


@dataclass(frozen=True)
class Outcome:
    result: Any
    error: tuple[type, str] | None
    warned: list[tuple[type, str]]
    random_state: torch.Tensor


def outcome(run: Callable[[], Any]) -> Outcome:
    """Everything that a caller can tell of a run, from the same random state each time."""
    torch.manual_seed(1)
    result, error = None, None
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            result = run()
        except Exception as raised:
            error = type(raised), str(raised)
    return Outcome(result, error, [(w.category, str(w.message)) for w in warned], torch.get_rng_state())


def example() -> torch.Tensor:
    return torch.linspace(-1, 1, 8).view(2, 4)


def recorded(program: Program, make: Callable[[Program], nn.Module] = Model, sees_all: bool = True) -> CaptureSnapshot:
    """The capture of a program whose result was not changed and, if it is to see all, that misses no operation."""
    unwatched(program, make)  # what torch says or compiles once, it says or compiles now
    model, x = make(program), example()
    runs: list[tensorviz.Recording] = []

    def record() -> Any:
        runs.append(tensorviz.capture(model, x))
        return runs[0].result

    assert_same(outcome(record), unwatched(program, make))
    snapshot = runs[0].snapshot
    assert parse_capture(encode(snapshot)) == snapshot
    if sees_all:
        targets, seen = [operation.target for operation in snapshot.operations], witnessed(program, make)
        assert targets == seen, (targets, seen)
    return snapshot


def unwatched(program: Program, make: Callable[[Program], nn.Module] = Model) -> Outcome:
    model, x = make(program), example()
    return outcome(lambda: model(x))


def witnessed(program: Program, make: Callable[[Program], nn.Module] = Model) -> list[str]:
    model, x, witness = make(program), example(), Witness()

    def watch() -> Any:
        with witness:
            return model(x)

    outcome(watch)
    return witness.seen


def assert_same(found: Outcome, expected: Outcome) -> None:
    assert found.error == expected.error, (found.error, expected.error)
    assert found.warned == expected.warned, (found.warned, expected.warned)
    assert same(found.result, expected.result)
    assert torch.equal(found.random_state, expected.random_state)


def same(first: Any, second: Any) -> bool:
    """Equal in kind, and tensors in every bit."""
    if isinstance(first, torch.Tensor):
        return _same_tensor(first, second)
    if isinstance(first, dict):
        return same(list(dict.items(first)), list(dict.items(second)))
    if is_dataclass(first):
        return type(first) is type(second) and same(vars(first), vars(second))
    if isinstance(first, (list, tuple)):
        return type(first) is type(second) and len(first) == len(second) and all(map(same, first, second))
    return first == second if isinstance(first, (str, int, type(None))) else type(first) is type(second)


def _same_tensor(first: torch.Tensor, second: torch.Tensor) -> bool:
    if (type(first), first.dtype, first.layout, first.requires_grad) != (
        type(second),
        second.dtype,
        second.layout,
        second.requires_grad,
    ) or type(first.grad_fn) is not type(second.grad_fn):
        return False
    if first.is_nested:
        return all(map(_same_tensor, first.detach().unbind(), second.detach().unbind()))
    return first.shape == second.shape and (first.is_meta or torch.equal(_bits(first), _bits(second)))


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    plain = tensor.detach().to_dense() if tensor.layout is not torch.strided else tensor.detach()
    plain = plain.int_repr() if plain.is_quantized else plain.resolve_conj().resolve_neg()
    flat = plain.contiguous().view(-1)
    return flat.view(torch.uint8) if flat.numel() else flat


def assert_recorded_as_said(said: Row, sees_all: bool = True) -> None:
    snapshot = recorded(said.program, said.make, sees_all)
    assert {reason.code for reason in snapshot.reasons} == said.reasons, snapshot.reasons
    assert snapshot.status == ("partial" if said.reasons else "complete")
