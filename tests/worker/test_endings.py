"""However a worker ends, what it recorded stays, names what was in flight, and leaves nothing else behind."""

import signal
import threading
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from tensorviz.contracts.capture import Invocation, Operation

from .reading import facts, last_event, path
from .running import Outcome, capture, marked

HEAD = """
import ctypes, os, signal, subprocess, sys, threading, time
import torch
from torch import nn


@torch.library.custom_op("endings::deadly", mutates_args=())
def deadly(x: torch.Tensor) -> torch.Tensor:
    end()
    return x.clone()


class Inner(nn.Module):
    def forward(self, x):
        return deadly(x * 2)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.before = nn.Linear(2, 2)
        self.inner = Inner()

    def forward(self, x):
        return self.inner(self.before(x))


example_inputs = (torch.ones(3, 2),)
"""
ENDS = {
    "kill -9": ("os.kill(os.getpid(), signal.SIGKILL)", {"kind": "killed", "signal": "SIGKILL"}, "worker_killed"),
    "a segfault": ("ctypes.string_at(0)", {"kind": "killed", "signal": "SIGSEGV"}, "worker_killed"),
    "abort": ("os.abort()", {"kind": "killed", "signal": "SIGABRT"}, "worker_killed"),
    "os._exit(3)": ("os._exit(3)", {"kind": "exited", "code": 3}, "worker_exited"),
    "os._exit(0)": ("os._exit(0)", {"kind": "exited", "code": 0}, "worker_exited"),
}


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Every test here runs with a temporary folder of its own, which must be empty afterwards."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    yield
    assert [item.name for item in temporary.iterdir()] == []


def ended_by(folder: Path, end: str, **options: Any) -> Outcome:
    """A run of the model above whose deadly operation executes ``end``."""
    file = folder / "net.py"
    file.write_text(dedent(HEAD) + "\n\ndef end():\n" + "".join(f"    {line}\n" for line in end.split("\n")))
    return capture(file, "Net", **options)


def in_flight(outcome: Outcome) -> Operation | Invocation:
    """The last event of a partial capture, which must not have ended."""
    assert outcome.snapshot.status == "partial"
    last = last_event(outcome.snapshot)
    assert last.status == "in_flight"
    return last


@pytest.mark.parametrize("end", ENDS)
def test_the_operation_in_flight_is_the_last_event_after(end: str, tmp_path: Path) -> None:
    code, termination, reason = ENDS[end]
    outcome = ended_by(tmp_path, code)
    last = in_flight(outcome)
    assert isinstance(last, Operation)
    assert last.target == "endings.deadly.default"
    snapshot = outcome.snapshot
    assert facts(snapshot, *last.args) == "float32[3, 2]"
    assert path(snapshot, last.invocation) == "inner"
    assert snapshot.termination.model_dump() == termination
    assert [(item.code, item.subject) for item in snapshot.reasons] == [(reason, last.id)]
    assert {path(snapshot, call): call.status for call in snapshot.invocations} == {
        "": "in_flight",
        "before": "completed",
        "inner": "in_flight",
    }


@pytest.mark.parametrize("end", ENDS)
def test_between_operations_the_open_call_is_the_last_event_after(end: str, tmp_path: Path) -> None:
    code, termination, reason = ENDS[end]
    file = tmp_path / "net.py"
    file.write_text(HEAD.replace("return deadly(x * 2)", code))
    outcome = capture(file, "Net")
    last = in_flight(outcome)
    snapshot = outcome.snapshot
    assert isinstance(last, Invocation)
    assert path(snapshot, last) == "inner"
    assert snapshot.termination.model_dump() == termination
    assert [(item.code, item.subject) for item in snapshot.reasons] == [(reason, last.id)]


def test_a_model_that_calls_sys_exit_raised_it_and_did_not_finish(tmp_path: Path) -> None:
    outcome = ended_by(tmp_path, "sys.exit(5)")
    assert outcome.snapshot.status == "partial"
    assert outcome.snapshot.termination.kind == "raised"
    assert outcome.snapshot.diagnostics[-1].exception == "builtins.SystemExit"


LOOPS = {
    "an endless loop in Python": "while True: pass",
    "a wait that never ends": "threading.Event().wait()",
    "a loop that catches everything": "while True:\n    try: time.sleep(100)\n    except BaseException: pass",
}


@pytest.mark.parametrize("loop", LOOPS)
def test_the_deadline_ends_and_the_capture_names_what_was_in_flight_in(loop: str, tmp_path: Path) -> None:
    outcome = ended_by(tmp_path, LOOPS[loop], timeout=8)
    last = in_flight(outcome)
    assert isinstance(last, Operation)
    assert last.target == "endings.deadly.default"
    assert outcome.snapshot.termination.model_dump() == {"kind": "timed_out", "seconds": 8.0}
    assert [item.code for item in outcome.snapshot.reasons] == ["timed_out"]


def test_the_deadline_ends_a_loop_of_operations_and_keeps_all_of_them(tmp_path: Path) -> None:
    loop = "x = torch.ones(2)\nwhile True: x = x + 1"
    file = tmp_path / "net.py"
    file.write_text(HEAD.replace("return deadly(x * 2)", "\n        ".join(["pass", *loop.split("\n")])))
    outcome = capture(file, "Net", timeout=8)
    snapshot = outcome.snapshot
    assert snapshot.status == "partial"
    assert snapshot.termination.kind == "timed_out"
    additions = [operation for operation in snapshot.operations if operation.target == "aten.add.Tensor"]
    assert len(additions) > 1000
    assert {operation.status for operation in additions[:-1]} == {"completed"}


def test_a_deadline_before_anything_was_recorded_leaves_no_capture(tmp_path: Path) -> None:
    file = tmp_path / "net.py"
    file.write_text("while True: pass\n")
    outcome = capture(file, timeout=3)
    assert outcome.refusal.code == "timed_out"


# -- from outside, in mid-run


def test_kill_9_from_outside_in_mid_run_keeps_the_prefix(tmp_path: Path) -> None:
    def kill(attempt: str) -> None:
        for process in marked(attempt):
            process.send_signal(signal.SIGKILL)

    outcome = interrupted(tmp_path, kill)
    last = in_flight(outcome)
    assert isinstance(last, Operation)
    assert outcome.snapshot.termination.model_dump() == {"kind": "killed", "signal": "SIGKILL"}


def test_cancelling_in_mid_run_ends_the_worker_and_keeps_the_prefix(tmp_path: Path) -> None:
    cancel = threading.Event()
    outcome = interrupted(tmp_path, lambda _: cancel.set(), cancel=cancel)
    assert isinstance(in_flight(outcome), Operation)
    assert outcome.snapshot.termination.kind == "cancelled"
    assert [item.code for item in outcome.snapshot.reasons] == ["cancelled"]


def interrupted(folder: Path, act: Any, **options: Any) -> Outcome:
    """A run that waits in an operation; ``act(attempt)`` is called once, as soon as that operation is on record."""
    acted = threading.Event()

    def on_operations(attempt: str, operations: int) -> None:
        if operations >= 4 and not acted.is_set():
            acted.set()
            act(attempt)

    outcome = ended_by(folder, "threading.Event().wait()", timeout=60, on_operations=on_operations, **options)
    assert acted.is_set()
    return outcome


# -- what the program leaves running

CHILDREN = {
    "a child process": "subprocess.Popen(['sleep', '1000'])",
    "a child in a session of its own": "subprocess.Popen(['sleep', '1000'], start_new_session=True)",
    "a daemon of a child that is gone": ("subprocess.run(['sh', '-c', 'setsid sleep 1000 >/dev/null 2>&1 &'])"),
    "a fork that goes on": "os.fork() or time.sleep(1000)",
    "a thread that never ends": "threading.Thread(target=lambda: threading.Event().wait()).start()",
}


@pytest.mark.parametrize("child", CHILDREN)
def test_nothing_is_left_running_by_a_model_that_ends_well_and_leaves(child: str, tmp_path: Path) -> None:
    outcome = ended_by(tmp_path, CHILDREN[child])
    assert outcome.snapshot.termination.kind == "returned"


@pytest.mark.parametrize("child", ["a child in a session of its own", "a daemon of a child that is gone"])
def test_nothing_is_left_running_by_a_model_that_hangs_and_leaves(child: str, tmp_path: Path) -> None:
    outcome = ended_by(tmp_path, CHILDREN[child] + "\nwhile True: pass", timeout=8)
    assert isinstance(in_flight(outcome), Operation)


def test_a_forked_child_does_not_write_into_the_recording(tmp_path: Path) -> None:
    outcome = ended_by(tmp_path, "if os.fork() == 0:\n    torch.ones(5) * 3\n    os._exit(0)\nos.wait()")
    assert "aten.mul.Tensor" in [operation.target for operation in outcome.snapshot.operations]
    assert "int64[5]" not in facts(outcome.snapshot, *(operation.output for operation in outcome.snapshot.operations))
    assert "float32[5]" not in facts(outcome.snapshot, *(operation.output for operation in outcome.snapshot.operations))


def test_files_in_the_temporary_folder_of_the_program_go_with_it(tmp_path: Path) -> None:
    outcome = ended_by(tmp_path, "import tempfile\nopen(tempfile.mkstemp()[1], 'w').write('left behind')")
    assert outcome.snapshot.status == "complete"


def test_the_environment_of_the_program_tells_it_nothing_about_the_plan(tmp_path: Path) -> None:
    outcome = ended_by(tmp_path, "print([name for name in os.environ if 'TENSORVIZ' in name], sys.argv)")
    assert "['TENSORVIZ_ATTEMPT'] ['" + str(tmp_path / "net.py") + "']" in outcome.log


# -- what the program does to our channel

TAMPERING = {
    "closes every descriptor": "os.closerange(0, 200)",
    "recurses deeply": "sys.setrecursionlimit(30_000)\ndef f(n): return n and f(n - 1)\nf(20_000)",
    "changes its folder": "os.chdir('/')",
}


@pytest.mark.parametrize("act", TAMPERING)
def test_the_recording_survives_a_program_that(act: str, tmp_path: Path) -> None:
    outcome = ended_by(tmp_path, TAMPERING[act])
    assert "endings.deadly.default" in [operation.target for operation in outcome.snapshot.operations]


def test_a_program_that_overwrites_the_journal_is_refused_and_believed_in_nothing(tmp_path: Path) -> None:
    outcome = ended_by(
        tmp_path, "for number in range(3, 200):\n    try: os.write(number, b'{}\\n')\n    except OSError: pass"
    )
    assert outcome.problem is None or outcome.problem.code == "capture_rejected"


def test_signals_reach_the_program_as_always(tmp_path: Path) -> None:
    end = "signal.signal(signal.SIGUSR1, lambda *_: print('got it'))\nos.kill(os.getpid(), signal.SIGUSR1)"
    outcome = ended_by(tmp_path, end)
    assert "got it" in outcome.log
    assert outcome.snapshot.status == "complete"
