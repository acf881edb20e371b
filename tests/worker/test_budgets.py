"""A capture that spends a budget is partial, says which, and is a valid prefix of what the whole one would be."""

from typing import Any

import pytest
import torch
from torch import nn

import tensorviz
from tensorviz.contracts.base import encode
from tensorviz.contracts.capture import CaptureSnapshot, Limits
from tensorviz.contracts.validate import parse_capture

from .reading import lines, values


class Block(nn.Module):
    count: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.count.add_(1)
        return self.linear(x).relu_() + x


class Tower(nn.Module):
    def __init__(self, height: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(height))

    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        out = []
        for block in self.blocks:
            x = block(x)
            out.append(x)
        return out


def recorded(height: int = 6, **limits: int) -> CaptureSnapshot:
    torch.manual_seed(0)
    run = tensorviz.capture(Tower(height), torch.ones(2, 4), limits=Limits(**limits))
    return run.snapshot


def codes(snapshot: CaptureSnapshot) -> list[str]:
    return [reason.code for reason in snapshot.reasons]


@pytest.mark.parametrize("limit", [0, 1, 2, 7, 20])
def test_operations_stop_at_their_limit_and_those_before_are_all_there(limit: int) -> None:
    whole, cut = recorded(), recorded(operations=limit)
    assert (cut.status, codes(cut)) == ("partial", ["operation_limit"])
    assert lines(cut) == lines(whole)[:limit]
    assert cut.coverage.operations.model_dump() == {
        "recorded": limit,
        "omitted": len(whole.operations) - limit,
        "reason": "operation_limit",
    }


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_module_calls_stop_at_their_limit(limit: int) -> None:
    cut = recorded(invocations=limit)
    assert (cut.status, codes(cut)) == ("partial", ["invocation_limit"])
    assert len(cut.invocations) == limit
    assert cut.coverage.invocations.reason == "invocation_limit"
    assert {item.state for item in cut.coverage.modules} == {"observed", "capture_limited"}


@pytest.mark.parametrize("limit", [0, 1, 10, 40])
def test_values_stop_at_their_limit_and_operations_go_on(limit: int) -> None:
    whole, cut = recorded(), recorded(values=limit)
    assert (cut.status, codes(cut)) == ("partial", ["value_limit"])
    assert len(cut.values) == limit
    assert [operation.target for operation in cut.operations] == [operation.target for operation in whole.operations]


@pytest.mark.parametrize("size", [200_000, 350_000])
def test_bytes_stop_in_time(size: int) -> None:
    whole, cut = recorded(height=60), recorded(height=60, bytes=size)
    assert (cut.status, codes(cut)) == ("partial", ["byte_limit"])
    assert size / 10 < len(encode(cut)) <= size
    assert lines(cut) == lines(whole)[: len(cut.operations)]


@pytest.mark.parametrize("body", ["long loop", "in place", "many outputs", "deep calls"])
def test_no_kind_of_program_overruns_the_bytes(body: str) -> None:
    class Grows(nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            for number in range(4000):
                if body == "long loop":
                    x = x + 1
                elif body == "in place":
                    x.add_(1)
                elif body == "many outputs":
                    x = x.unbind(0)[0].unsqueeze(0).expand(3, 2)
                else:
                    x = leaves[number % len(leaves)](x)
            return x

    leaves = [nn.Identity() for _ in range(50)]
    for size in (100_000, 300_000, 700_000):
        run = tensorviz.capture(Grows(), torch.ones(3, 2), limits=Limits(bytes=size))
        assert codes(run.snapshot) == ["byte_limit"]
        assert len(encode(run.snapshot)) <= size


def test_a_capture_that_fits_is_never_cut() -> None:
    whole = recorded(height=20)
    exact = recorded(
        height=20, operations=len(whole.operations), invocations=len(whole.invocations), values=len(whole.values)
    )
    assert exact.status == "complete"


def test_an_argument_tree_is_cut_at_its_own_limits() -> None:
    class Takes(nn.Module):
        def forward(self, tree: Any) -> torch.Tensor:
            return tree[0] + 1

    x = torch.ones(2)
    for limits, reason in (
        (Limits(argumentDepth=2), "depth_limit"),
        (Limits(argumentItems=5), "item_limit"),
        (Limits(text=64), "text_limit"),
    ):
        run = tensorviz.capture(Takes(), [x, [[["deep"]]], list(range(20)), "long" * 100], limits=limits)
        assert codes(run.snapshot) == ["argument_limit"]
        assert f'"reason":"{reason}"' in encode(run.snapshot).decode()
        assert values(run.snapshot, *run.snapshot.invocations[0].args)[0].shape == (2,)


def test_parameter_counts_end_with_their_allowance_and_nothing_else_does() -> None:
    whole, cut = recorded(), recorded(parameterReads=3)
    assert cut.status == "complete"
    assert lines(cut) == lines(whole)
    assert {call.parameterCountUnavailable for call in cut.invocations if call.parameterCount is None} == {"read_limit"}


def test_every_cut_capture_satisfies_the_contract() -> None:
    for operations in range(0, 30, 3):
        for extra in ({}, {"values": 3 * operations}, {"invocations": 1 + operations // 4}):
            cut = recorded(operations=operations, **extra)
            assert parse_capture(encode(cut)) == cut
