"""What a program computes, raises, keeps alive and calls is the same with a recording around it as without."""

import copy
import gc
import pickle
import random
import threading
import traceback
import warnings
import weakref
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch._C import _len_torch_dispatch_stack
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode, _pop_mode

import tensorviz

from .reading import lines


class Network(nn.Module):
    """Has randomness, buffers that change in training, in-place writes and views."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(3, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.dropout = nn.Dropout(0.5)
        self.head = nn.Linear(4 * 4 * 4, 5)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        x = self.norm(self.convolution(images)).relu_()
        x = x[:, :, ::2, ::2].reshape(len(images), -1)
        noise = torch.rand_like(x)
        return self.head(self.dropout(x).mul_(noise))


class Step:
    """A network and its input, made the same way every time."""

    def __init__(self) -> None:
        torch.manual_seed(7)
        self.network = Network()
        self.images = torch.randn(2, 3, 10, 10, requires_grad=True)

    def recording(self, wanted: bool) -> Any:
        return tensorviz.record(self.network) if wanted else nullcontext()


def train_step(recorded: bool) -> dict[str, torch.Tensor]:
    """Forward, backward and update; everything that they leave behind, the random state included."""
    step = Step()
    optimizer = torch.optim.SGD(step.network.parameters(), lr=0.1, momentum=0.9)
    with step.recording(recorded):
        output = step.network(step.images)
    output.square().sum().backward()
    optimizer.step()
    left = {"output": output.detach(), "rng": torch.get_rng_state(), "input.grad": step.images.grad}
    left |= {f"grad.{name}": item.grad for name, item in step.network.named_parameters()}
    return left | {name: item.clone() for name, item in step.network.state_dict().items()}


def test_outputs_gradients_buffers_and_random_state_are_the_same_bits() -> None:
    plain, recorded = train_step(recorded=False), train_step(recorded=True)
    assert plain.keys() == recorded.keys()
    assert [name for name in plain if not torch.equal(plain[name], recorded[name])] == []


def test_backward_inside_the_recording_gives_the_same_gradients() -> None:
    gradients = []
    for recorded in (False, True):
        step = Step()
        with step.recording(recorded):
            step.network(step.images).sum().backward()
        gradients.append(step.images.grad)
    assert torch.equal(*gradients)


def test_pythons_own_random_state_is_untouched() -> None:
    step = Step()
    random.seed(3)
    before = random.getstate()
    with step.recording(True):
        step.network(step.images)
    assert random.getstate() == before


@pytest.mark.parametrize("context", [torch.no_grad, torch.inference_mode, torch.enable_grad])
def test_grad_modes_are_as_the_caller_set_them(context: Callable[[], Any]) -> None:
    step = Step()
    step.network.eval()
    with context():
        with step.recording(True) as run:
            output = step.network(step.images)
        expected = step.network(step.images)
        assert (output.requires_grad, output.is_inference()) == (expected.requires_grad, expected.is_inference())
    assert run.status == "complete"


# -- exceptions


class Refuses(nn.Module):
    def __init__(self, refuse: Callable[[torch.Tensor], Any]) -> None:
        super().__init__()
        self.refuse = refuse

    def forward(self, x: torch.Tensor) -> Any:
        return self.refuse(x + 1)


def raise_with_a_cause(_: torch.Tensor) -> None:
    try:
        raise KeyError("inner")
    except KeyError as error:
        raise ValueError("outer") from error


class Stop(BaseException):
    pass


def raise_a_base_exception(_: torch.Tensor) -> None:
    raise Stop("not an Exception")


FAILURES = {
    "a shape error in a kernel": lambda x: x @ x,
    "an index out of range": lambda x: x[100],
    "a type error in the arguments": lambda x: x + "one",
    "a missing attribute": lambda x: x.no_such_attribute,
    "a failed assertion": lambda x: torch._assert(x.sum() > 1e9, "too small"),
    "an unsupported operand": lambda x: object() @ x,
    "an error with a cause": raise_with_a_cause,
    "an exception that is not an Exception": raise_a_base_exception,
    "an end of iteration": lambda _: next(iter(())),
}


def raised_by(call: Callable[[], Any]) -> BaseException:
    try:
        call()
    except BaseException as error:
        return error
    pytest.fail("nothing was raised")


def told(error: BaseException) -> tuple[type, str, type, str]:
    return type(error), str(error), type(error.__cause__), str(error.__cause__)


@pytest.mark.parametrize("failure", FAILURES)
def test_a_failure_is_the_same_exception_with_the_same_message(failure: str) -> None:
    model, x = Refuses(FAILURES[failure]), torch.ones(2, 3)
    expected = raised_by(lambda: model(x))
    with pytest.raises(type(expected)) as caught, tensorviz.record(model) as run:
        model(x)
    assert told(caught.value) == told(expected)
    assert run.status == "partial"
    assert run.snapshot.invocations[0].status == "failed"


def test_a_failure_that_the_model_handles_is_none() -> None:
    class Retries(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            try:
                return x @ x
            except RuntimeError:
                return x @ x.T

    model, x = Retries(), torch.ones(2, 3)
    with tensorviz.record(model) as run:
        result = model(x)
    assert torch.equal(result, torch.full((2, 2), 3.0))
    assert [operation.status for operation in run.snapshot.operations] == ["failed", "completed", "completed"]
    assert run.status == "complete"
    assert run.snapshot.invocations[0].status == "completed"
    assert [item.disposition for item in run.snapshot.diagnostics] == ["suppressed"]


def test_a_later_failure_is_not_blamed_on_an_operation_that_the_model_survived() -> None:
    class Gives(nn.Module):
        def forward(self, x: torch.Tensor) -> None:
            try:
                self.product = x @ x
            except RuntimeError:
                assert x.sum() < 0, "later"

    model, x = Gives(), torch.ones(2, 3)
    with pytest.raises(AssertionError, match="later"), tensorviz.record(model) as run:
        model(x)
    survived, final = run.snapshot.diagnostics
    assert (survived.exception, survived.disposition) == ("builtins.RuntimeError", "replaced")
    assert (final.exception, final.disposition, final.operation) == ("builtins.AssertionError", "propagated", None)
    assert [(reason.code, reason.subject) for reason in run.snapshot.reasons] == [("run_failed", "c0")]


# -- lifetimes


class Watched(nn.Module):
    """Drops its activations one after the other, and notes which of them are gone right away."""

    def __init__(self) -> None:
        super().__init__()
        self.gone: list[bool] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(3):
            y = x * 2
            z = y.view(-1)
            tensor, view, storage = weakref.ref(y), weakref.ref(z), weakref.ref(y.untyped_storage())
            x = y + 1
            del y, z
            self.gone.append((tensor(), view(), storage()) == (None, None, None))
        return x


def test_an_activation_dies_when_the_model_drops_it() -> None:
    with torch.no_grad(), tensorviz.record(model := Watched()):
        model(torch.ones(4))
    assert model.gone == [True, True, True]


def test_nothing_of_the_run_is_kept_alive_by_its_result() -> None:
    model, x = Watched(), torch.ones(4, requires_grad=True)
    with tensorviz.record(model) as run:
        output = model(x)
    left = [weakref.ref(item) for item in (model, x, output, output.untyped_storage())]
    del model, x, output
    gc.collect()
    assert [item() for item in left] == [None, None, None, None]
    assert run.snapshot.operations


def test_a_failed_run_keeps_no_tensor_once_its_exception_is_gone() -> None:
    kept: list[weakref.ref[torch.Tensor]] = []

    def fail(x: torch.Tensor) -> None:
        kept.append(weakref.ref(x))
        raise RuntimeError("stop")

    model = Refuses(fail)
    with pytest.raises(RuntimeError, match="stop") as caught, tensorviz.record(model) as run:
        model(torch.ones(2))
    del caught
    gc.collect()
    assert kept[0]() is None
    assert run.status == "partial"


def test_callbacks_of_weak_references_are_called_at_the_same_moments() -> None:
    def forward(x: torch.Tensor) -> list[str]:
        events: list[str] = []
        y = x + 1
        reference = weakref.ref(y, lambda _: events.append("gone"))
        weakref.finalize(y, events.append, "finalized")
        events.append("before")
        del y
        events.append("after")
        assert reference() is None
        return events

    model = Refuses(forward)
    assert tensorviz.capture(model, torch.ones(2)).result == model(torch.ones(2))


def peak_memory(run: Callable[[], Any]) -> int:
    """The most bytes that this process held in memory while ``run`` ran."""
    Path("/proc/self/clear_refs").write_text("5")
    run()
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.partition("VmHWM:")[2].split()[0])


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="the peak can only be reset on Linux")
def test_the_peak_of_memory_is_that_of_the_program() -> None:
    size = 2**24

    def forward(x: torch.Tensor) -> torch.Tensor:
        for _ in range(8):
            x = (x.view(-1) * 2).sin() + 1
        return x

    model = Refuses(forward)
    with torch.no_grad():
        peak_memory(lambda: model(torch.zeros(size)))
        plain = peak_memory(lambda: model(torch.zeros(size)))
        recorded = peak_memory(lambda: tensorviz.capture(model, torch.zeros(size)).snapshot)
    assert recorded - plain < size, "less than a quarter of one activation"


# -- what a program can see of its surroundings


def frames(error: BaseException) -> list[str]:
    """The functions of this file through which an exception came."""
    return [frame.name for frame in traceback.extract_tb(error.__traceback__) if frame.filename == __file__]


def test_a_traceback_has_the_same_frames_of_the_program() -> None:
    def inner(x: torch.Tensor) -> torch.Tensor:
        return x @ x

    model, x = Refuses(lambda x: inner(x)), torch.ones(2, 3)
    expected = raised_by(lambda: model(x))
    found = raised_by(lambda: tensorviz.capture(model, x).result)
    assert frames(found) == frames(expected)
    assert frames(found)[-2:] == ["<lambda>", "inner"]
    assert (found.__context__, getattr(found, "__notes__", None)) == (None, None)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit, Stop])
def test_no_exception_leaves_anything_of_the_recording_behind(kind: type[BaseException]) -> None:
    def fail(_: torch.Tensor) -> None:
        raise kind("stop")

    before = nn.Module.__call__
    with torch.no_grad(), pytest.raises(kind, match="stop"), tensorviz.record() as run:
        Refuses(fail)(torch.ones(2))
    assert run.status == "partial"
    assert torch.is_grad_enabled()
    assert nn.Module.__call__ is before
    assert _get_current_dispatch_mode() is None
    assert tensorviz.capture(nn.Identity(), torch.ones(1)).status == "complete"


def test_a_grad_mode_that_the_program_leaves_off_stays_off() -> None:
    def forward(x: torch.Tensor) -> torch.Tensor:
        torch.set_grad_enabled(False)
        return x + 1

    try:
        assert not tensorviz.capture(Refuses(forward), torch.ones(2, requires_grad=True)).result.requires_grad
        assert not torch.is_grad_enabled()
    finally:
        torch.set_grad_enabled(True)


def test_a_recording_within_a_recording_is_refused_and_the_outer_goes_on() -> None:
    with tensorviz.record() as run:
        with pytest.raises(RuntimeError, match="one recording at a time"), tensorviz.record():
            pass
        torch.ones(1).add_(1)
    assert [operation.target for operation in run.snapshot.operations] == ["aten.ones.default", "aten.add_.Tensor"]
    assert run.status == "complete"


def test_a_thread_that_is_not_recorded_runs_as_ever() -> None:
    model, x = nn.Linear(3, 3), torch.ones(2, 3)
    results: list[torch.Tensor] = []
    started, done = threading.Event(), threading.Event()

    def work() -> None:
        started.wait(30)
        results.append(model(x))
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    with tensorviz.record(model) as run:
        started.set()
        assert done.wait(30)
        recorded = model(x)
    thread.join(30)
    assert torch.equal(results[0], recorded)
    assert len(run.snapshot.invocations) == 1


def test_modules_can_be_copied_pickled_and_scripted_while_they_are_recorded() -> None:
    def forward(x: torch.Tensor) -> list[torch.Tensor]:
        layer = nn.Linear(3, 3)
        copies = [copy.deepcopy(layer), pickle.loads(pickle.dumps(layer)), torch.jit.script(layer)]
        assert all(torch.equal(other(x), layer(x)) for other in copies)
        return copies[0](x)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = tensorviz.capture(Refuses(forward), torch.ones(2, 3))
    assert run.error is None
    assert run.snapshot.operations


def test_the_fast_path_of_a_transformer_stays_on() -> None:
    layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True).eval()
    encoder = nn.TransformerEncoder(layer, 2).eval()
    x, mask = torch.ones(2, 3, 4), torch.tensor([[False, False, True]] * 2)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = encoder(x, src_key_padding_mask=mask)
        run = tensorviz.capture(encoder, x, src_key_padding_mask=mask)
    assert torch.equal(run.result, expected)
    targets = [operation.target for operation in run.snapshot.operations]
    assert targets.count("aten._transformer_encoder_layer_fwd.default") == 2
    assert "aten._nested_tensor_from_mask.default" in targets


# -- the program's own hooks and modes


def call_with_hooks(recorded: bool) -> list[str]:
    """Runs a model that carries every kind of module hook; the order in which they were called."""
    step, order = Step(), []
    inner, outer = step.network.head, step.network
    handles = [
        inner.register_forward_pre_hook(lambda *_: order.append("inner before")),
        inner.register_forward_hook(lambda *_: order.append("inner after")),
        outer.register_forward_pre_hook(lambda _, args: (order.append("outer before"), (args[0] * 2,))[1]),
        outer.register_forward_hook(lambda _, __, output: (order.append("outer after"), output + 1)[1]),
        outer.register_forward_hook(lambda *_: order.append("outer always"), always_call=True),
        outer.register_full_backward_hook(lambda *_: order.append("outer backward")),
        nn.modules.module.register_module_forward_pre_hook(
            lambda module, _: order.append(f"global before {type(module).__name__}")
        ),
        nn.modules.module.register_module_forward_hook(
            lambda module, *_: order.append(f"global after {type(module).__name__}")
        ),
    ]
    try:
        with step.recording(recorded):
            output = step.network(step.images)
        output.sum().backward()
    finally:
        for handle in handles:
            handle.remove()
    return [*order, f"sum {output.sum().item()}"]


def test_module_hooks_run_in_their_order_and_their_results_count() -> None:
    assert call_with_hooks(recorded=True) == call_with_hooks(recorded=False)


class Counting(TorchDispatchMode):
    """A dispatch mode of the user's own: notes the operations, and doubles the result of every addition."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(str(func))
        result = func(*args, **(kwargs or {}))
        return result * 2 if func is torch.ops.aten.add.Tensor else result


class UsesAMode(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mode = Counting()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with self.mode:
            x = x.sin() + 1
        return x.cos()


def test_a_dispatch_mode_inside_the_model_sees_and_changes_what_it_always_did() -> None:
    plain, recorded, x = UsesAMode(), UsesAMode(), torch.ones(3)
    expected = plain(x)
    with tensorviz.record(recorded) as run:
        result = recorded(x)
    assert torch.equal(result, expected)
    assert recorded.mode.seen == plain.mode.seen == ["aten.sin.default", "aten.add.Tensor"]
    targets = [operation.target for operation in run.snapshot.operations]
    assert targets == ["aten.sin.default", "aten.add.Tensor", "aten.mul.Tensor", "aten.cos.default"]


def test_a_dispatch_mode_around_the_recording_sees_what_it_always_did() -> None:
    step = Step()
    step.network.eval()
    counts = []
    for recorded in (False, True):
        with Counting() as mode:
            with step.recording(recorded):
                step.network(step.images)
            counts.append(list(mode.seen))
    assert counts[0] == counts[1]


def test_torch_function_modes_and_saved_tensor_hooks_keep_working() -> None:
    from torch.overrides import TorchFunctionMode

    class Functions(TorchFunctionMode):
        def __init__(self) -> None:
            super().__init__()
            self.seen: list[str] = []

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            self.seen.append(func.__name__)
            return func(*args, **(kwargs or {}))

    logs = []
    for recorded in (False, True):
        step, packed = Step(), []
        hooks = torch.autograd.graph.saved_tensors_hooks(lambda x, log=packed: (log.append(x.shape), x)[1], lambda x: x)
        with step.recording(recorded), hooks, Functions() as mode:
            step.network(step.images)
        logs.append((packed, mode.seen))
    assert logs[0] == logs[1]


def test_module_calls_are_torchs_own_again_after_the_recording() -> None:
    before = nn.Module.__call__
    step = Step()
    with step.recording(True):
        step.network(step.images)
    with pytest.raises(RuntimeError, match="stop"), step.recording(True):
        raise RuntimeError("stop")
    assert nn.Module.__call__ is before
    assert _get_current_dispatch_mode() is None


def test_functions_that_the_program_keeps_in_a_table_are_found_there() -> None:
    handled = {torch.Tensor.numpy: "numpy", torch.Tensor.data_ptr: "pointer", torch.Tensor.tolist: "list"}

    class Handles(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return handled[func] if func in handled else super().__torch_function__(func, types, args, kwargs or {})

    def forward(x: torch.Tensor) -> list[Any]:
        own = x.as_subclass(Handles)
        return [own.numpy(), own.data_ptr(), own.tolist(), nn.Module.__call__.__name__, torch.Tensor.numpy.__name__]

    model, x = Refuses(lambda x: forward(x)), torch.ones(2)
    assert tensorviz.capture(model, x).result == model(x)


def test_a_mode_that_the_program_leaves_on_stays_on_and_ours_does_not() -> None:
    mode = Counting()

    def forward(x: torch.Tensor) -> torch.Tensor:
        mode.__enter__()
        return x.sin()

    try:
        assert tensorviz.capture(Refuses(forward), torch.ones(2)).status == "complete"
        assert _get_current_dispatch_mode() is mode
        assert _len_torch_dispatch_stack() == 1
    finally:
        mode.__exit__(None, None, None)


def test_a_program_that_takes_our_mode_off_goes_on_and_the_capture_says_so() -> None:
    mode = Counting()
    mode.__enter__()

    def forward(x: torch.Tensor) -> torch.Tensor:
        mode.__exit__(None, None, None)  # which takes off the mode on top, ours
        return x.sin()

    try:
        run = tensorviz.capture(Refuses(forward), torch.ones(2))
    finally:
        while _len_torch_dispatch_stack():
            _pop_mode()
    assert run.error is None
    assert [reason.code for reason in run.snapshot.reasons] == ["unobserved_operation"]
    assert tensorviz.capture(nn.Identity(), torch.ones(1)).status == "complete"


def test_a_module_call_that_the_program_puts_in_place_of_ours_stays_in_place() -> None:
    before = nn.Module.__call__

    def mine(module: Any, *args: Any, **kwargs: Any) -> Any:
        return module.forward(*args, **kwargs)

    def forward(x: torch.Tensor) -> torch.Tensor:
        nn.Module.__call__ = mine
        return nn.Identity()(x)

    try:
        run = tensorviz.capture(Refuses(forward), torch.ones(2))
        assert nn.Module.__call__ is mine
    finally:
        nn.Module.__call__ = before
    assert [reason.code for reason in run.snapshot.reasons] == ["unobserved_call"]


def test_casts_gradients_and_version_counts_inside_operators_are_the_programs() -> None:
    def forward(x: torch.Tensor) -> list[Any]:
        leaf = x.clone().requires_grad_()
        y = leaf.exp()
        torch._foreach_add_([y.detach()], 1.0)  # pyright: ignore[reportPrivateImportUsage]
        with torch.inference_mode(), torch.autocast("cpu", dtype=torch.bfloat16):
            product = torch.einsum("ij,jk->ik", x, x)
        return [product.dtype, y._version]

    x = torch.ones(2, 2)
    model = Refuses(forward)
    assert tensorviz.capture(model, x).result == model(x) == [torch.bfloat16, 1]


def test_a_model_whose_training_flag_cannot_be_asked_is_recorded() -> None:
    class Evasive(nn.Module):
        training = property(lambda self: 1 / 0, lambda self, value: None)  # type: ignore[assignment]

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + 1

    assert tensorviz.capture(Evasive(), torch.ones(2)).status == "complete"


# -- the result that the caller holds


def test_capture_calls_the_model_once_and_gives_its_facts() -> None:
    class Doubles(nn.Module):
        def forward(self, x: torch.Tensor, *, by: int) -> torch.Tensor:
            return x * by

    run = tensorviz.capture(Doubles(), torch.ones(2, 3), by=2)
    assert run.status == "complete"
    assert lines(run.snapshot) == ["aten.mul.Tensor(float32[2, 3]) -> float32[2, 3]"]
    assert [call.kwargs[0].name for call in run.snapshot.invocations] == ["by"]
    assert run.snapshot.setup.kind == "in_process"


def test_a_saved_result_is_a_valid_capture_and_reads_back_the_same(tmp_path: Any) -> None:
    from tensorviz.contracts.validate import parse_capture

    step = Step()
    run = tensorviz.capture(step.network, step.images)
    run.save(tmp_path / "network.json")
    assert parse_capture((tmp_path / "network.json").read_bytes()) == run.snapshot


def test_a_result_introduces_itself_as_text_and_in_a_notebook() -> None:
    step = Step()
    run = tensorviz.capture(step.network.eval(), step.images)
    assert "Network" in repr(run)
    assert "complete" in repr(run)
    page = run._repr_html_()
    assert "Network" in page
    assert "aten.convolution.default" in page or "convolution" in page
    assert "<script" not in page.lower()


def test_names_from_the_users_code_are_escaped_in_the_notebook() -> None:
    hostile = type("<img src=x onerror=alert(1)>", (nn.Module,), {"forward": lambda _, x: x + 1})
    page = tensorviz.capture(hostile(), torch.ones(1))._repr_html_()
    assert "<img" not in page


def test_a_program_that_survives_a_failing_root_call_is_recorded_in_full() -> None:
    model = torch.nn.Linear(3, 3)
    with tensorviz.record(model) as run:
        with pytest.raises(RuntimeError):
            model(torch.ones(2, 4))
        model(torch.ones(2, 3))
    assert run.status == "complete"
    assert [call.status for call in run.snapshot.invocations] == ["failed", "completed"]
    assert [diagnostic.disposition for diagnostic in run.snapshot.diagnostics] == ["suppressed"]
