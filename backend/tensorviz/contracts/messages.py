"""What the host sends beside captures and attempts: pages of them, and the events of its WebSocket."""

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypeAliasType

from tensorviz.contracts.attempt import CaptureSummary, RunAttempt
from tensorviz.contracts.base import Count, Many, Model, Name


class HostInfo(Model):
    """Which host answers. ``workspace`` is the absolute folder whose files it may run."""

    name: Literal["tensorviz"]
    version: Name
    workspace: Name


class CapturePage(Model):
    items: Many[CaptureSummary]
    offset: Count
    total: Count


class AttemptPage(Model):
    items: Many[RunAttempt]
    offset: Count
    total: Count


class StateEvent(Model):
    """The first message of every connection: all that the ledger holds."""

    kind: Literal["state"]
    attempts: Many[RunAttempt]
    captures: Many[CaptureSummary]


class AttemptEvent(Model):
    """An attempt started, moved to another stage, recorded more operations, or ended."""

    kind: Literal["attempt"]
    attempt: RunAttempt


class CaptureEvent(Model):
    """A capture was validated and retained."""

    kind: Literal["capture"]
    capture: CaptureSummary


class EvictionEvent(Model):
    """A capture left the ledger because the space was needed for newer ones."""

    kind: Literal["eviction"]
    capture: Name


HostEvent = TypeAliasType(
    "HostEvent", Annotated[StateEvent | AttemptEvent | CaptureEvent | EvictionEvent, Field(discriminator="kind")]
)
