"""What became of each exception of a run, told from the records of all of them.

propagated     it ended the run                    replaced       another was raised in its place
suppressed     the program went on                 control_flow   torch's own way to leave a call early
unknown        the run did not end by itself
"""

from collections.abc import Iterator, Sequence
from typing import Any

import orjson

from tensorviz import constraints

Json = dict[str, Any]

_CONTROL_FLOW = frozenset(("torch.utils.checkpoint._StopRecomputationError",))
_FAKE = "torch._subclasses.fake_tensor."
_ENDED_BY = {
    _FAKE + "DataDependentOutputException": "data_dependent",
    _FAKE + "DynamicOutputShapeException": "data_dependent",
    _FAKE + "UnsupportedOperatorException": "fake_unsupported",
}
_ROOM = 24 * 1024
"""Bytes of constraints in one capture: within what the worker leaves free of the byte budget."""


def judge(diagnostics: Sequence[Json], calls: Sequence[Json], termination: Json) -> None:
    """Writes the dispositions, and that a call which control flow left was stopped and did not fail."""
    causes = {diagnostic.setdefault("cause", None) for diagnostic in diagnostics}
    for diagnostic in diagnostics:
        diagnostic["disposition"] = _disposition(diagnostic, causes, termination)
    left = {item["id"] for item in diagnostics if item["disposition"] == "control_flow"}
    for call in calls:
        if call["status"] == "failed" and call["diagnostic"] in left:
            call["status"] = "stopped"


def _disposition(diagnostic: Json, causes: set[str | None], termination: Json) -> str:
    if termination.get("diagnostic") == diagnostic["id"]:
        return "propagated"
    if diagnostic["exception"] in _CONTROL_FLOW:
        return "control_flow"
    if diagnostic["id"] in causes:
        return "replaced"
    return "suppressed" if termination["kind"] in ("returned", "raised") else "unknown"


def explain(
    diagnostics: Sequence[Json], operations: dict[str, Json], operators: Sequence[Json], values: Sequence[Json]
) -> None:
    """Writes the constraints of each failed operation while room lasts, first of what ended the run."""
    schemas = {operator["target"]: operator["operatorSchema"] for operator in operators}
    room = _ROOM
    for diagnostic in sorted(diagnostics, key=lambda item: item["disposition"] not in ("propagated", "replaced")):
        diagnostic["constraints"] = [] if diagnostic["operation"] is None else None
        if diagnostic["operation"] is None or room <= 0:
            continue
        operation = operations[diagnostic["operation"]]
        found = constraints.violated(operation, schemas[operation["target"]], values)
        room -= len(orjson.dumps(found))
        if room > 0:
            diagnostic["constraints"] = found


def chain(diagnostics: Sequence[Json], last: str) -> Iterator[Json]:
    """An exception, the one in whose place it was raised, and so on back to the first."""
    at: int | None = int(last[1:])
    while at is not None:
        diagnostic = diagnostics[at]
        yield diagnostic
        cause = diagnostic["cause"]
        at = int(cause[1:]) if cause is not None and int(cause[1:]) < at else None


def reason(diagnostics: Sequence[Json], last: str) -> tuple[str, str | None]:
    """The code for a run that this exception ended, and the operation, or the call, that it came from."""
    linked = list(chain(diagnostics, last))
    codes = [_ENDED_BY[item["exception"]] for item in linked if item["exception"] in _ENDED_BY]
    blamed = [item["operation"] for item in linked if item["operation"]] or [linked[0]["invocation"]]
    return (codes[-1] if codes else "run_failed"), blamed[-1]
