"""All that an edge may hold: start, watch and cancel attempts, and read what they gave.

    start -> queued -> plan (starting) -> worker (importing, preparing, running, finishing)
                                                              -> ingest (validating) -> ended

At most ``WORKERS`` attempts run at a time. Attempts on one file never overlap, and the latest wins: starting one
cancels those before it.
"""

import logging
import secrets
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from tensorviz import __version__, attempt_files, planning, supervisor
from tensorviz.contracts.attempt import CaptureRequest, ExecutionPlan, Outcome, RunAttempt, Stage, plan_digest
from tensorviz.contracts.base import digest
from tensorviz.contracts.capture import Cancelled, CaptureSnapshot, TimedOut
from tensorviz.contracts.messages import AttemptPage, CapturePage, HostEvent, HostInfo, StateEvent
from tensorviz.contracts.problem import Problem
from tensorviz.contracts.validate import parse_capture
from tensorviz.errors import Refused, problem, refusal
from tensorviz.interpreters import Interpreter, find_interpreter
from tensorviz.ledger import Ledger, Retained
from tensorviz.process_tree import end_marked
from tensorviz.reading import Reader

_log = logging.getLogger("tensorviz")

Listener = Callable[[HostEvent], None]
"""Called from other threads, in order, and must return at once."""

Origin = Literal["cli", "web", "mcp", "automatic"]
WORKERS = 2
MAX_QUEUED = 32
MAX_PAGE = 1000
_PATIENCE = 15.0
_LOG = 4000


@dataclass
class _Job:
    attempt: RunAttempt
    key: str
    cancel: threading.Event = field(default_factory=threading.Event)
    done: threading.Event = field(default_factory=threading.Event)
    why: str = "it was cancelled on request"


class Service:
    """Close it: that ends every worker. ``run`` stands for the supervisor in tests."""

    def __init__(
        self,
        workspace: Path,
        *,
        ledger: Ledger | None = None,
        reader: Reader | None = None,
        run: Callable[..., supervisor.WorkerRun] = supervisor.run,
    ) -> None:
        self.workspace = workspace.resolve()
        self._ledger = ledger or Ledger()
        self._ledger.publish = self._publish
        self._reader = reader or Reader()
        self._run = run
        self._listeners: list[Listener] = []
        self._changed = threading.Condition()
        self._queue: list[_Job] = []
        self._running: list[_Job] = []
        self._threads: list[threading.Thread] = []
        self._closing = False
        attempt_files.sweep(end_marked)

    # -- attempts

    def start(self, request: CaptureRequest, origin: Origin) -> RunAttempt:
        """Queues an attempt. Raises Refused(busy) when too many wait already."""
        attempt = _new_attempt(request, origin)
        job = _Job(attempt, planning.file_key(request.file, self.workspace))
        with self._changed:
            if self._closing:
                raise refusal("cancelled", "the host is ending")
            if sum(waiting.key != job.key for waiting in self._queue) >= MAX_QUEUED:
                raise refusal("busy", f"{MAX_QUEUED} attempts are waiting already")
            self._supersede(job)
            self._ledger.begin(attempt)
            self._queue.append(job)
            self._hire()
            self._changed.notify_all()
        return attempt

    def capture(self, request: CaptureRequest, origin: Origin = "cli") -> RunAttempt:
        """Starts an attempt and waits for its end. An exception meanwhile (Ctrl-C) cancels it first."""
        attempt = self.start(request, origin)
        job = self._job(attempt.id)
        try:
            while job is not None and not job.done.wait(1.0):
                pass
        except BaseException:
            self.cancel(attempt.id)
            if job is not None:
                job.done.wait(_PATIENCE)
            raise
        return self._ledger.attempt(attempt.id) or attempt

    def cancel(self, name: str) -> RunAttempt:
        """Asks a queued or running attempt to end; one that has ended stays as it is. Raises Refused(not_found)."""
        job = self._job(name)
        if job is not None:
            self._stop(job, "it was cancelled on request")
        return self.attempt(name)

    def attempt(self, name: str) -> RunAttempt:
        found = self._ledger.attempt(name)
        if found is None:
            raise refusal("not_found", f"there is no attempt {name[:64]}")
        return found

    def attempt_with_log(self, name: str) -> RunAttempt:
        """With the end of its log, as far as a field of the contract goes; ``log`` has all of it."""
        log = self.log(name)
        return self.attempt(name).model_copy(update={"log": log if len(log) <= _LOG else f"[...]\n{log[-_LOG:]}"})

    def log(self, name: str) -> str:
        """What the worker printed, once it has ended."""
        self.attempt(name)
        return self._ledger.log(name) or ""

    def attempts(self, offset: int, limit: int) -> AttemptPage:
        return self._ledger.attempts(offset, min(limit, MAX_PAGE))

    # -- captures

    def captures(self, offset: int, limit: int) -> CapturePage:
        return self._ledger.captures(offset, min(limit, MAX_PAGE))

    def retained(self, name: str) -> Retained:
        """The capture's canonical bytes, its summary and its pages. Raises Refused(not_found)."""
        found = self._ledger.capture(name)
        if found is None:
            raise refusal("not_found", f"there is no capture {name[:64]}", "captures leave to make room for newer ones")
        return found

    def page(self, name: str, section: str, offset: int, limit: int) -> bytes:
        """One page of a list of the capture, as JSON."""
        page = self.retained(name).page(section, offset, min(limit, MAX_PAGE))
        if page is None:
            lists = ", ".join(self.retained(name).sections)
            raise refusal("not_found", f"a capture has no list {section[:64]}", f"it has {lists}")
        return page

    # -- the rest

    def info(self) -> HostInfo:
        return HostInfo(name="tensorviz", version=__version__, workspace=str(self.workspace))

    def subscribe(self, listener: Listener) -> tuple[StateEvent, Callable[[], None]]:
        """The state now, every change after it to the listener, and how to stop that."""
        with self._ledger.locked():
            self._listeners.append(listener)
            return self._ledger.state(), lambda: self._unsubscribe(listener)

    def close(self) -> None:
        """Cancels everything and waits until it is gone, within bounds."""
        with self._changed:
            self._closing = True
            for job in (*self._queue, *self._running):
                self._stop(job, "the host is ending")
            self._changed.notify_all()
        for thread in self._threads:
            thread.join(_PATIENCE)
        self._reader.close()

    def __enter__(self) -> "Service":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- within

    def _publish(self, event: HostEvent) -> None:
        for listener in tuple(self._listeners):
            listener(event)

    def _unsubscribe(self, listener: Listener) -> None:
        with self._ledger.locked(), suppress(ValueError):
            self._listeners.remove(listener)

    def _job(self, name: str) -> _Job | None:
        with self._changed:
            return next((job for job in (*self._queue, *self._running) if job.attempt.id == name), None)

    def _supersede(self, job: _Job) -> None:
        for older in (*self._queue, *self._running):
            if older.key == job.key:
                self._stop(older, "a newer attempt on the same file took its place")

    def _stop(self, job: _Job, why: str) -> None:
        with self._changed:
            if not job.cancel.is_set():
                job.why = why
                job.cancel.set()
            if job in self._queue:
                self._queue.remove(job)
                self._end(job, "cancelled", problem("cancelled", job.why))

    def _hire(self) -> None:
        """Threads live as long as the service: a worker dies with the thread that started it."""
        if len(self._threads) < min(WORKERS, len(self._queue) + len(self._running)):
            thread = threading.Thread(target=self._work, name=f"tensorviz-{len(self._threads)}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def _work(self) -> None:
        while (job := self._take()) is not None:
            try:
                self._attempt(job)
            except Refused as refused:
                self._end(job, "failed", refused.problem)
            except BaseException as error:
                self._end(
                    job, "failed", problem("internal_error", f"{type(error).__name__} in attempt {job.attempt.id}")
                )
                if not isinstance(error, Exception):
                    raise
            finally:
                with self._changed:
                    self._running.remove(job)
                    self._changed.notify_all()

    def _take(self) -> _Job | None:
        with self._changed:
            while not self._closing:
                busy = {job.key for job in self._running}
                job = next((job for job in self._queue if job.key not in busy), None)
                if job is not None:
                    self._queue.remove(job)
                    self._running.append(job)
                    return job
                self._changed.wait()
        return None

    def _attempt(self, job: _Job) -> None:
        self._tell(job, "starting", 0)
        try:
            plan = planning.resolve(job.attempt.request, self.workspace, job.attempt.id)
        except Refused as refused:
            self._end(job, "refused", refused.problem)
            return
        job.attempt = job.attempt.model_copy(update={"planDigest": plan_digest(plan)})
        if job.cancel.is_set():
            self._end(job, "cancelled", problem("cancelled", job.why))
            return
        self._reader.start()
        run = self._run(plan, on_progress=lambda *seen: self._tell(job, *seen), cancel=job.cancel)
        self._tell(job, "validating", job.attempt.operations)
        self._finish(job, plan, run)

    def _finish(self, job: _Job, plan: ExecutionPlan, run: supervisor.WorkerRun) -> None:
        try:
            capture = self._reader.read(plan, run)
        except Refused as refused:
            self._end(job, _failure(refused.problem), _explained(refused.problem, job.why), log=run.log)
            return
        self._ledger.retain(capture)
        summary = capture.summary
        outcome = _outcome(summary.status, run.ended)
        self._end(job, outcome, None, log=run.log, capture=summary.id, operations=summary.operations)

    def _tell(self, job: _Job, stage: Stage, operations: int) -> None:
        if (stage, operations) == (job.attempt.stage, job.attempt.operations):
            return
        job.attempt = job.attempt.model_copy(update={"stage": stage, "operations": operations})
        self._ledger.update(job.attempt)

    def _end(self, job: _Job, outcome: Outcome, found: Problem | None, log: str | None = None, **facts: Any) -> None:
        facts |= {"stage": "ended", "outcome": outcome, "problem": found, "ended": _now()}
        job.attempt = job.attempt.model_copy(update=facts)
        self._ledger.update(job.attempt, log)
        job.done.set()


def interpreter(asked: str | None, workspace: Path) -> Interpreter:
    """The interpreter that a capture in this workspace would use. Raises Refused."""
    return find_interpreter(asked, workspace)


def read_capture(data: bytes) -> CaptureSnapshot:
    """Raises ContractError."""
    return parse_capture(data)


def workspace_of(file: Path, here: Path) -> Path:
    return planning.workspace_of(file, here)


def _new_attempt(request: CaptureRequest, origin: Origin) -> RunAttempt:
    return RunAttempt(
        id=f"att-{secrets.token_hex(8)}",
        origin=origin,
        request=request,
        requestDigest=digest(request),
        planDigest=None,
        stage="queued",
        outcome=None,
        problem=None,
        capture=None,
        operations=0,
        started=_now(),
        ended=None,
    )


def _now() -> int:
    return time.time_ns() // 1_000_000


def _failure(found: Problem) -> Outcome:
    """Of an attempt that left no capture."""
    outcomes: dict[str, Outcome] = {"cancelled": "cancelled", "timed_out": "timed_out"}
    return outcomes.get(found.code, "failed")


def _outcome(status: Literal["complete", "partial"], ended: supervisor.Ended) -> Outcome:
    """Of an attempt that left a capture, which may be whole although the worker had to be ended afterwards."""
    if status == "partial" and isinstance(ended, (Cancelled, TimedOut)):
        return ended.kind
    return status


def _explained(found: Problem, why: str) -> Problem:
    """A cancelled attempt says who cancelled it."""
    return problem("cancelled", f"{found.detail}: {why}", found.hint) if found.code == "cancelled" else found
