"""One capture of a file: planned, run by the real worker, read back. Nothing of it may be left afterwards."""

import secrets
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil

from tensorviz.contracts.attempt import CaptureRequest, InputFunction, Mode
from tensorviz.contracts.capture import CaptureSnapshot, Limits
from tensorviz.contracts.problem import Problem
from tensorviz.contracts.validate import parse_capture
from tensorviz.errors import Refused
from tensorviz.ingest import ingest
from tensorviz.planning import resolve
from tensorviz.process_tree import MARKER
from tensorviz.supervisor import run

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Outcome:
    """A capture or a problem, and what the program printed."""

    captured: CaptureSnapshot | None
    problem: Problem | None
    log: str

    @property
    def snapshot(self) -> CaptureSnapshot:
        assert self.captured is not None, f"{self.problem}\n{self.log}"
        return self.captured

    @property
    def refusal(self) -> Problem:
        assert self.problem is not None, "there is a capture"
        return self.problem


def capture(
    file: Path,
    target: str | None = None,
    *,
    inputs: tuple[Path, str] | None = None,
    python: str = sys.executable,
    mode: Mode = "eval",
    fake: bool = False,
    timeout: float = 60.0,
    workspace: Path | None = None,
    limits: Limits | None = None,
    on_operations: Callable[[str, int], None] = lambda attempt, operations: None,
    cancel: threading.Event | None = None,
) -> Outcome:
    """``on_operations(attempt, operations)`` is told how many operations the journal shows."""
    attempt = f"att-{secrets.token_hex(8)}"
    request = CaptureRequest(
        file=str(file),
        target=target,
        inputs=InputFunction(file=str(inputs[0]), function=inputs[1]) if inputs else None,
        python=python,
        mode=mode,
        fake=fake,
        timeout=float(timeout),
        limits=limits or Limits(),
    )
    log = ""
    try:
        plan = resolve(request, workspace or file.parent, attempt)
        done = run(plan, on_progress=lambda _, operations: on_operations(attempt, operations), cancel=cancel)
        log = done.log
        return Outcome(parse_capture(ingest(plan, done).data), None, log)
    except Refused as refused:
        return Outcome(None, refused.problem, log)
    finally:
        left = [process.pid for process in marked(attempt)]
        assert left == [], f"processes of the attempt are left: {left}"


def marked(attempt: str) -> list[psutil.Process]:
    """The processes that carry the mark of an attempt, wherever they have gone in the process tree."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARKER) == attempt and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found
