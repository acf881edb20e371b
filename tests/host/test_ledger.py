"""The ledger is bounded, keeps order by start, and never says less than it did without saying so."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorviz.contracts.attempt import CaptureRequest, CaptureSummary, Outcome, RunAttempt
from tensorviz.contracts.messages import AttemptEvent, CaptureEvent, EvictionEvent, HostEvent
from tensorviz.ledger import Bounds, Ledger, Retained, index


def attempt(number: int, outcome: Outcome | None = None, operations: int = 0) -> RunAttempt:
    return RunAttempt(
        id=f"att-{number:016x}",
        origin="web",
        request=CaptureRequest(file="model.py"),
        requestDigest="0" * 64,
        planDigest=None,
        stage="ended" if outcome else "running",
        outcome=outcome,
        problem=None,
        capture=None,
        operations=operations,
        started=0,
        ended=None,
    )


def capture(number: int, size: int = 10) -> Retained:
    summary = CaptureSummary(
        id=f"cap-{number:016x}",
        attempt=f"att-{number:016x}",
        status="complete",
        target="Net",
        file=None,
        model=None,
        reasons=(),
        operations=0,
        invocations=0,
        values=0,
        bytes=size,
        created=0,
    )
    return Retained(b"x" * size, summary, {})


def retained(ledger: Ledger) -> list[int]:
    """Numbers of the captures, newest first."""
    return [int(item.id[4:], 16) for item in ledger.captures(0, 1000).items]


def known(ledger: Ledger) -> list[int]:
    return [int(item.id[4:], 16) for item in ledger.attempts(0, 1000).items]


@pytest.fixture
def events() -> list[HostEvent]:
    return []


def line(event: HostEvent) -> str:
    if isinstance(event, AttemptEvent):
        return f"attempt {int(event.attempt.id[4:], 16)} {event.attempt.outcome or event.attempt.operations}"
    if isinstance(event, CaptureEvent):
        return f"capture {int(event.capture.id[4:], 16)}"
    assert isinstance(event, EvictionEvent)
    return f"eviction {int(event.capture[4:], 16)}"


def test_every_change_is_published_in_order_and_an_eviction_is_one(events: list[HostEvent]) -> None:
    ledger = Ledger(events.append, Bounds(captures=2))
    for number in (1, 2, 3):
        ledger.begin(attempt(number))
        ledger.update(attempt(number, operations=7))
        ledger.retain(capture(number))
        ledger.update(attempt(number, "complete"))
    assert [line(event) for event in events] == [
        "attempt 1 0", "attempt 1 7", "capture 1", "attempt 1 complete",
        "attempt 2 0", "attempt 2 7", "capture 2", "attempt 2 complete",
        "attempt 3 0", "attempt 3 7", "capture 3", "eviction 1", "attempt 3 complete",
    ]  # fmt: skip
    assert (retained(ledger), ledger.capture(f"cap-{1:016x}")) == ([3, 2], None)


def test_bytes_are_bounded_and_the_newest_capture_always_stays(events: list[HostEvent]) -> None:
    ledger = Ledger(events.append, Bounds(bytes=100))
    for number, size in ((1, 40), (2, 40), (3, 40), (4, 1000)):
        ledger.begin(attempt(number))
        ledger.retain(capture(number, size))
    assert retained(ledger) == [4]
    assert [line(event) for event in events if event.kind == "eviction"] == ["eviction 1", "eviction 2", "eviction 3"]


def test_a_late_capture_takes_the_place_of_its_attempt_and_not_the_first() -> None:
    ledger = Ledger(bounds=Bounds(captures=2))
    for number in (1, 2, 3):
        ledger.begin(attempt(number))
    for number in (2, 3, 1):
        ledger.retain(capture(number))
    assert retained(ledger) == [3, 2]


def test_an_attempt_that_ended_never_changes_again(events: list[HostEvent]) -> None:
    ledger = Ledger(events.append)
    ledger.begin(attempt(1))
    ledger.update(attempt(1, "cancelled"), "its log")
    ledger.update(attempt(1, "complete"), "another log")
    ledger.update(attempt(2))
    assert ledger.attempt(attempt(1).id) == attempt(1, "cancelled")
    assert ledger.log(attempt(1).id) == "its log"
    assert (known(ledger), len(events)) == ([1], 2)


def test_old_attempts_are_forgotten_and_running_ones_never() -> None:
    ledger = Ledger(bounds=Bounds(attempts=3))
    for number in range(1, 7):
        ledger.begin(attempt(number))
        if number != 2:
            ledger.update(attempt(number, "complete"))
    assert known(ledger) == [6, 5, 2]


def test_old_logs_make_room_and_say_so() -> None:
    ledger = Ledger(bounds=Bounds(log_bytes=25))
    for number in (1, 2, 3):
        ledger.begin(attempt(number))
        ledger.update(attempt(number, "complete"), "0123456789")
    assert [ledger.log(attempt(number).id) for number in (1, 2, 3)] == [
        "[this log made room for newer ones]\n",
        "0123456789",
        "0123456789",
    ]


def test_pages_of_attempts_and_captures_tell_the_total() -> None:
    ledger = Ledger()
    for number in range(1, 6):
        ledger.begin(attempt(number))
        ledger.retain(capture(number))
    page = ledger.captures(1, 2)
    assert ([int(item.id[4:], 16) for item in page.items], page.offset, page.total) == ([4, 3], 1, 5)
    assert ledger.attempts(4, 10).items == (attempt(1),)
    assert ledger.attempts(50, 10).items == ()
    assert len(ledger.state().captures) == len(ledger.state().attempts) == 5


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
)


@given(st.dictionaries(st.text(max_size=6), JSON, max_size=6), st.integers(0, 6), st.integers(1, 6))
def test_a_page_is_the_slice_of_the_list_that_a_parser_would_give(
    document: dict[str, object], offset: int, limit: int
) -> None:
    data = orjson.dumps(document)
    whole = Retained(data, capture(1).summary, index(data, document, orjson.dumps))
    lists = {key: value for key, value in document.items() if isinstance(value, list)}
    assert set(whole.sections) == set(lists)
    for key, items in lists.items():
        page = whole.page(key, offset, limit)
        assert page is not None
        assert orjson.loads(page) == {
            "items": items[offset : offset + limit],
            "offset": offset,
            "total": len(items),
        }
    assert whole.page("no such list, as its name is longer than six letters", 0, 1) is None


def test_an_encoding_that_is_not_ours_has_no_index() -> None:
    with pytest.raises(ValueError, match="canonical"):
        index(b'{"a": [1, 2]}', {"a": [1, 2]}, orjson.dumps)
