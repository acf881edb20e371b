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
_WITHOUT_VALUES = {
    _FAKE + "DataDependentOutputException": "data_dependent",
    _FAKE + "DynamicOutputShapeException": "data_dependent",
    _FAKE + "UnsupportedOperatorException": "fake_unsupported",
}
_ROOM = 24 * 1024
"""The most bytes of constraints in one capture."""


def judge(diagnostics: Sequence[Json], calls: Sequence[Json], termination: Json) -> None:
    """Writes the dispositions, and that a call which control flow left was stopped and did not fail.

    The constraints of failed operations are null until ``explain``.
    """
    causes = {diagnostic.setdefault("cause", None) for diagnostic in diagnostics}
    for diagnostic in diagnostics:
        diagnostic["disposition"] = _disposition(diagnostic, causes, termination)
        diagnostic["constraints"] = [] if diagnostic["operation"] is None else None
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


def explain(document: Json) -> None:
    """Writes the constraints of each failed operation while the capture has room, first of what ended the run."""
    failed = [diagnostic for diagnostic in document["diagnostics"] if diagnostic["operation"] is not None]
    if not failed:
        return
    schemas = {operator["target"]: operator["operatorSchema"] for operator in document["operators"]}
    room = min(_ROOM, document["limits"]["bytes"] - len(orjson.dumps(document)))
    for diagnostic in sorted(failed, key=lambda item: item["disposition"] not in ("propagated", "replaced")):
        operation = document["operations"][int(diagnostic["operation"][1:])]
        found = constraints.violated(operation, schemas[operation["target"]], document["values"])
        room -= len(orjson.dumps(found))
        if room < 0:
            return
        diagnostic["constraints"] = found


def chain(diagnostics: Sequence[Json], last: str) -> Iterator[Json]:
    """An exception, the one in whose place it was raised, and so on back to the first."""
    at: int | None = int(last[1:])
    while at is not None:
        diagnostic = diagnostics[at]
        yield diagnostic
        cause = diagnostic["cause"]
        at = int(cause[1:]) if cause is not None and int(cause[1:]) < at else None


def reason(diagnostics: Sequence[Json], last: str, missing: set[str]) -> tuple[str, str | None]:
    """The code for a run that this exception ended, and the operation, or the call, that it came from.

    ``missing`` are the other reasons of the capture: that a fake run lacks values is one only there, and then it counts
    however often the program raised another exception in its place.
    """
    for item in reversed(list(chain(diagnostics, last))):
        code = _WITHOUT_VALUES.get(item["exception"])
        if code in missing and code is not None:
            return code, item["operation"]
    ended = diagnostics[int(last[1:])]
    return "run_failed", ended["operation"] or ended["invocation"]


def without_values(diagnostics: Sequence[Json]) -> dict[str, list[str]]:
    """The operations that failed because tensors were fake, by reason. What the program did then is another path."""
    found: dict[str, list[str]] = {}
    for diagnostic in diagnostics:
        code = _WITHOUT_VALUES.get(diagnostic["exception"])
        if code is not None and diagnostic["operation"] is not None:
            found.setdefault(code, []).append(diagnostic["operation"])
    return found
