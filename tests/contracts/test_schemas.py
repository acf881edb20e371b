"""The committed schemas, read by a third party's validator, take what the models take."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from .corpus import VALID

FOLDER = Path(__file__).resolve().parents[2] / "schemas"
CAPTURE = Draft202012Validator(json.loads((FOLDER / "capture.json").read_bytes()))
_MAX_DEPTH = 12  # this validator tries every branch of a union at every level, which takes forever on deep trees


def depth(tree: Any) -> int:
    inside = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ()
    return 1 + max(map(depth, inside), default=0)


SHALLOW = [name for name, document in VALID.items() if depth(document) <= _MAX_DEPTH]


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.json")), ids=lambda path: path.stem)
def test_every_schema_is_a_valid_schema(path: Path) -> None:
    Draft202012Validator.check_schema(json.loads(path.read_bytes()))


@pytest.mark.parametrize("name", SHALLOW)
def test_valid_captures_satisfy_the_schema_and_fail_without_a_field(name: str) -> None:
    assert list(CAPTURE.iter_errors(VALID[name])) == []
    for field in ("operations", "coverage", "schemaVersion"):
        cut = {key: value for key, value in VALID[name].items() if key != field}
        assert [error.validator for error in CAPTURE.iter_errors(cut)] == ["required"]


def test_most_of_the_corpus_is_judged() -> None:
    assert len(SHALLOW) > len(VALID) / 2
