"""Whatever the bytes are, reading them ends soon, in a capture or in a ContractError."""

import gc
import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorviz.contracts.attempt import CaptureRequest
from tensorviz.contracts.base import encode
from tensorviz.contracts.capture import CaptureSnapshot, Limits
from tensorviz.contracts.relations import MAX_FAULTS
from tensorviz.contracts.validate import MAX_BYTES, ContractError, parse, parse_capture

from .captures import large
from .corpus import VALID

DOCUMENTS = {name: json.dumps(document).encode() for name, document in VALID.items()}
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def verdict(data: bytes) -> CaptureSnapshot | ContractError:
    try:
        return parse_capture(data)
    except ContractError as error:
        return error


@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    error = verdict(data)
    assert isinstance(error, ContractError)
    assert 1 <= len(error.faults) <= MAX_FAULTS


@given(st.sampled_from(sorted(DOCUMENTS)), st.data())
def test_a_capture_that_is_cut(name: str, data: st.DataObject) -> None:
    whole = DOCUMENTS[name]
    end = data.draw(st.integers(0, len(whole) - 1))
    assert isinstance(verdict(whole[:end]), ContractError)


@given(st.sampled_from(sorted(DOCUMENTS)), st.data())
def test_a_capture_with_other_bytes(name: str, data: st.DataObject) -> None:
    whole = DOCUMENTS[name]
    start = data.draw(st.integers(0, len(whole) - 1))
    end = data.draw(st.integers(start, min(len(whole), start + 40)))
    verdict(whole[:start] + data.draw(st.binary(max_size=20)) + whole[end:])


@settings(deadline=None)
@given(st.sampled_from(sorted(VALID)), st.integers(0, 2**32), JUNK)
def test_a_capture_with_another_value_somewhere(name: str, seed: int, junk: Any) -> None:
    document = json.loads(DOCUMENTS[name])
    parent, key = random.Random(seed).choice(list(places(document)))
    parent[key] = junk
    verdict(json.dumps(document).encode())


@settings(deadline=None)
@given(st.sampled_from(sorted(VALID)), st.integers(0, 2**32))
def test_a_capture_with_two_of_its_own_values_exchanged(name: str, seed: int) -> None:
    document = json.loads(DOCUMENTS[name])
    chance = random.Random(seed)
    (parent, key), (other, other_key) = chance.sample(list(places(document)), 2)
    parent[key], other[other_key] = json.loads(json.dumps(other[other_key])), json.loads(json.dumps(parent[key]))
    verdict(json.dumps(document).encode())


def places(node: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in a document, as a container and a key."""
    for key in list(node) if isinstance(node, dict) else range(len(node)):
        yield node, key
        if isinstance(node[key], (dict, list)):
            yield from places(node[key])


@pytest.mark.parametrize(
    "data",
    [
        b'{"operations":[' + b"0," * 8_000_000 + b"0]}",
        b'{"invocations":[{"args":[' + b"0," * 8_000_000 + b"0]}]}",
        b"{" + b",".join(b'"%d":0' % number for number in range(1_200_000)) + b"}",
        b"[" * MAX_BYTES,
        b'{"a":' * 3_000_000,
        b'"' + b"a" * (20 * 2**20) + b'"',
    ],
    ids=["numbers", "numbers inside", "names", "lists", "objects", "20 MB"],
)
@pytest.mark.timeout(60)
def test_hostile_input_neither_crashes_nor_takes_long(data: bytes) -> None:
    assert isinstance(verdict(data), ContractError)


def test_a_fault_in_each_of_many_records_is_told_a_bounded_number_of_times() -> None:
    document = large(1000)
    for operation in document["operations"]:
        operation["location"] = "l99999"
    error = verdict(json.dumps(document).encode())
    assert isinstance(error, ContractError)
    assert len(error.faults) == MAX_FAULTS


def test_the_encoding_counts_against_the_budget_for_bytes() -> None:
    document = json.loads(DOCUMENTS["linear"])
    document["limits"]["bytes"] = 1000
    error = verdict(json.dumps(document).encode())
    assert isinstance(error, ContractError)
    assert (error.faults[0].path, error.faults[0].code) == (("limits", "bytes"), "limit")


def test_the_message_names_the_first_fault() -> None:
    with pytest.raises(ContractError, match=r"^status: Field required$"):
        parse(CaptureRequestWithStatus, b"{}")


class CaptureRequestWithStatus(CaptureRequest):
    file: str = "a.py"
    status: str


def test_the_last_of_two_equal_names_counts() -> None:
    data = DOCUMENTS["linear"].replace(b'{"schemaVersion": 1', b'{"schemaVersion": 9, "schemaVersion": 1', 1)
    assert isinstance(verdict(data), CaptureSnapshot)


def test_the_collector_is_left_as_it_was() -> None:
    assert gc.isenabled()
    verdict(b"{}")
    assert gc.isenabled()
    gc.disable()
    try:
        verdict(DOCUMENTS["linear"])
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_limits_are_written_in_full_and_other_defaults_are_left_out() -> None:
    request = CaptureRequest(file="a.py", limits=Limits(operations=5))
    assert json.loads(encode(request)) == {
        "file": "a.py",
        "limits": {**json.loads(encode(Limits())), "operations": 5},
    }
