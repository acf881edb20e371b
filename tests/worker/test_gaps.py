"""What happens where the recorder cannot see leaves a capture that says so, and torch as it was."""

import os
import shutil
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

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


def test_a_pool_that_was_there_before_the_recording_is_disclosed() -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(int).result()
        assert reasons(lambda x: x + pool.submit(lambda: x * 2).result()) == ["unobserved_thread"]


def test_a_forked_process_is_disclosed() -> None:
    def forks(x: torch.Tensor) -> torch.Tensor:
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
        return x + 1

    assert reasons(forks) == ["unobserved_process"]


@pytest.mark.parametrize("kind", [nn.BatchNorm1d, lambda width: nn.InstanceNorm1d(width, track_running_stats=True)])
def test_running_statistics_are_written_even_where_no_schema_says_so(kind: Callable[[int], nn.Module]) -> None:
    model = kind(3)
    with torch.inference_mode():
        capture = tensorviz.capture(model, torch.randn(2, 3, 4)).snapshot
    assert capture.status == "complete"
    written = {effect.before for operation in capture.operations for effect in operation.effects}
    assert {"running_mean", "running_var"} <= {state.paths[0].path for state in capture.state if state.value in written}


def test_a_custom_operator_that_counts_its_write_early_has_one_effect() -> None:
    @torch.library.custom_op("tensorviz_tests::add_one_", mutates_args={"x"})
    def add_one(x: torch.Tensor) -> None:
        x.add_(1)

    def forward(x: torch.Tensor) -> torch.Tensor:
        copy = x.clone()
        add_one(copy)
        return copy

    capture = tensorviz.capture(Runs(forward), torch.ones(2, 3)).snapshot
    assert capture.status == "complete"
    (effect,) = next(o for o in capture.operations if "add_one" in o.target).effects
    assert effect.argument == ("args", 0)


@pytest.mark.filterwarnings("ignore")
def test_a_model_that_was_compiled_before_runs_as_it_does_unrecorded() -> None:
    model = nn.Linear(3, 3)
    compiled = torch.compile(model, fullgraph=True, backend="eager")
    x = torch.ones(2, 3)
    with tensorviz.record(model) as run:
        result = compiled(x)
    assert torch.equal(result, compiled(x))
    assert [operation.target for operation in run.snapshot.operations][-1] == "aten.addmm.default"


def test_tensors_can_be_swapped_while_they_are_recorded() -> None:
    first, second = nn.Linear(3, 3), nn.Linear(3, 3)
    expected = second.weight.detach().clone()
    with tensorviz.record(first) as run:
        first(torch.ones(1, 3))
        torch.utils.swap_tensors(first.weight, second.weight)
        first(torch.ones(1, 3))
    assert torch.equal(first.weight, expected)
    assert [reason.code for reason in run.snapshot.reasons].count("unobserved_write") == 1


def test_an_argument_that_does_not_tell_its_class_is_opaque_and_costs_nothing_else() -> None:
    class Proxy:
        __class__ = property(lambda self: 1 / 0)  # type: ignore[assignment]

    class Takes(nn.Module):
        def forward(self, x: torch.Tensor, proxy: object) -> torch.Tensor:
            return x + 1

    capture = tensorviz.capture(Takes(), torch.ones(2), Proxy()).snapshot
    assert [reason.code for reason in capture.reasons] == ["unsupported_argument"]
    assert len(capture.operations) == 1


def test_a_huge_argument_is_cut_before_it_spends_the_budget_of_everything_else() -> None:
    class Takes(nn.Module):
        def forward(self, x: torch.Tensor, numbers: list[int]) -> torch.Tensor:
            return x + numbers[0]

    capture = tensorviz.capture(Takes(), torch.ones(2), list(range(10**6))).snapshot
    assert [reason.code for reason in capture.reasons] == ["argument_limit"]
    assert len(capture.operations) == 1


def test_parameters_of_scripted_and_traced_modules_are_counted_and_are_state() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scripted = torch.jit.script(nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))).eval()
        traced: Any = torch.jit.trace(nn.Linear(3, 3), torch.ones(1, 3))
    for module, count in ((scripted, 18), (traced, 12)):
        capture = tensorviz.capture(module, torch.ones(2, 3)).snapshot
        assert capture.status == "complete"
        assert capture.invocations[0].parameterCount == count
        paths = {path.path for state in capture.state for path in state.paths}
        assert paths == set(module.state_dict())


def test_a_view_that_is_gone_at_once_has_the_version_that_its_base_tells() -> None:
    class Writes(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("kept", torch.zeros(4))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            kept = self.get_buffer("kept")
            kept[:2].copy_(x)
            kept[:2].add_(1)
            return x + 1

    capture = tensorviz.capture(Writes(), torch.ones(2)).snapshot
    values = {value.id: value for value in capture.values}
    written = [values[effect.after.value] for o in capture.operations for effect in o.effects]  # type: ignore[union-attr]
    assert [value.version for value in written] == [1, 1, 2, 2]
    assert capture.status == "complete"


def test_members_with_odd_names_have_paths_of_their_own() -> None:
    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = nn.ModuleDict({"b": nn.Linear(2, 2)})
            setattr(self, "a.b", nn.Linear(2, 2))
            setattr(self, "", nn.Linear(2, 2))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return getattr(self, "")(getattr(self, "a.b")(self.a["b"](x)))

    capture = tensorviz.capture(Odd(), torch.ones(1, 2)).snapshot
    assert capture.status == "complete"
    assert [path.path for module in capture.modules for path in module.paths] == ["", "a", "a.b", "['a.b']", "['']"]
