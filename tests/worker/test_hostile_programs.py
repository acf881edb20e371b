"""Objects, names and endings that a recorder may trip over: each costs what it hides, and the program nothing."""

import dataclasses
import gc
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch
from torch import nn

import tensorviz
from tensorviz.contracts.arguments import OpaqueArgument


class Ignores(nn.Module):
    """Takes anything, and makes one operation."""

    def forward(self, x: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
        return x + 1


class Unhashable(type):
    __hash__ = None  # type: ignore[assignment]

    @property
    def __name__(cls) -> str:  # type: ignore[override]
        raise RuntimeError("not for you")


class HasNoName(metaclass=Unhashable):
    pass


class ClaimsToBe:
    def __init__(self, kind: Any) -> None:
        self.kind = kind

    @property
    def __class__(self) -> Any:  # type: ignore[override]
        if self.kind is None:
            raise RuntimeError("not for you")
        return self.kind


@dataclasses.dataclass
class KeepsItsFields:
    size: int = 1

    @property
    def __dict__(self) -> Any:  # type: ignore[override]
        raise RuntimeError("not for you")


STRANGERS = {
    "a mock of a tensor": lambda: mock.Mock(spec=torch.Tensor),
    "a proxy of a parameter": lambda: ClaimsToBe(nn.Parameter),
    "an object that claims to be a number": lambda: ClaimsToBe(int),
    "an object that does not tell its class": lambda: ClaimsToBe(None),
    "an object of a class without hash and name": HasNoName,
    "a dataclass with a dictionary of its own making": KeepsItsFields,
}


@pytest.mark.parametrize("name", STRANGERS)
def test_a_strange_argument_is_one_opaque_node_and_costs_nothing_else(name: str) -> None:
    run = tensorviz.capture(Ignores(), torch.ones(2), STRANGERS[name]())
    assert torch.equal(run.result, torch.full((2,), 2.0))
    assert [(reason.code, reason.count) for reason in run.snapshot.reasons] == [("unsupported_argument", 1)]
    assert isinstance(run.snapshot.invocations[0].args[1], OpaqueArgument)
    assert len(run.snapshot.operations) == 1


def test_names_with_half_of_a_surrogate_pair_are_told_with_a_question_mark() -> None:
    model = nn.Sequential(nn.Identity())
    model.register_buffer("half\ud83d", torch.ones(1))
    model.add_module("other\ud83d", Ignores())
    snapshot = tensorviz.capture(model, torch.ones(2)).snapshot
    assert snapshot.status == "complete"
    assert {path.path for state in snapshot.state for path in state.paths} == {"half?"}
    assert {path.path for module in snapshot.modules for path in module.paths} == {"", "0", "other?"}
    named = tensorviz.capture(Ignores(), torch.ones(2), **{"key\ud83d": 1}).snapshot  # type: ignore[arg-type]
    assert [argument.name for argument in named.invocations[0].kwargs] == ["key?"]


def test_sizes_beyond_what_a_float_holds_exactly_are_text() -> None:
    class Expands(nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            return x.expand(2**52), torch.empty(2**55, device="meta"), x.as_strided((0, 2**40), (2**61, 1))

    snapshot = tensorviz.capture(Expands(), torch.ones(1)).snapshot
    assert snapshot.status == "complete"
    shapes = [tuple(value.shape) for value in snapshot.values[1:]]
    assert shapes == [(2**52,), (f"+{2**55}",), (0, 2**40)]
    assert snapshot.values[3].strides == (f"+{2**61}", 1)
    assert [value.logicalBytes for value in snapshot.values] == [4, None, None, 0]


def test_attributes_that_a_subclass_overrides_are_not_called() -> None:
    class Lies(torch.Tensor):
        @property
        def shape(self) -> Any:  # type: ignore[override]
            torch.rand(1)
            return torch.Size((99,))

        dtype = device = layout = property(lambda _: (torch.rand(1), None)[1])  # type: ignore[assignment]

    torch.manual_seed(0)
    expected = torch.rand(1)
    torch.manual_seed(0)
    snapshot = tensorviz.capture(Ignores(), torch.ones(3).as_subclass(Lies)).snapshot
    assert torch.equal(torch.rand(1), expected)
    assert {(tuple(value.shape), value.dtype) for value in snapshot.values} == {((3,), "torch.float32")}


class TimeIsUp(Exception):
    pass


@pytest.fixture
def alarm() -> Iterator[None]:
    def ring(*_: Any) -> None:
        raise TimeIsUp

    before = signal.signal(signal.SIGALRM, ring)
    gc.disable()  # Python drops what is raised while a callback of the collector runs, as Hypothesis has one
    yield
    gc.enable()
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("alarm")
def test_a_time_limit_that_strikes_while_an_event_is_recorded_ends_the_program() -> None:
    class Loops(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            until = time.monotonic() + 5  # far beyond the alarm
            while time.monotonic() < until:
                x = x + 1
            return x

    for attempt in range(15):
        signal.setitimer(signal.ITIMER_REAL, 0.02 + attempt / 1000)
        run = tensorviz.capture(Loops(), torch.ones(2))
        assert isinstance(run.error, TimeIsUp)
        assert run.snapshot.termination.kind == "raised"
        assert "run_failed" in {reason.code for reason in run.snapshot.reasons}


def test_modules_nest_as_deeply_as_without_a_recording() -> None:
    def deep(levels: int) -> nn.Module:
        model: nn.Module = nn.Identity()
        for _ in range(levels):
            model = nn.Sequential(model)
        return model

    def deepest() -> int:
        """The most levels that pass, found from where a recording would start."""
        levels = 0
        for step in (128, 64, 32, 16, 8, 4, 2, 1):
            try:
                deep(levels + step)(torch.ones(1))
                levels += step
            except RecursionError:
                continue
        return levels

    limit = sys.getrecursionlimit()
    levels = min(deepest() - 16, 230)
    run = tensorviz.capture(deep(levels), torch.ones(1))
    assert (run.status, len(run.snapshot.invocations)) == ("complete", levels + 1)
    assert sys.getrecursionlimit() == limit


def test_how_a_run_ended_is_told_although_the_recorder_failed_before(monkeypatch: pytest.MonkeyPatch) -> None:
    from tensorviz_worker.values import Values

    class Fails(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = x + 1
            monkeypatch.setattr(Values, "settle", None)
            x = x + 1
            raise KeyError("the program's own")

    run = tensorviz.capture(Fails(), torch.ones(2))
    monkeypatch.undo()
    assert isinstance(run.error, KeyError)
    assert run.snapshot.termination.kind == "raised"
    assert {reason.code for reason in run.snapshot.reasons} == {"run_failed", "instrumentation_error"}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_code_that_claims_to_be_from_a_pipe_is_recorded_without_reading_it(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.py"
    os.mkfifo(pipe)
    names: dict[str, Any] = {}
    exec(compile("def forward(x): return x + 1", str(pipe), "exec"), names)
    with tensorviz.record() as run:
        names["forward"](torch.ones(2))
    assert [file.digest for file in run.snapshot.source.files if file.path.endswith("pipe.py")] == [None]


def test_a_result_that_is_dropped_at_once_does_not_claim_to_need_no_gradient() -> None:
    class Drops(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x.sum()
            return x + 1

    snapshot = tensorviz.capture(Drops(), torch.ones(2, requires_grad=True)).snapshot
    assert [value.requiresGrad for value in snapshot.values] == [True, None, True]
