"""Who is measured: a table of name -> one run of a case. What a peer does inside ``clock("run")`` is what is timed."""

import importlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import process_time
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from .models import Case

WORKSPACE = Path(__file__).resolve().parent


class Clock:
    """CPU seconds of the parts of one run."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, part: str) -> Iterator[None]:
        start = process_time()
        try:
            yield
        finally:
            self.seconds[part] = process_time() - start


class Empty(TorchDispatchMode):
    """The least that any recorder of dispatched operations pays."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


class Counting(Empty):
    def __init__(self) -> None:
        super().__init__()
        self.operations = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.operations += 1
        return func(*args, **(kwargs or {}))


def eager(case: Case, clock: Clock) -> None:
    with clock("run"):
        case.forward()


def empty(case: Case, clock: Clock) -> None:
    with clock("run"), Empty():
        case.forward()


def ours(case: Case, clock: Clock) -> None:
    with tempfile.TemporaryDirectory() as folder:
        record(case, clock, Path(folder, "journal"))


def record(case: Case, clock: Clock, path: Path, at_end: Callable[[], None] = lambda: None) -> int:
    """As the worker does it: one recorder for one forward, into a file journal. Returns the journal's size.

    ``at_end`` is called after the forward, while the recorder still holds what it knows.
    """
    from tensorviz_worker.budget import Limits
    from tensorviz_worker.journal import FileJournal
    from tensorviz_worker.recorder import Recorder

    limits = Limits()
    with clock("register"):
        journal = FileJournal(str(path), 2 * limits.bytes + 2**22)
        recorder = Recorder(journal, limits, str(WORKSPACE))
        _write_head(journal)
        recorder.describe(case.model)
    with clock("run"):
        recorder.start()
        case.forward()
        at_end()
        recorder.stop()
    size = journal.size
    journal.close()
    if recorder.failure is not None:
        raise recorder.failure
    return size


def _write_head(journal: Any) -> None:
    """What the worker's launcher tells of the attempt, so that the host can read the journal."""
    from tensorviz_worker.launch import environment

    told = {
        "environment": environment(),
        "execution": {
            "file": None,
            "target": "bench",
            "targetKind": "instance",
            "inputs": {"kind": "caller", "name": None},
            "mode": "as_is",
            "fake": False,
            "gradEnabled": torch.is_grad_enabled(),
            "inferenceMode": torch.is_inference_mode_enabled(),
        },
    }
    for kind, value in told.items():
        journal.write(json.dumps({kind: value}))


def debug_mode(case: Case, clock: Clock) -> None:
    from torch.utils._debug_mode import DebugMode

    with clock("run"), DebugMode():
        case.forward()


def debug_mode_full(case: Case, clock: Clock) -> None:
    from torch.utils._debug_mode import DebugMode

    with clock("run"), DebugMode(record_nn_module=True, record_ids=True, record_stack_trace=True):
        case.forward()


def execution_trace(case: Case, clock: Clock) -> None:
    from torch.profiler import ExecutionTraceObserver

    with tempfile.TemporaryDirectory() as folder, clock("run"):
        observer = ExecutionTraceObserver().register_callback(os.path.join(folder, "trace.json"))
        observer.start()
        case.forward()
        observer.stop()
        observer.unregister_callback()


def profiler(case: Case, clock: Clock) -> None:
    from torch.profiler import ProfilerActivity, profile

    with clock("run"), profile(activities=[ProfilerActivity.CPU], record_shapes=True):
        case.forward()


def torchlens(case: Case, clock: Clock) -> None:
    lens = importlib.import_module("torchlens")
    capture = lens.options.CaptureOptions(layers_to_save="none")
    with clock("run"):
        lens.trace(case.model, list(case.args), dict(case.kwargs) or None, capture=capture)


def torchview(case: Case, clock: Clock) -> None:
    draw_graph = importlib.import_module("torchview").draw_graph
    inputs = list(case.args) or dict(case.kwargs)
    with clock("run"):
        draw_graph(case.model, input_data=inputs, depth=100, device="cpu")


def export(case: Case, clock: Clock) -> None:
    with clock("run"):
        torch.export.export(case.model, case.args, dict(case.kwargs), strict=False)


PEERS: dict[str, Callable[[Case, Clock], None]] = {
    "eager": eager,
    "empty": empty,
    "ours": ours,
    "debug_mode": debug_mode,
    "debug_mode_full": debug_mode_full,
    "execution_trace": execution_trace,
    "profiler": profiler,
    "torchlens": torchlens,
    "torchview": torchview,
    "export": export,
}
BASELINES = ("eager", "empty")
LOAD_COMPILER = frozenset({"empty", "debug_mode", "debug_mode_full", "profiler", "torchlens", "export"})
