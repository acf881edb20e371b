"""CaptureRequest -> ExecutionPlan -> RunAttempt: what was asked, what the worker was told, and how it went."""

from typing import Annotated, Literal

from pydantic import Field

from tensorviz.contracts.base import Count, Many, Model, Name, Sha256, Text, Version1, absent, digest
from tensorviz.contracts.capture import AttemptId, CaptureId, Limits
from tensorviz.contracts.problem import Problem

Mode = Literal["eval", "train", "as_is"]
Seconds = Annotated[float, Field(gt=0, le=86_400)]


class InputFunction(Model):
    """A function in a file that returns the arguments, or ``(args, kwargs)``."""

    file: Name
    function: Name


class CaptureRequest(Model):
    """What somebody asked for. Paths are absolute or relative to the workspace."""

    file: Name
    target: Name | None = None
    inputs: InputFunction | None = None
    python: Name | None = None
    mode: Mode = "eval"
    fake: bool = False
    timeout: Seconds = 60.0
    limits: Limits = Limits()


class ExecutionPlan(Model):
    """Everything the worker is told, with absolute paths. ``roots`` are import roots of the workspace, in order."""

    schemaVersion: Version1
    attempt: AttemptId
    workspace: Name
    roots: Many[Name]
    file: Name
    fileDigest: Sha256
    target: Name | None
    inputs: InputFunction | None
    python: Name
    mode: Mode
    fake: bool
    timeout: Seconds
    limits: Limits


def plan_digest(plan: ExecutionPlan) -> str:
    """Identifies what was run, not the attempt to run it."""
    return digest(plan, without=frozenset({"attempt"}))


Stage = Literal["queued", "starting", "importing", "preparing", "running", "finishing", "validating", "ended"]
Outcome = Literal["complete", "partial", "refused", "failed", "cancelled", "timed_out"]


class RunAttempt(Model):
    """The state of one attempt. ``outcome`` is null while it runs; ``operations`` counts what the journal shows so far.

    ``refused`` means that nothing ran, ``failed`` that something ran and no capture came of it; both carry a problem. A
    run that was cancelled or timed out may still have left a partial capture, named by ``capture``.
    """

    id: AttemptId
    origin: Literal["cli", "web", "mcp", "automatic"]
    request: CaptureRequest
    requestDigest: Sha256
    planDigest: Sha256 | None
    stage: Stage
    outcome: Outcome | None
    problem: Problem | None
    capture: CaptureId | None
    operations: Count
    started: Count
    ended: Count | None
    log: Text = absent


class CaptureSummary(Model):
    """The line about a capture in a list. ``created`` is milliseconds since the epoch; ``bytes`` the encoded size."""

    id: CaptureId
    attempt: AttemptId
    status: Literal["complete", "partial"]
    target: Name
    file: Name | None
    model: Name | None
    reasons: Many[str]
    operations: Count
    invocations: Count
    values: Count
    bytes: Count
    created: Count
