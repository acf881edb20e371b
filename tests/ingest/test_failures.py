"""Which exception ended the run, which was replaced, which the program survived, and which was no failure at all."""

from typing import Any

import pytest

from tensorviz import failures

CHECKPOINT = "torch.utils.checkpoint._StopRecomputationError"
ITEM = "torch._subclasses.fake_tensor.DataDependentOutputException"
NO_RULE = "torch._subclasses.fake_tensor.UnsupportedOperatorException"


def exceptions(*names: str, causes: dict[int, int] | None = None) -> list[dict[str, Any]]:
    """Diagnostics as a worker writes them; each came from the operation of its own number."""
    links = causes or {}
    return [
        {
            "id": f"x{index}",
            "exception": name,
            "operation": f"o{index}" if name != "builtins.ValueError" else None,
            "invocation": "c0",
            "cause": f"x{links[index]}" if index in links else None,
        }
        for index, name in enumerate(names)
    ]


def judged(found: list[dict[str, Any]], end: dict[str, Any]) -> list[str]:
    failures.judge(found, [], end)
    return [diagnostic["disposition"] for diagnostic in found]


def raised(index: int) -> dict[str, Any]:
    return {"kind": "raised", "diagnostic": f"x{index}"}


def test_the_exception_that_ended_the_run_propagated_and_others_were_suppressed() -> None:
    found = exceptions("builtins.RuntimeError", "builtins.RuntimeError")
    assert judged(found, raised(1)) == ["suppressed", "propagated"]
    assert judged(found, {"kind": "returned"}) == ["suppressed", "suppressed"]


def test_an_exception_in_whose_place_another_was_raised_is_replaced() -> None:
    found = exceptions("builtins.RuntimeError", "builtins.ValueError", "builtins.ValueError", causes={1: 0, 2: 1})
    assert judged(found, raised(2)) == ["replaced", "replaced", "propagated"]
    assert judged(found, {"kind": "killed", "signal": "SIGKILL"}) == ["replaced", "replaced", "unknown"]


def test_checkpoint_leaves_a_call_early_however_the_run_ends_unless_it_ends_the_run() -> None:
    found = exceptions(CHECKPOINT)
    assert judged(found, {"kind": "returned"}) == ["control_flow"]
    assert judged(found, {"kind": "killed", "signal": "SIGKILL"}) == ["control_flow"]
    assert judged(found, raised(0)) == ["propagated"]


def test_only_a_call_that_control_flow_left_is_stopped() -> None:
    calls: list[dict[str, Any]] = [{"status": "failed", "diagnostic": f"x{index}"} for index in range(2)]
    calls.append({"status": "completed", "diagnostic": None})
    failures.judge(exceptions(CHECKPOINT, "builtins.RuntimeError"), calls, {"kind": "returned"})
    assert [call["status"] for call in calls] == ["stopped", "failed", "completed"]


def test_a_worker_that_tells_no_causes_is_read_too() -> None:
    found = exceptions("builtins.RuntimeError")
    del found[0]["cause"]
    assert judged(found, raised(0)) == ["propagated"]
    assert found[0]["cause"] is None


REASONS = {
    "an operator's failure": (("builtins.RuntimeError",), {}, ("run_failed", "o0")),
    "an assertion of the program's": (("builtins.ValueError",), {}, ("run_failed", "c0")),
    "values that a fake run lacks": ((ITEM,), {}, ("data_dependent", "o0")),
    "an operation without a fake rule": ((NO_RULE,), {}, ("fake_unsupported", "o0")),
    "a failure that was replaced": (("builtins.RuntimeError", "builtins.ValueError"), {1: 0}, ("run_failed", "c0")),
    "such values behind another exception": ((ITEM, "builtins.ValueError"), {1: 0}, ("data_dependent", "o0")),
    "a failure that was survived before": (("builtins.RuntimeError", "builtins.ValueError"), {}, ("run_failed", "c0")),
    "a forged cause of itself": (("builtins.ValueError",), {0: 0}, ("run_failed", "c0")),
}


@pytest.mark.parametrize("case", REASONS)
def test_the_reason_names_where_it_began_for(case: str) -> None:
    names, causes, expected = REASONS[case]
    found = exceptions(*names, causes=causes)
    assert failures.reason(found, f"x{len(names) - 1}", set(failures.without_values(found))) == expected


def test_values_that_a_fake_mode_of_the_programs_own_lacks_are_its_own_affair() -> None:
    assert failures.reason(exceptions(ITEM), "x0", set()) == ("run_failed", "o0")
