"""Budgets, coverage, and what a complete capture may not contain."""

from collections.abc import Iterator

from tensorviz.contracts.arguments import OpaqueArgument
from tensorviz.contracts.capture import EventCoverage, Returned
from tensorviz.contracts.relations.lookup import Capture, Fault, Rule, is_unobserved


def lists_stay_within_budgets(capture: Capture) -> Iterator[Fault]:
    snapshot, limits = capture.snapshot, capture.snapshot.limits
    for field in ("operations", "invocations", "values"):
        count, limit = len(getattr(snapshot, field)), getattr(limits, field)
        if count > limit:
            yield Fault((field,), "limit", f"{count} records; the limit is {limit}")
    if capture.size is not None and capture.size > limits.bytes:
        yield Fault(("limits", "bytes"), "limit", f"the capture has {capture.size} bytes; the limit is {limits.bytes}")


def parameter_counts_are_exclusive(capture: Capture) -> Iterator[Fault]:
    for index, call in enumerate(capture.snapshot.invocations):
        if call.parameterCount is not None and call.parameterCountUnavailable is not None:
            yield Fault(("invocations", index, "parameterCountUnavailable"), "parameters", "there is a count")


def coverage_counts_the_records(capture: Capture) -> Iterator[Fault]:
    snapshot = capture.snapshot
    codes = {reason.code for reason in snapshot.reasons}
    for field in ("operations", "invocations", "values"):
        path, events = ("coverage", field), _events(capture, field)
        if events.recorded != len(getattr(snapshot, field)):
            yield Fault((*path, "recorded"), "coverage", f"there are {len(getattr(snapshot, field))}")
        if (events.omitted != 0) != (events.reason is not None):
            yield Fault((*path, "reason"), "coverage", "omitted events have a reason, and nothing else has")
        elif events.reason is not None and events.reason not in codes:
            yield Fault((*path, "reason"), "coverage", "is not among the capture's reasons")


def coverage_matches_calls(capture: Capture) -> Iterator[Fault]:
    snapshot = capture.snapshot
    called = {call.module for call in snapshot.invocations}
    failed = {call.module for call in snapshot.invocations if call.status == "failed"}
    covered: set[str] = set()
    for index, entry in enumerate(snapshot.coverage.modules):
        path = ("coverage", "modules", index)
        if entry.module in covered:
            yield Fault((*path, "module"), "coverage", f"{entry.module} is listed twice")
        covered.add(entry.module)
        wanted = ("not_observed", "capture_limited")
        if entry.module in called:
            wanted = ("failed",) if entry.module in failed else ("observed",)
        if entry.state not in wanted:
            yield Fault((*path, "state"), "coverage", f"its calls say {' or '.join(wanted)}")
        elif entry.state == "capture_limited" and snapshot.status == "complete":
            yield Fault((*path, "state"), "coverage", "nothing limited a complete capture")
    if len(covered) < len(snapshot.modules):
        yield Fault(("coverage", "modules"), "coverage", "every module is listed")


def partial_captures_say_why(capture: Capture) -> Iterator[Fault]:
    snapshot = capture.snapshot
    if snapshot.status == "partial" and not snapshot.reasons:
        yield Fault(("reasons",), "complete", "a partial capture has a reason")
    if snapshot.status == "complete":
        for why in _gaps(capture):
            yield Fault(("status",), "complete", why)


def _gaps(capture: Capture) -> Iterator[str]:
    snapshot = capture.snapshot
    if snapshot.reasons:
        yield "a complete capture has no reasons"
    if not isinstance(snapshot.termination, Returned):
        yield "the run did not return"
    if any(_events(capture, field).omitted != 0 for field in ("operations", "invocations", "values")):
        yield "events were omitted"
    if capture.has_opaque or any(isinstance(e.after, OpaqueArgument) for o in snapshot.operations for e in o.effects):
        yield "an argument, a result or the outcome of a write is opaque"
    if any(state.value is None for state in snapshot.state):
        yield "a parameter or buffer has no value"
    if any(is_unobserved(value.producer) for value in snapshot.values):
        yield "a tensor changed without a recorded operation"


def unavailable_values_are_fake(capture: Capture) -> Iterator[Fault]:
    snapshot = capture.snapshot
    if snapshot.valuesUnavailable is not None and not snapshot.values and not snapshot.state:
        yield Fault(("valuesUnavailable",), "fake", "no tensor was observed")


def _events(capture: Capture, field: str) -> EventCoverage:
    return getattr(capture.snapshot.coverage, field)


RULES: tuple[Rule, ...] = (
    lists_stay_within_budgets,
    parameter_counts_are_exclusive,
    coverage_counts_the_records,
    coverage_matches_calls,
    partial_captures_say_why,
    unavailable_values_are_fake,
)
