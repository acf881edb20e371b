"""Worker bytes are untrusted: a cut journal gives the prefix, anything else a capture or a typed refusal."""

from contextlib import suppress
from functools import cache
from typing import Any

import orjson
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tensorviz.contracts.capture import Cancelled, Exited, Killed, Limits, TimedOut
from tensorviz.contracts.validate import parse_capture
from tensorviz.errors import Refused
from tensorviz.ingest import Origin, assemble
from tensorviz_worker import budget
from tensorviz_worker.journal import MemoryJournal, to_json
from tensorviz_worker.launch import environment
from tensorviz_worker.recorder import Recorder

SEGFAULT = Killed(kind="killed", signal="SIGSEGV")
ORIGIN = Origin("att-0123456789abcdef", {"kind": "in_process"}, Limits(), ())
EXECUTION = {
    "file": None,
    "target": "Model",
    "targetKind": "class",
    "inputs": {"kind": "caller", "name": None},
    "mode": "as_is",
    "fake": False,
    "gradEnabled": True,
    "inferenceMode": False,
}


@cache
def journal() -> bytes:
    """The journal of a small model with nested calls, a view, an in-place write and a caught failure."""

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(4, 4)

        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
            hidden = self.layer(x).detach()
            hidden[0].add_(1)
            with pytest.raises(RuntimeError):
                torch.mm(x, x)
            return hidden, {"twice": self.layer(hidden)}

    model, lines = Model(), MemoryJournal()
    lines.write(f'{{"environment":{to_json(environment())}}}')
    lines.write(f'{{"execution":{to_json(EXECUTION)}}}')
    recorder = Recorder(lines, budget.Limits(), "/nowhere")
    recorder.describe(model)
    recorder.start()
    model(torch.ones(2, 4))
    recorder.stop()
    assert recorder.failure is None
    return lines.getvalue()


def read(data: bytes, ended: Exited | Killed | TimedOut | Cancelled = SEGFAULT) -> dict[str, Any]:
    return orjson.loads(assemble(data, ended, ORIGIN).data)


def test_a_whole_journal_is_a_complete_capture_whatever_became_of_the_process_later() -> None:
    capture = read(journal() + b"\0" * 4096)
    assert capture["status"] == "complete"
    assert capture["termination"] == {"kind": "returned"}


def test_a_journal_cut_after_any_line_keeps_every_event_before_the_cut() -> None:
    lines = journal().splitlines(keepends=True)
    begun = 0
    for count, line in enumerate(lines[:-1], 1):
        begun += line.startswith((b'{"begin":', b'{"enter":'))
        if not begun:
            continue
        capture = read(b"".join(lines[:count]) + b'{"begin":{"id"')
        assert len(capture["operations"]) + len(capture["invocations"]) == begun
        assert capture["termination"] == {"kind": "killed", "signal": "SIGSEGV"}
        assert capture["status"] == "partial"


def test_the_last_event_of_a_cut_journal_is_in_flight_and_named_by_the_reason() -> None:
    lines = journal().splitlines(keepends=True)
    last_begin = max(index for index, line in enumerate(lines) if line.startswith(b'{"begin":'))
    capture = read(b"".join(lines[: last_begin + 1]))
    operation = capture["operations"][-1]
    assert operation["status"] == "in_flight"
    assert capture["reasons"][0] == {"code": "worker_killed", "count": 1, "subject": operation["id"], "detail": None}


@pytest.mark.parametrize(
    ("ended", "code"),
    [
        (Exited(kind="exited", code=3), "worker_exited"),
        (TimedOut(kind="timed_out", seconds=2.0), "timed_out"),
        (Cancelled(kind="cancelled"), "cancelled"),
    ],
)
def test_how_the_worker_ended_is_the_first_reason(ended: Exited | TimedOut | Cancelled, code: str) -> None:
    cut = journal().rpartition(b'{"finish"')[0]
    assert [reason["code"] for reason in read(cut, ended)["reasons"]] == [code]


@pytest.mark.parametrize(
    ("ended", "code"),
    [
        (SEGFAULT, "worker_failed"),
        (TimedOut(kind="timed_out", seconds=2.0), "timed_out"),
        (Cancelled(kind="cancelled"), "cancelled"),
    ],
)
def test_an_empty_journal_is_refused_with_what_happened(ended: Killed | TimedOut | Cancelled, code: str) -> None:
    with pytest.raises(Refused) as refused:
        assemble(b"\0" * 100, ended, ORIGIN)
    assert refused.value.problem.code == code


def test_the_workers_own_problem_is_passed_on() -> None:
    line = b'{"problem":{"code":"inputs_missing","detail":"no inputs","hint":"add some"}}\n'
    with pytest.raises(Refused) as refused:
        assemble(line, Exited(kind="exited", code=0), ORIGIN)
    problem = refused.value.problem
    assert (problem.code, problem.detail, problem.hint) == ("inputs_missing", "no inputs", "add some")


def test_a_forged_problem_code_does_not_pass() -> None:
    line = b'{"problem":{"code":"all_is_well","detail":"","hint":null}}\n'
    with pytest.raises(Refused) as refused:
        assemble(line, Exited(kind="exited", code=0), ORIGIN)
    assert refused.value.problem.code == "worker_failed"


def test_no_worker_can_claim_another_identity_or_a_sandbox() -> None:
    forged = journal().replace(b'{"environment":{', b'{"environment":{"sandbox":[{"mechanism":"all"}],', 1)
    capture = read(forged)
    assert capture["environment"]["sandbox"] == []
    assert capture["attempt"] == ORIGIN.attempt


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
KINDS = st.sampled_from(
    [
        *("begin", "end", "enter", "exit", "value", "settle", "module", "paths", "state", "definition", "location"),
        *("file", "operator", "diagnostic", "gap", "finish", "broken", "execution", "environment", "problem", "fake"),
    ]
)


def survives(data: bytes) -> None:
    """Any other exception than Refused fails the test, and so does a result that is not a valid capture."""
    with suppress(Refused):
        parse_capture(assemble(data, SEGFAULT, ORIGIN).data)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_a_journal_with_a_line_changed_moved_or_made_up_is_read_or_refused(data: st.DataObject) -> None:
    lines = journal().splitlines(keepends=True)
    index = data.draw(st.integers(0, len(lines) - 1))
    choice = data.draw(st.sampled_from(["drop", "repeat", "swap", "bytes", "invent"]))
    if choice == "drop":
        del lines[index]
    elif choice == "repeat":
        lines.insert(index, lines[index])
    elif choice == "swap":
        other = data.draw(st.integers(0, len(lines) - 1))
        lines[index], lines[other] = lines[other], lines[index]
    elif choice == "bytes":
        at = data.draw(st.integers(0, len(lines[index]) - 1))
        lines[index] = lines[index][:at] + data.draw(st.binary(min_size=1, max_size=4)) + lines[index][at + 1 :]
    else:
        lines.insert(index, orjson.dumps({data.draw(KINDS): data.draw(JSON)}, option=orjson.OPT_APPEND_NEWLINE))
    survives(b"".join(lines))


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    survives(data + b"\n")


def test_deeply_nested_lines_are_refused() -> None:
    line = b'{"end":{"id":"o0","output":' + b'{"kind":"list","items":[' * 50_000 + b"]}" * 50_000 + b"}}\n"
    survives(journal() + line)
