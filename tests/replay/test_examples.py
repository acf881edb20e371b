"""Every example runs again from its capture and reaches the same bits."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

from models import oracle

from .oracle import Verdict, examine, examine_block

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
TARGETS = {
    "control_flow": "Router",
    "encoder_decoder": "EncoderDecoder",
    "gpt": "model",
    "resnet": "ResNet",
    "shape_error": "Classifier",
}


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def examined(name: str, mode: str) -> Verdict:
    module = load(name)
    torch.manual_seed(0)
    model = oracle.build(module, TARGETS[name], mode)
    args, kwargs = oracle.inputs_of(module, model)
    return examine(model, *args, **kwargs)


def test_every_example_is_here() -> None:
    assert {file.stem for file in EXAMPLES.glob("*.py")} == {*TARGETS, "script"}


@pytest.mark.parametrize("mode", ["eval", "train"])
@pytest.mark.parametrize("name", sorted({*TARGETS} - {"shape_error"}))
def test_an_example_reaches_the_same_bits_again(name: str, mode: str) -> None:
    verdict = examined(name, mode)
    assert (verdict.snapshot.status, verdict.difference) == ("complete", None)


def test_the_training_script_reaches_the_same_gradients_and_updates_again() -> None:
    verdict = examine_block(load("script").main)
    assert (verdict.snapshot.status, verdict.difference) == ("complete", None)


def test_the_failing_example_fails_again_at_the_same_operation() -> None:
    verdict = examined("shape_error", "eval")
    assert [reason.code for reason in verdict.snapshot.reasons] == ["run_failed"]
    assert (type(verdict.error), verdict.difference) == (RuntimeError, None)
