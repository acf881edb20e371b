"""Worker bytes -> CaptureSnapshot, or the reason why there is none. The only reader of worker bytes, all untrusted.

A journal that stops anywhere still gives the capture of everything before: what had begun and not ended is in flight.
The line kinds are listed in ``tensorviz_worker/journal.py``. What a reason can be derived from (opaque arguments,
writes that nothing recorded) is derived here, from the same records that a reader of the capture has.
"""

import hashlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol, get_args

import orjson

from tensorviz import failures
from tensorviz.contracts.attempt import CaptureSummary, ExecutionPlan, plan_digest
from tensorviz.contracts.capture import Cancelled, Exited, Killed, Limits, TimedOut
from tensorviz.contracts.problem import ProblemCode
from tensorviz.contracts.validate import ContractError, parse_capture
from tensorviz.errors import refusal

Json = dict[str, Any]
Ended = Exited | Killed | TimedOut | Cancelled

_TABLES = ("file", "location", "definition", "operator", "diagnostic", "value")
_OPAQUE = b'"opaque"'
_ENDED_REASONS = {
    "exited": "worker_exited",
    "killed": "worker_killed",
    "timed_out": "timed_out",
    "cancelled": "cancelled",
}
_OPAQUE_REASONS = {
    "unsupported_type": "unsupported_argument",
    "unsupported_tensor": "unsupported_tensor",
    "cycle": "unsupported_argument",
    "depth_limit": "argument_limit",
    "item_limit": "argument_limit",
    "text_limit": "argument_limit",
    "value_limit": "value_limit",
    "failed_write": "failed_write",
}
_STATE_REASONS = {
    "uninitialized": "lazy_state",
    "unsupported_tensor": "unsupported_tensor",
    "value_limit": "value_limit",
}
_PARAMETER = "torch.nn.parameter.Parameter"


@dataclass(frozen=True)
class Ingested:
    """A validated capture: its canonical JSON and the line about it in a list."""

    data: bytes
    summary: CaptureSummary


@dataclass(frozen=True)
class Origin:
    """What the host itself knows of a run and no worker may claim."""

    attempt: str
    setup: Json
    limits: Limits
    sandbox: tuple[Json, ...]


class WorkerOutput(Protocol):
    """The part of a finished run that is read here."""

    @property
    def journal(self) -> bytes: ...
    @property
    def ended(self) -> Ended: ...


def ingest(plan: ExecutionPlan, run: WorkerOutput) -> Ingested:
    """Raises Refused when there is nothing to capture, or when the journal does not make a valid capture."""
    setup = {"kind": "planned", "planDigest": plan_digest(plan)}
    unconfined = {"mechanism": "sandbox", "state": "unavailable", "reason": "this version does not confine the worker"}
    return assemble(run.journal, run.ended, Origin(plan.attempt, setup, plan.limits, (unconfined,)))


def assemble(journal: bytes, ended: Ended, origin: Origin) -> Ingested:
    """As ``ingest``, for a recording of any origin."""
    try:
        parts = _read(journal)
        _drop_unfinished(parts)
        _refuse_if_nothing(parts, ended)
        document = _document(parts, ended, origin)
    except (orjson.JSONDecodeError, LookupError, TypeError, ValueError, AttributeError) as error:
        raise refusal("capture_rejected", f"the worker's journal cannot be read: {type(error).__name__}") from error
    return _validated(document)


def _validated(document: Json) -> Ingested:
    data = orjson.dumps(document)
    try:
        parse_capture(data)
    except ContractError as error:
        first = "; ".join(f"{'/'.join(map(str, fault.path))}: {fault.message}" for fault in error.faults[:3])
        raise refusal("capture_rejected", f"the worker's journal does not make a valid capture: {first}") from error
    return Ingested(data, summarize(document, len(data), int(time.time() * 1000)))


def summarize(document: Json, size: int, created: int) -> CaptureSummary:
    root = next((call for call in document["invocations"] if call["parent"] is None), None)
    definitions = document["definitions"]
    modules = document["modules"]
    files = {file["id"]: file["path"] for file in document["source"]["files"]}
    return CaptureSummary(
        id=document["id"],
        attempt=document["attempt"],
        status=document["status"],
        target=document["execution"]["target"],
        file=files.get(document["execution"]["file"]),
        model=definitions[int(modules[int(root["module"][1:])]["definition"][1:])]["type"] if root else None,
        reasons=tuple(reason["code"] for reason in document["reasons"]),
        operations=len(document["operations"]),
        invocations=len(document["invocations"]),
        values=len(document["values"]),
        bytes=size,
        created=created,
    )


# -- reading


class _Parts:
    """The lines of a journal by kind, begun things joined with their ends."""

    def __init__(self) -> None:
        self.tables: dict[str, list[Json]] = {kind: [] for kind in _TABLES}
        self.single: dict[str, Any] = {}
        self.modules: dict[str, Json] = {}
        self.states: dict[str, Json] = {}
        self.calls: dict[str, Json] = {}
        self.operations: dict[str, Json] = {}
        self.gaps: list[str] = []
        self.opaque: dict[str, tuple[int, str]] = {}

    @property
    def values(self) -> list[Json]:
        return self.tables["value"]


def _read(journal: bytes) -> _Parts:
    parts = _Parts()
    whole, _, _ = journal.rstrip(b"\0").rpartition(b"\n")
    for line in whole.split(b"\n") if whole else ():
        ((kind, body),) = orjson.loads(line).items()
        _take(parts, kind, body)
        if _OPAQUE in line:
            _count_opaque(parts, kind, body)
    return parts


def _take(parts: _Parts, kind: str, body: Any) -> None:
    if kind in parts.tables:
        parts.tables[kind].append(body)
        if kind == "diagnostic" and body["operation"] is not None:
            parts.operations[body["operation"]].update(status="failed", diagnostic=body["id"])
    elif kind == "begin":
        parts.operations[body["id"]] = {
            **body,
            "status": "in_flight",
            "output": None,
            "effects": [],
            "diagnostic": None,
        }
    elif kind == "enter":
        parts.calls[body["id"]] = {**body, "status": "in_flight", "exit": None, "output": None, "diagnostic": None}
    elif kind in ("end", "exit"):
        begun = (parts.operations if kind == "end" else parts.calls)[body["id"]]
        begun.update(body, status="failed" if "diagnostic" in body else "completed")
    elif kind == "settle":
        _settle(parts, body)
    elif kind == "module":
        parts.modules[body["id"]] = {**body, "paths": []}
    elif kind == "paths":
        parts.modules[body["id"]]["paths"].extend(body["paths"])
    elif kind == "state":
        _take_state(parts, body)
    elif kind == "gap":
        parts.gaps.append(body["code"])
    else:
        parts.single[kind] = body


def _settle(parts: _Parts, changes: list[list[Any]]) -> None:
    for name, version, requires_grad in changes:
        parts.values[_index(name)].update(version=version, requiresGrad=requires_grad)


def _take_state(parts: _Parts, body: Json) -> None:
    """The same object under a second root adds paths to the state that is there."""
    identity = body.pop("object")
    key = identity or f"unread {len(parts.states)}"
    if key in parts.states:
        parts.states[key]["paths"].extend(body["paths"])
    else:
        parts.states[key] = {"id": f"p{len(parts.states)}", **body}


def _index(name: str) -> int:
    return int(name[1:])


def _count_opaque(parts: _Parts, kind: str, body: Json) -> None:
    for node in _opaque_nodes(body):
        code = _OPAQUE_REASONS[node["reason"]]
        count, subject = parts.opaque.get(code, (0, body["id"]))
        parts.opaque[code] = (count + 1, subject)


def _opaque_nodes(tree: Any) -> Iterator[Json]:
    stack = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, list):
            stack.extend(reversed(node))
        elif isinstance(node, dict):
            if node.get("kind") == "opaque":
                yield node
            stack.extend(item for item in reversed(node.values()) if isinstance(item, (dict, list)))


def _drop_unfinished(parts: _Parts) -> None:
    """The last values of a cut journal may belong to an event whose own line was not written any more."""
    while parts.values and not _is_produced(parts, parts.values[-1]["producer"]):
        parts.values.pop()


def _is_produced(parts: _Parts, producer: Json) -> bool:
    if producer["kind"] == "input":
        return producer["invocation"] in parts.calls
    return "operation" not in producer or parts.operations[producer["operation"]]["status"] != "in_flight"


def _refuse_if_nothing(parts: _Parts, ended: Ended) -> None:
    problem = parts.single.get("problem")
    if problem is not None:
        code = problem["code"] if problem["code"] in get_args(ProblemCode) else "worker_failed"
        raise refusal(code, problem["detail"], problem["hint"])
    if parts.operations or parts.calls:
        return
    if "broken" in parts.single:
        failure = parts.single["broken"]["type"]
        raise refusal("nothing_recorded", f"the recorder failed before the first event was on record: {failure}")
    if "finish" in parts.single:
        raise _nothing_recorded(parts)
    if isinstance(ended, TimedOut):
        raise refusal("timed_out", f"nothing was recorded within {ended.seconds:g} s")
    if isinstance(ended, Cancelled):
        raise refusal("cancelled", "the attempt was cancelled before anything was recorded")
    how = f"exited with status {ended.code}" if isinstance(ended, Exited) else f"was ended by {ended.signal}"
    raise refusal("worker_failed", f"the worker {how} before anything was recorded")


def _nothing_recorded(parts: _Parts) -> Exception:
    spent = [code for code in parts.gaps if code.endswith("_limit")]
    if spent:
        return refusal(
            "nothing_recorded",
            f"nothing fits before the first event ({', '.join(spent)})",
            "raise the budget that is named, such as --max-bytes",
        )
    diagnostics = parts.tables["diagnostic"]
    if diagnostics:
        return refusal(
            "nothing_recorded",
            f"the program raised {diagnostics[-1]['exception']} before anything could be recorded",
            "the attempt's log has the traceback",
        )
    return refusal("nothing_recorded", "the program ran and called no module and no torch operation")


# -- the document


def _document(parts: _Parts, ended: Ended, origin: Origin) -> Json:
    _link_state(parts)
    termination = _termination(parts, ended)
    operations, calls = list(parts.operations.values()), list(parts.calls.values())
    failures.judge(parts.tables["diagnostic"], calls, termination)
    reasons = _reasons(parts, termination)
    document = {
        "schemaVersion": 1,
        "id": "cap-" + origin.attempt.removeprefix("att-"),
        "attempt": origin.attempt,
        "status": "partial" if reasons else "complete",
        "termination": termination,
        "reasons": reasons,
        "setup": origin.setup,
        "execution": parts.single["execution"],
        "environment": {**parts.single["environment"], "sandbox": list(origin.sandbox)},
        "limits": origin.limits.model_dump(),
        "normalizations": ["dict_storage", "declared_write_versions"]
        + (["fake_device_reads"] if "fake" in parts.single else []),
        "source": _source(parts.tables["file"]),
        "locations": parts.tables["location"],
        "definitions": parts.tables["definition"],
        "modules": list(parts.modules.values()),
        "state": list(parts.states.values()),
        "operators": parts.tables["operator"],
        "invocations": calls,
        "operations": operations,
        "values": parts.values,
        "diagnostics": parts.tables["diagnostic"],
        "coverage": _coverage(parts),
    }
    if "fake" in parts.single:
        document["valuesUnavailable"] = "fake_tensor"
    failures.explain(document)
    return document


def _link_state(parts: _Parts) -> None:
    """A parameter's or buffer's every value names it; the worker may learn only later that a tensor is one."""
    names = {identity: state["id"] for identity, state in parts.states.items()}
    for value in parts.values:
        value["state"] = names.get(value["object"])
        if value["producer"]["kind"] == "state":
            value["producer"] = {"kind": "state", "state": value["state"]}


def _termination(parts: _Parts, ended: Ended) -> Json:
    finish = parts.single.get("finish")
    if finish is None:
        return ended.model_dump() if "broken" not in parts.single else {"kind": "returned"}
    if finish["diagnostic"] is None:
        return {"kind": "returned"}
    return {"kind": "raised", "diagnostic": finish["diagnostic"]}


def _source(files: list[Json]) -> Json:
    cited = sorted(f"{file['path']}\0{file['digest']}\n" for file in files if file["root"] == "workspace")
    return {"digest": hashlib.sha256("".join(cited).encode()).hexdigest(), "scope": "partial", "files": files}


def _reasons(parts: _Parts, termination: Json) -> list[Json]:
    found: list[Json] = []
    derived = _derived(parts)
    if termination["kind"] == "raised":
        code, subject = failures.reason(parts.tables["diagnostic"], termination["diagnostic"], set(derived))
        count, _ = derived.pop(code, (1, None))
        found.append(_reason(code, count, subject))
    elif termination["kind"] in _ENDED_REASONS:
        found.append(_reason(_ENDED_REASONS[termination["kind"]], 1, _in_flight(parts)))
    if "broken" in parts.single:
        found.append(_reason("instrumentation_error", 1, None, parts.single["broken"]["type"]))
    found.extend(_reason(code, *derived.pop(code, (1, None))) for code in parts.gaps)
    found.extend(_reason(code, *counted) for code, counted in derived.items())
    return found


def _derived(parts: _Parts) -> dict[str, tuple[int, str]]:
    """What the records themselves tell to be missing: for each reason how many there are and which is the first."""
    found = dict(parts.opaque)
    subjects = {
        **{code: [s["id"] for s in _unavailable(parts, code)] for code in _STATE_REASONS.values()},
        "dynamic_state": [v["id"] for v in parts.values if _is_dynamic_state(v)],
        "unobserved_write": [v["id"] for v in parts.values if _is_unobserved(v)],
        **(failures.without_values(parts.tables["diagnostic"]) if parts.single["execution"]["fake"] else {}),
    }
    for code, names in subjects.items():
        if names:
            found.setdefault(code, (len(names), names[0]))
    if _stops(parts):  # the values after the stop are its doing; their own budget was not spent
        found.pop("value_limit", None)
    return found


def _reason(code: str, count: int, subject: str | None, detail: str | None = None) -> Json:
    return {"code": code, "count": count, "subject": subject, "detail": detail}


def _unavailable(parts: _Parts, code: str) -> Iterator[Json]:
    return (state for state in parts.states.values() if _STATE_REASONS.get(state.get("unavailable", "")) == code)


def _is_dynamic_state(value: Json) -> bool:
    """A parameter from nowhere, or from an operation: making one dispatches a ``detach`` in a fake run alone."""
    is_made = value["producer"]["kind"] in ("external", "output")
    return is_made and value["type"] == _PARAMETER and value["state"] is None


def _is_unobserved(value: Json) -> bool:
    return value["producer"].get("reason") == "unobserved_write"


def _in_flight(parts: _Parts) -> str | None:
    """What had begun last and was not over."""
    begun = [(record["sequence"], record) for record in parts.operations.values()]
    begun += [(record["entry"], record) for record in parts.calls.values()]
    open_ = [(number, record["id"]) for number, record in begun if record["status"] == "in_flight"]
    return max(open_)[1] if open_ else None


def _coverage(parts: _Parts) -> Json:
    finish = parts.single.get("finish")
    broken = "broken" in parts.single
    stops = _stops(parts)
    return {
        "operations": _events(len(parts.operations), "operations", finish, broken, stops),
        "invocations": _events(len(parts.calls), "invocations", finish, broken, stops),
        "values": _events(len(parts.values), "values", finish, broken, stops or _value_stop(parts)),
        "modules": _module_coverage(parts, limited=bool(stops) or broken),
    }


def _stops(parts: _Parts) -> list[str]:
    """The budgets that ended the recording."""
    return [code for code in parts.gaps if code in ("operation_limit", "invocation_limit", "byte_limit")]


def _value_stop(parts: _Parts) -> list[str]:
    return [code for code in parts.gaps if code == "value_limit"]


def _events(recorded: int, kind: str, finish: Json | None, broken: bool, stops: list[str]) -> Json:
    if broken:
        return {"recorded": recorded, "omitted": None, "reason": "instrumentation_error"}
    if not stops:
        return {"recorded": recorded, "omitted": 0, "reason": None}
    omitted = finish["omitted"][kind] if finish else None
    return {"recorded": recorded, "omitted": omitted, "reason": stops[0] if omitted != 0 else None}


def _module_coverage(parts: _Parts, limited: bool) -> list[Json]:
    called: dict[str, str] = {}
    for call in parts.calls.values():
        if called.get(call["module"]) != "failed":
            called[call["module"]] = "failed" if call["status"] == "failed" else "observed"
    absent = "capture_limited" if limited else "not_observed"
    return [{"module": name, "state": called.get(name, absent)} for name in parts.modules]
