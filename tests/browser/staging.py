"""A host on a stage: the real HTTP edge, guard and ledger, with captures and attempts that a test puts there."""

import contextlib
import json
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import orjson
import uvicorn

from tensorviz.contracts.attempt import CaptureRequest, RunAttempt
from tensorviz.contracts.messages import AttemptPage, CapturePage, HostEvent, HostInfo, StateEvent
from tensorviz.contracts.problem import Problem
from tensorviz.edges.serving import listening
from tensorviz.edges.web import create_app
from tensorviz.errors import Refused, refusal
from tensorviz.ingest import summarize
from tensorviz.ledger import Bounds, Ledger, Retained, index

TOKEN = "t" * 43


@dataclass
class Stage:
    """What the edge takes for a Service. A test tells it what to hold, and sees what the page asked for."""

    bounds: Bounds = field(default_factory=Bounds)
    asked: list[CaptureRequest] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    refuse_with: Problem | None = None

    def __post_init__(self) -> None:
        self._listeners: list[Callable[[HostEvent], None]] = []
        self.ledger = Ledger(self._publish, self.bounds)

    # -- for tests

    def hold(self, document: dict[str, Any]) -> str:
        """Retains a capture; returns its name."""
        data = orjson.dumps(document)
        summary = summarize(document, len(data), int(time.time() * 1000))
        self.ledger.retain(Retained(data, summary, index(data, document, orjson.dumps)))
        return document["id"]

    def begin(self, attempt: RunAttempt) -> RunAttempt:
        self.ledger.begin(attempt)
        return attempt

    def move(self, attempt: RunAttempt, log: str | None = None, **changes: Any) -> RunAttempt:
        moved = attempt.model_copy(update=changes)
        self.ledger.update(moved, log)
        return moved

    # -- for the edge

    def info(self) -> HostInfo:
        return HostInfo(name="tensorviz", version="0.1.0", workspace="/workspace")

    def captures(self, offset: int, limit: int) -> CapturePage:
        return self.ledger.captures(offset, limit)

    def retained(self, name: str) -> Retained:
        found = self.ledger.capture(name)
        if found is None:
            raise refusal("not_found", f"there is no capture {name}")
        return found

    def attempts(self, offset: int, limit: int) -> AttemptPage:
        return self.ledger.attempts(offset, limit)

    def attempt_with_log(self, name: str) -> RunAttempt:
        found = self.ledger.attempt(name)
        assert found is not None
        return found

    def log(self, name: str) -> str:
        return self.ledger.log(name) or ""

    def start(self, request: CaptureRequest, origin: str) -> RunAttempt:
        self.asked.append(request)
        if self.refuse_with is not None:
            raise Refused(self.refuse_with)
        return self.begin(attempt(request.file, request=request))

    def cancel(self, name: str) -> RunAttempt:
        self.cancelled.append(name)
        found = self.ledger.attempt(name)
        assert found is not None
        problem = Problem(code="cancelled", title="The run was cancelled", detail="", hint=None, faults=())
        return self.move(found, stage="ended", outcome="cancelled", problem=problem, ended=found.started + 1500)

    def subscribe(self, listener: Callable[[HostEvent], None]) -> tuple[StateEvent, Callable[[], None]]:
        with self.ledger.locked():
            self._listeners.append(listener)
            return self.ledger.state(), lambda: self._listeners.remove(listener)

    def _publish(self, event: HostEvent) -> None:
        for listener in tuple(self._listeners):
            listener(event)


def attempt(file: str, *, request: CaptureRequest | None = None, **facts: Any) -> RunAttempt:
    """An attempt that has just begun."""
    return RunAttempt(
        id=f"att-{secrets.token_hex(8)}",
        origin="web",
        request=request or CaptureRequest(file=file),
        requestDigest="0" * 64,
        planDigest=None,
        stage="starting",
        outcome=None,
        problem=None,
        capture=None,
        operations=0,
        started=int(time.time() * 1000),
        ended=None,
    ).model_copy(update=facts)


@contextlib.contextmanager
def serving(stage: Stage, port: int = 0, token: str = TOKEN) -> Iterator[int]:
    """Serves the stage on loopback while the block runs; gives the port."""
    with listening(port) as sock:
        found = sock.getsockname()[1]
        app = create_app(stage, token=token, port=found)  # type: ignore[arg-type]
        server = uvicorn.Server(
            uvicorn.Config(
                app, log_config=None, lifespan="off", ws="websockets-sansio", http="h11", timeout_graceful_shutdown=1
            )
        )
        thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]}, daemon=True)
        thread.start()
        try:
            yield found
        finally:
            server.should_exit = True
            thread.join(10)


def load(path: Any) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))
