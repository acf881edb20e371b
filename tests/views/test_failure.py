"""What the terminal says of a failure; the page says the same words."""

import io
import json
from typing import Any

import pytest

from contracts.corpus import FOLDER, VALID
from tensorviz import terminal
from tensorviz.contracts.capture import CaptureSnapshot
from tensorviz.contracts.validate import parse_capture
from tensorviz.views import failure

DEMANDS: dict[str, list[str]] = json.loads((FOLDER / "demands.json").read_bytes())


def capture(document: Any) -> CaptureSnapshot:
    return parse_capture(json.dumps(document).encode())


def head(name: str) -> list[str]:
    stream = io.StringIO()
    terminal.show_head(terminal.console(stream), capture(VALID[name]), 1024)
    return stream.getvalue().splitlines()[3:]


@pytest.mark.parametrize("name", DEMANDS)
def test_the_demands_that_operands_violate_are_told_in_the_words_of_the_page(name: str) -> None:
    snapshot = capture(VALID[name])
    found = [text for operation in snapshot.operations for text in failure.demands(snapshot, operation)]
    assert found == DEMANDS[name]


def test_a_failure_that_was_replaced_is_told_first_and_then_what_took_its_place() -> None:
    assert head("replaced_failure") == [
        "  run_failed: the program raised an exception",
        "  failed: aten.bmm.default raised builtins.RuntimeError",
        "    operands: f32[4, 2], f32[4, 2]",
        "    violated: args[0].ndim is 2, where 3 is wanted",
        "    violated: batch sizes must be equal: args[0].shape[0] is 4, args[0].shape[1] is 2",
        "    module:   net.Net",
        "    source:   net.py:3",
        "  then: raised builtins.ValueError",
        "    module:   net.Net",
        "    source:   unknown",
    ]


def test_an_operation_that_was_running_when_the_worker_died_is_in_flight() -> None:
    assert head("in_flight")[1:3] == ["  in flight: my.crash.default", "    operands: f32[4, 2]"]


def test_nothing_failed_in_a_run_that_survived_its_failures() -> None:
    assert head("suppressed_failure") == []
