"""The corpus is read by Python and TypeScript, which agree on every verdict, code and path."""

import json
from typing import Any

import pytest

from tensorviz.contracts.base import encode
from tensorviz.contracts.validate import ContractError, parse_capture

from .captures import VALID as MAKERS
from .captures import text_of
from .corpus import BYTES, FOLDER, INVALID, VALID, broken, spelled


@pytest.mark.parametrize("name", VALID)
def test_a_valid_capture_is_read_and_written_unchanged(name: str) -> None:
    data = json.dumps(VALID[name]).encode()
    assert json.loads(encode(parse_capture(data))) == VALID[name]


@pytest.mark.parametrize("case", INVALID, ids=lambda case: case["name"])
def test_an_invalid_capture_is_refused_at_the_first_fault(case: Any) -> None:
    with pytest.raises(ContractError) as caught:
        parse_capture(json.dumps(broken(case)).encode())
    first = caught.value.faults[0]
    assert {"path": list(first.path), "code": first.code} == case["expect"]


@pytest.mark.parametrize("case", BYTES, ids=lambda case: case["name"])
def test_bytes_that_are_no_capture_are_refused(case: Any) -> None:
    with pytest.raises(ContractError) as caught:
        parse_capture(spelled(case))
    first = caught.value.faults[0]
    assert (first.path, first.code) == ((), case["code"])


def test_the_valid_captures_are_those_that_the_builder_writes() -> None:
    written = {path.stem: path.read_text(encoding="utf-8") for path in FOLDER.glob("valid/*.json")}
    assert written == {make.__name__: text_of(make()) for make in MAKERS}


def test_invalid_captures_have_names_of_their_own() -> None:
    names = [case["name"] for case in INVALID]
    assert len(names) == len(set(names))
