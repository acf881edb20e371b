"""The repository's own examples, and the programs that other tests of the recorder run."""

import importlib.util
import sys
from functools import partial
from pathlib import Path
from types import ModuleType

from models import oracle
from zoo.architecture import Entry, Program

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
TARGETS = {"control_flow": "Router", "encoder_decoder": "EncoderDecoder", "gpt": "model", "resnet": "ResNet"}


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def program(name: str, target: str, mode: str) -> Program:
    module = load(name)
    model = oracle.build(module, target, mode)
    args, kwargs = oracle.inputs_of(module, model)
    return Program(model, kwargs, args=args)


def script() -> Program:
    return Program(None, block=load("script").main)


ENTRIES = (
    *(
        Entry(f"{name}.py" if mode == "eval" else f"{name}.py, train", "examples", partial(program, name, target, mode))
        for name, target in TARGETS.items()
        for mode in ("eval", "train")
    ),
    Entry("script.py", "examples", script),
)
