"""What happens where the recorder cannot see leaves a capture that says so, and torch as it was."""

import shutil
import threading
from collections.abc import Callable

import pytest
import torch
from torch import nn

import tensorviz


class Runs(nn.Module):
    def __init__(self, function: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x)


def reasons(function: Callable[[torch.Tensor], torch.Tensor]) -> list[str]:
    run = tensorviz.capture(Runs(function), torch.ones(2, 3))
    assert torch.equal(run.result, function(torch.ones(2, 3)))
    return [reason.code for reason in run.snapshot.reasons]


def through_numpy(x: torch.Tensor) -> torch.Tensor:
    copy = x.clone()
    copy.numpy()[:] = 5
    return copy + 1


def through_a_pointer(x: torch.Tensor) -> torch.Tensor:
    return x + (x.data_ptr() == 0)


def through_new_data(x: torch.Tensor) -> torch.Tensor:
    copy = x.clone()
    copy.data = torch.zeros(3)
    return copy + 1


def through_a_view_of_its_own_data(x: torch.Tensor) -> torch.Tensor:
    copy = x.clone()
    copy.data = copy.data.t()
    return copy + 1


def on_another_thread(x: torch.Tensor) -> torch.Tensor:
    results: list[torch.Tensor] = []
    thread = threading.Thread(target=lambda: results.append(x * 3))
    thread.start()
    thread.join()
    return results[0]


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (through_numpy, "escaped_storage"),
        (through_a_pointer, "escaped_storage"),
        (through_new_data, "unobserved_write"),
        (through_a_view_of_its_own_data, "unobserved_write"),
        (on_another_thread, "unobserved_thread"),
    ],
)
def test_work_behind_the_dispatcher_is_the_reason_why_the_capture_is_partial(
    function: Callable[[torch.Tensor], torch.Tensor], reason: str
) -> None:
    assert reasons(function) == [reason]


def test_a_tensor_whose_data_was_replaced_has_a_new_value_with_the_new_facts() -> None:
    capture = tensorviz.capture(Runs(through_new_data), torch.ones(2, 3)).snapshot
    before, after = (value for value in capture.values if value.object == capture.values[1].object)
    assert (before.shape, after.shape) == ((2, 3), (3,))
    assert after.previousVersion == before.id
    assert after.producer.kind == "external"


@pytest.mark.skipif(shutil.which("g++") is None, reason="inductor needs a C++ compiler")
@pytest.mark.filterwarnings("ignore")
def test_compiled_kernels_are_disclosed_in_the_run_that_compiles_and_in_later_ones() -> None:
    compiled = torch.compile(lambda x: (x.sin() * 2).relu(), backend="inductor")
    assert "compiled_region" in reasons(compiled)  # compiling starts threads, which is another reason
    assert reasons(compiled) == ["compiled_region"]


def test_torch_is_as_it_was_after_a_recording() -> None:
    watched = [(torch.Tensor, name) for name in ("numpy", "data_ptr", "storage", "__dlpack__", "untyped_storage")]
    watched += [(nn.Module, "__call__"), (threading.Thread, "start")]
    before = [(name in owner.__dict__, getattr(owner, name)) for owner, name in watched]
    tensorviz.capture(nn.Linear(3, 3), torch.ones(2, 3))
    assert [(name in owner.__dict__, getattr(owner, name)) for owner, name in watched] == before
