"""Attempts from start to end: one at a time for a file, the latest wins, and nothing waits for ever."""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

from tensorviz import planning
from tensorviz.contracts.attempt import CaptureRequest, ExecutionPlan, RunAttempt
from tensorviz.contracts.capture import Cancelled, Exited, TimedOut
from tensorviz.contracts.messages import AttemptEvent, HostEvent
from tensorviz.errors import Refused
from tensorviz.reading import Reader
from tensorviz.service import MAX_QUEUED, WORKERS, Service
from tensorviz.supervisor import Ended, WorkerRun

from .journals import refusing, small

WAIT = 20.0


@dataclass
class Runs:
    """Stands for the supervisor: each run waits until the test lets it go, or until it is cancelled."""

    journal: bytes = field(default_factory=small)
    ended: Ended = field(default_factory=lambda: Exited(kind="exited", code=0))
    go: threading.Event = field(default_factory=threading.Event)
    running: list[str] = field(default_factory=list)
    most: int = 0
    seen: list[str] = field(default_factory=list)
    changed: threading.Condition = field(default_factory=threading.Condition)

    def __call__(self, plan: ExecutionPlan, *, on_progress: Callable[..., None], cancel: threading.Event) -> WorkerRun:
        with self.changed:
            self.running.append(plan.file)
            self.seen.append(Path(plan.file).name)
            assert len(set(self.running)) == len(self.running), "two attempts on one file at a time"
            self.most = max(self.most, len(self.running))
            self.changed.notify_all()
        on_progress("running", 5)
        while not self.go.wait(0.005) and not cancel.is_set():
            pass
        with self.changed:
            self.running.remove(plan.file)
        if cancel.is_set():
            return WorkerRun(b"", Cancelled(kind="cancelled"), "cancelled\n")
        return WorkerRun(self.journal, self.ended, "printed\n")

    def wait_for(self, count: int) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.seen) >= count, WAIT)


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in "abcd":
        (tmp_path / f"{name}.py").write_text("")
    monkeypatch.setenv("TENSORVIZ_PYTHON", sys.executable)
    return tmp_path


@pytest.fixture
def runs() -> Runs:
    return Runs()


@pytest.fixture
def service(workspace: Path, runs: Runs) -> Iterator[Service]:
    threads, children = threading.active_count(), psutil.Process().children(recursive=True)
    with Service(workspace, run=runs) as service:
        yield service
    assert threading.active_count() == threads
    assert set(psutil.Process().children(recursive=True)) <= set(children)


def start(service: Service, name: str) -> str:
    return service.start(CaptureRequest(file=name), "web").id


def end_of(service: Service, name: str) -> RunAttempt:
    ended = threading.Event()

    def look(event: HostEvent) -> None:
        if isinstance(event, AttemptEvent) and event.attempt.id == name and event.attempt.outcome:
            ended.set()

    _, stop = service.subscribe(look)
    if service.attempt(name).outcome is None:
        assert ended.wait(WAIT)
    stop()
    return service.attempt(name)


# -- one attempt


def test_an_attempt_goes_through_its_stages_and_leaves_a_capture(service: Service, runs: Runs) -> None:
    stages: list[str] = []
    service.subscribe(lambda event: stages.append(event.attempt.stage) if isinstance(event, AttemptEvent) else None)
    runs.go.set()
    done = service.capture(CaptureRequest(file="a.py"))
    assert stages == ["queued", "starting", "running", "validating", "ended"]
    assert (done.outcome, done.problem, done.operations) == ("complete", None, 1)
    assert done.planDigest is not None
    assert done.capture is not None
    assert service.retained(done.capture).summary.attempt == done.id
    assert service.page(done.capture, "operations", 0, 10).startswith(b'{"items":[{"id":"o0"')
    assert service.log(done.id) == "printed\n"


@pytest.mark.parametrize(
    ("journal", "ended", "outcome", "code"),
    [
        (b"", Exited(kind="exited", code=3), "failed", "worker_failed"),
        (b"", TimedOut(kind="timed_out", seconds=1.0), "timed_out", "timed_out"),
        (b"", Cancelled(kind="cancelled"), "cancelled", "cancelled"),
        (b"junk\n", Exited(kind="exited", code=0), "failed", "capture_rejected"),
        (refusing("inputs_missing"), Exited(kind="exited", code=0), "failed", "inputs_missing"),
    ],
)
def test_an_attempt_without_a_capture_has_a_problem(
    journal: bytes, ended: Ended, outcome: str, code: str, service: Service, runs: Runs
) -> None:
    runs.journal, runs.ended = journal, ended
    runs.go.set()
    done = service.capture(CaptureRequest(file="a.py"))
    assert done.problem is not None
    assert (done.outcome, done.problem.code, done.capture, done.stage) == (outcome, code, None, "ended")
    assert service.log(done.id) == "printed\n"


@pytest.mark.parametrize(
    ("ended", "outcome"),
    [
        (TimedOut(kind="timed_out", seconds=1.0), "timed_out"),
        (Cancelled(kind="cancelled"), "cancelled"),
        (Exited(kind="exited", code=3), "partial"),
    ],
)
def test_a_run_that_was_cut_short_keeps_its_prefix(ended: Ended, outcome: str, service: Service, runs: Runs) -> None:
    runs.journal, runs.ended = small().rpartition(b'{"finish"')[0], ended
    runs.go.set()
    done = service.capture(CaptureRequest(file="a.py"))
    assert (done.outcome, done.problem) == (outcome, None)
    assert done.capture is not None
    assert service.retained(done.capture).summary.status == "partial"


def test_what_planning_refuses_was_never_run(service: Service, runs: Runs) -> None:
    done = service.capture(CaptureRequest(file="none.py"))
    assert done.problem is not None
    assert (done.outcome, done.problem.code, done.planDigest) == ("refused", "file_not_found", None)
    assert runs.seen == []


def test_a_defect_of_ours_is_a_problem_and_the_next_attempt_runs(workspace: Path) -> None:
    outcomes: list[Any] = [ZeroDivisionError("defect"), WorkerRun(small(), Exited(kind="exited", code=0), "")]

    def run(plan: ExecutionPlan, **_: object) -> WorkerRun:
        result = outcomes.pop(0)
        if isinstance(result, Exception):
            raise result
        return result

    with Service(workspace, run=run) as service:
        first = service.capture(CaptureRequest(file="a.py"))
        assert first.problem is not None
        assert (first.outcome, first.problem.code) == ("failed", "internal_error")
        assert service.capture(CaptureRequest(file="a.py")).outcome == "complete"


# -- many attempts


def test_the_latest_attempt_on_a_file_wins_over_running_and_waiting_ones(service: Service, runs: Runs) -> None:
    first = start(service, "a.py")
    runs.wait_for(1)
    second, third = start(service, "./a.py"), start(service, "a.py")
    for superseded in (first, second):
        problem = end_of(service, superseded).problem
        assert problem is not None
        assert (problem.code, "a newer attempt" in problem.detail) == ("cancelled", True)
    runs.go.set()
    assert end_of(service, third).outcome == "complete"
    assert runs.seen.count("a.py") == 2, "the one that waited never ran"
    assert [item.id for item in service.attempts(0, 10).items] == [third, second, first]


def test_no_more_workers_than_allowed_run_at_a_time_and_others_wait(service: Service, runs: Runs) -> None:
    names = [start(service, f"{name}.py") for name in "abcd"]
    runs.wait_for(WORKERS)
    assert {service.attempt(name).stage for name in names[WORKERS:]} == {"queued"}
    runs.go.set()
    assert {end_of(service, name).outcome for name in names} == {"complete"}
    assert runs.most == WORKERS


def test_too_many_waiting_attempts_are_refused(service: Service, runs: Runs) -> None:
    for name in "abcd"[:WORKERS]:
        start(service, f"{name}.py")
    runs.wait_for(WORKERS)
    for number in range(MAX_QUEUED):
        start(service, f"waiting{number}.py")
    with pytest.raises(Refused) as refused:
        start(service, "one-more.py")
    assert refused.value.problem.code == "busy"
    assert start(service, "waiting0.py"), "one that takes the place of another does not make the queue longer"


def test_a_queued_attempt_can_be_cancelled_and_never_runs(service: Service, runs: Runs) -> None:
    for name in "ab":
        start(service, f"{name}.py")
    runs.wait_for(2)
    queued = start(service, "c.py")
    cancelled = service.cancel(queued)
    assert (cancelled.outcome, cancelled.stage) == ("cancelled", "ended")
    assert service.cancel(queued) == cancelled, "again changes nothing"
    runs.go.set()
    assert "c.py" not in runs.seen


def test_a_running_attempt_can_be_cancelled(service: Service, runs: Runs) -> None:
    name = start(service, "a.py")
    runs.wait_for(1)
    service.cancel(name)
    done = end_of(service, name)
    assert done.problem is not None
    assert (done.outcome, "on request" in done.problem.detail) == ("cancelled", True)


def test_an_attempt_cancelled_while_it_is_planned_is_not_launched(
    service: Service, runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolve = planning.resolve

    def cancelled_meanwhile(request: CaptureRequest, workspace: Path, attempt: str) -> ExecutionPlan:
        service.cancel(attempt)
        return resolve(request, workspace, attempt)

    monkeypatch.setattr(planning, "resolve", cancelled_meanwhile)
    assert service.capture(CaptureRequest(file="a.py")).outcome == "cancelled"
    assert runs.seen == []


def test_closing_cancels_what_runs_and_what_waits(workspace: Path, runs: Runs) -> None:
    with Service(workspace, run=runs) as service:
        names = [start(service, f"{name}.py") for name in "abc"]
        runs.wait_for(2)
    assert {service.attempt(name).outcome for name in names} == {"cancelled"}
    with pytest.raises(Refused) as refused:
        start(service, "a.py")
    assert refused.value.problem.code == "cancelled"


def test_an_interrupted_wait_cancels_the_attempt(service: Service, runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(event: HostEvent) -> None:
        if isinstance(event, AttemptEvent) and event.attempt.stage == "running":
            os.kill(os.getpid(), 2)

    service.subscribe(interrupt)
    with pytest.raises(KeyboardInterrupt):
        service.capture(CaptureRequest(file="a.py"))
    assert service.attempts(0, 1).items[0].outcome == "cancelled"


@pytest.mark.parametrize("ask", ["attempt", "log", "cancel", "retained"])
def test_what_is_not_there_is_said_to_be_not_there(ask: str, service: Service) -> None:
    with pytest.raises(Refused) as refused:
        getattr(service, ask)("att-0000000000000000")
    assert refused.value.problem.code == "not_found"


def test_a_listener_hears_nothing_after_it_has_left(service: Service, runs: Runs) -> None:
    heard: list[HostEvent] = []
    state, stop = service.subscribe(heard.append)
    assert (state.attempts, state.captures) == ((), ())
    stop()
    stop()
    runs.go.set()
    service.capture(CaptureRequest(file="a.py"))
    assert heard == []


# -- the process that reads


def test_a_reader_that_dies_is_started_again(service: Service, runs: Runs) -> None:
    runs.go.set()
    assert service.capture(CaptureRequest(file="a.py")).outcome == "complete"
    reader = service._reader
    assert reader.pid is not None
    killed = psutil.Process(reader.pid)
    killed.kill()
    killed.wait(WAIT)
    assert service.capture(CaptureRequest(file="a.py")).outcome == "complete"
    assert reader.pid != killed.pid


def test_a_reader_that_takes_too_long_is_ended_and_the_capture_refused(workspace: Path, runs: Runs) -> None:
    runs.go.set()
    with Service(workspace, run=runs, reader=Reader(deadline=0.0)) as service:
        done = service.capture(CaptureRequest(file="a.py"))
    assert done.problem is not None
    assert (done.outcome, done.problem.code) == ("failed", "capture_rejected")


def test_the_reader_is_another_process_without_torch_that_ends_with_us(service: Service, runs: Runs) -> None:
    runs.go.set()
    service.capture(CaptureRequest(file="a.py"))
    assert service._reader.pid is not None
    process = psutil.Process(service._reader.pid)
    assert process.ppid() == os.getpid()
    maps = Path(f"/proc/{process.pid}/maps")
    if maps.exists():
        assert "pydantic_core" in maps.read_text()
        assert "libtorch" not in maps.read_text()
    started = time.monotonic()
    service.close()
    assert not process.is_running()
    assert time.monotonic() - started < 5


def test_the_reader_ends_when_its_input_does() -> None:
    reader = Reader()
    reader.start()
    assert reader.pid is not None
    process = reader._process
    assert process is not None
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(WAIT) == 0
    reader.close()
