"""Every example runs again from its capture and reaches the same bits."""

import pytest
import torch

from models import oracle
from zoo.examination import examined
from zoo.families import examples

from .oracle import examine_call


def test_every_example_is_here() -> None:
    assert {file.stem for file in examples.EXAMPLES.glob("*.py")} == {*examples.TARGETS, "script", "shape_error"}


@pytest.mark.parametrize("entry", examples.ENTRIES, ids=lambda entry: entry.name)
def test_an_example_reaches_the_same_bits_again(entry: examples.Entry) -> None:
    verdict = examined(entry)
    assert (verdict.snapshot.status, verdict.difference) == ("complete", None)


def test_the_failing_example_fails_again_at_the_same_operation() -> None:
    torch.manual_seed(0)
    module = examples.load("shape_error")
    args, kwargs = oracle.inputs_of(module, model := oracle.build(module, "Classifier", "eval"))
    verdict = examine_call(model, *args, **kwargs)
    assert [reason.code for reason in verdict.snapshot.reasons] == ["run_failed"]
    assert (type(verdict.error), verdict.difference) == (RuntimeError, None)
