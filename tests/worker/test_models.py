"""Real models through the whole way, compared operation by operation with a witness that shares no code with us."""

import ast
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tensorviz.contracts.capture import CaptureSnapshot

from .reading import facts, lines, path, place
from .running import ROOT, capture

ORACLE = ROOT / "tests" / "models" / "oracle.py"
EXAMPLES = ROOT / "examples"
PLAIN = Path(os.environ.get("TENSORVIZ_PLAIN_PYTHON") or ROOT / ".venv-plain" / "bin" / "python")
plain = pytest.mark.plain

GPT2 = """
from transformers import GPT2Config, GPT2LMHeadModel


def model():
    return GPT2LMHeadModel(
        GPT2Config(
            vocab_size=100, n_positions=32, n_embd=48, n_layer=12, n_head=4,
            bos_token_id=0, eos_token_id=0, use_cache=False,
        )
    )
"""

T5 = """
from transformers import T5Config, T5ForConditionalGeneration


def model():
    return T5ForConditionalGeneration(
        T5Config(vocab_size=100, d_model=32, d_kv=8, d_ff=64, num_layers=4, num_heads=4, use_cache=False)
    )
"""

BERT = """
from transformers import BertConfig, BertModel


def model():
    return BertModel(
        BertConfig(vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64)
    )
"""

VIT = """
import torch
from transformers import ViTConfig, ViTForImageClassification


def model():
    return ViTForImageClassification(
        ViTConfig(
            hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
            image_size=32, patch_size=8,
        )
    )


def example_inputs():
    return {"pixel_values": torch.randn(1, 3, 32, 32)}
"""

WHISPER = """
import torch
from transformers import WhisperConfig, WhisperForConditionalGeneration


def model():
    return WhisperForConditionalGeneration(
        WhisperConfig(
            vocab_size=100, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
            decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, max_source_positions=50,
            max_target_positions=20, num_mel_bins=8, pad_token_id=0, bos_token_id=0, eos_token_id=0,
            decoder_start_token_id=0, use_cache=False,
        )
    )


def example_inputs():
    return {"input_features": torch.randn(1, 8, 100), "decoder_input_ids": torch.arange(6)[None]}
"""

MIXTRAL = """
import torch
from transformers import MixtralConfig, MixtralForCausalLM


def model():
    torch.manual_seed(0)  # the router's choice decides which experts run
    return MixtralForCausalLM(
        MixtralConfig(
            vocab_size=100, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2, num_local_experts=4, use_cache=False, bos_token_id=0, eos_token_id=0,
        )
    )
"""

ZOO = {"gpt2": GPT2, "t5": T5, "bert": BERT, "vit": VIT, "whisper": WHISPER, "mixtral": MIXTRAL}
IN_EXAMPLES = {
    "resnet": "ResNet",
    "gpt": "model",
    "encoder_decoder": "EncoderDecoder",
    "control_flow": "Router",
}


def written(folder: Path, name: str, text: str) -> Path:
    file = folder / f"{name}.py"
    file.write_text(text)
    return file


@dataclass(frozen=True)
class Witness:
    operations: list[str]
    places: list[str]


def witness(file: Path, target: str, mode: str = "eval", python: str | Path = sys.executable) -> Witness:
    """What the independent dispatch mode saw of the same file."""
    command = [python, ORACLE, file, target, "--mode", mode]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, cwd=file.parent)
    assert done.returncode == 0, done.stderr
    return Witness(**json.loads(done.stdout.splitlines()[-1]))


@cache
def example(name: str) -> CaptureSnapshot:
    """The capture of an example, made once."""
    return capture(EXAMPLES / f"{name}.py").snapshot


@pytest.mark.parametrize("name", ZOO)
def test_a_transformers_model_is_complete_and_the_witness_agrees_on_every_operation(name: str, tmp_path: Path) -> None:
    file = written(tmp_path, f"zoo_{name}", ZOO[name])
    snapshot = capture(file, "model").snapshot
    assert (snapshot.status, snapshot.reasons) == ("complete", ())
    seen = witness(file, "model")
    assert lines(snapshot) == seen.operations
    assert [place(snapshot, operation.location) for operation in snapshot.operations] == seen.places


@pytest.mark.parametrize("name", IN_EXAMPLES)
def test_an_example_is_complete_and_the_witness_agrees_on_every_operation(name: str) -> None:
    file = EXAMPLES / f"{name}.py"
    snapshot = example(name)
    assert (snapshot.status, snapshot.reasons) == ("complete", ())
    assert snapshot.execution.target == IN_EXAMPLES[name]
    seen = witness(file, IN_EXAMPLES[name])
    assert lines(snapshot) == seen.operations
    assert [place(snapshot, operation.location) for operation in snapshot.operations] == seen.places


def test_training_mode_is_another_run_and_the_witness_agrees_on_it() -> None:
    snapshot = capture(EXAMPLES / "resnet.py", mode="train").snapshot
    assert snapshot.status == "complete"
    assert lines(snapshot) == witness(EXAMPLES / "resnet.py", "ResNet", mode="train").operations
    writes = [operation for operation in snapshot.operations if operation.target == "aten.native_batch_norm.default"]
    assert {len(operation.effects) for operation in writes} == {2}, "running mean and variance are written"


@pytest.mark.parametrize(
    ("name", "cache"),
    [
        ("gpt2", "transformers.cache_utils.DynamicCache"),
        ("t5", "transformers.cache_utils.EncoderDecoderCache"),
    ],
)
def test_a_returned_cache_is_opaque_and_keeps_the_capture_partial(name: str, cache: str, tmp_path: Path) -> None:
    file = written(tmp_path, f"cached_{name}", ZOO[name].replace("use_cache=False", "use_cache=True"))
    snapshot = capture(file, "model").snapshot
    assert snapshot.status == "partial"
    assert {reason.code for reason in snapshot.reasons} == {"unsupported_argument"}
    assert snapshot.termination.kind == "returned"
    output = facts(snapshot, snapshot.invocations[0].output)
    assert f"<{cache}>" in output
    assert output.startswith("float32[3, 5, 100]"), "the tensors beside the cache stay readable"
    assert lines(snapshot) == witness(file, "model").operations


def test_every_input_convention_supplies_the_inputs_of_an_example() -> None:
    found = {}
    for name in IN_EXAMPLES:
        snapshot = example(name)
        found[name] = (snapshot.execution.inputs.kind, snapshot.execution.inputs.name)
    assert found == {
        "resnet": ("convention", "get_inputs"),
        "gpt": ("convention", "example_inputs"),
        "encoder_decoder": ("convention", "EncoderDecoder.dummy_inputs"),
        "control_flow": ("convention", "example_inputs"),
    }


def test_the_cache_of_the_gpt_example_is_written_in_place_and_read_by_later_calls() -> None:
    snapshot = example("gpt")
    buffers = {state.id: state.paths[0].path for state in snapshot.state if state.kind == "buffer"}
    versions = [value for value in snapshot.values if buffers.get(value.state or "") == "gpt.blocks.0.attn.keys"]
    # Each of the four calls writes once, through a slice.
    assert [value.logicalVersion for value in versions] == [0, 1, 2, 3, 4]
    assert {value.producer.kind for value in versions[1:]} == {"effect"}
    calls = [call for call in snapshot.invocations if path(snapshot, call) == "gpt"]
    assert [facts(snapshot, *call.args) for call in calls] == ["int64[1, 6]", *["int64[1, 1]"] * 3]


def test_shared_layers_and_tied_weights_are_one_object_under_all_their_names() -> None:
    snapshot = example("encoder_decoder")
    shared = next(state for state in snapshot.state if len(state.paths) > 1)
    assert {item.path for item in shared.paths} == {
        "embedding.weight",
        "encoder.embedding.weight",
        "decoder.embedding.weight",
        "head.weight",
    }
    layer = [call for call in snapshot.invocations if path(snapshot, call) == "encoder.layer"]
    assert len(layer) == 2
    assert layer[0].module == layer[1].module


def test_what_the_data_did_not_reach_is_reported_as_not_observed() -> None:
    snapshot = example("control_flow")
    state = {item.module: item.state for item in snapshot.coverage.modules}
    unseen = {module.paths[0].path for module in snapshot.modules if state[module.id] == "not_observed"}
    assert unseen == {"experts", "experts.1", "refine"}


def test_a_training_script_is_recorded_with_its_backward_pass_and_its_updates() -> None:
    outcome = capture(EXAMPLES / "script.py", "__main__")
    snapshot = outcome.snapshot
    assert snapshot.execution.targetKind == "script"
    assert snapshot.termination.kind == "returned"
    targets = [operation.target for operation in snapshot.operations]
    assert targets.count("aten.tanh.default") == targets.count("aten.tanh_backward.default") == 2
    outside = [operation for operation in snapshot.operations if operation.target == "aten.tanh_backward.default"]
    assert [operation.invocation for operation in outside] == [None, None]
    assert "step 1: loss" in outcome.log


# -- the example that fails


def test_the_failing_example_names_operation_operands_module_and_line() -> None:
    file = EXAMPLES / "shape_error.py"
    snapshot = example("shape_error")
    assert (snapshot.status, [reason.code for reason in snapshot.reasons]) == ("partial", ["run_failed"])
    failed = [operation for operation in snapshot.operations if operation.status == "failed"]
    assert lines(snapshot)[-1] == (
        "aten.addmm.default(float32[10], float32[4, 64], float32[128, 10]) -> !builtins.RuntimeError"
    )
    assert [operation.id for operation in failed] == [snapshot.operations[-1].id] == [snapshot.reasons[0].subject]
    assert path(snapshot, failed[0].invocation) == "layers.4"
    number = file.read_text().splitlines().index("        return self.layers(features)") + 1
    assert place(snapshot, failed[0].location) == f"shape_error.py:{number}"


def test_a_failure_goes_up_through_every_open_call_and_no_further() -> None:
    snapshot = example("shape_error")
    state = {path(snapshot, call): call.status for call in snapshot.invocations}
    assert state == {
        "": "failed",
        "layers": "failed",
        "layers.0": "completed",
        "layers.1": "completed",
        "layers.2": "completed",
        "layers.3": "completed",
        "layers.4": "failed",
    }
    raised = snapshot.termination
    assert raised.kind == "raised"
    diagnostic = snapshot.diagnostics[int(raised.diagnostic[1:])]
    assert (diagnostic.exception, diagnostic.disposition) == ("builtins.RuntimeError", "propagated")
    assert diagnostic.operation == snapshot.operations[-1].id


def test_the_failing_example_agrees_with_the_witness_up_to_the_failure() -> None:
    snapshot = example("shape_error")
    assert lines(snapshot) == [
        line.replace("!RuntimeError", "!builtins.RuntimeError")
        for line in witness(EXAMPLES / "shape_error.py", "Classifier").operations
    ]


# -- an interpreter that has torch and nothing of ours


@pytest.fixture
def plain_python() -> str:
    if not PLAIN.exists():
        pytest.skip(f"there is no {PLAIN}; `make test` makes it")
    return str(PLAIN)


@plain
def test_the_plain_interpreter_has_torch_and_nothing_of_ours(plain_python: str) -> None:
    names = ["torch", "transformers", "tensorviz", "tensorviz_worker", "fastapi", "orjson", "jsonschema"]
    code = f"import importlib.util as u; print([n for n in {names} if u.find_spec(n)])"
    done = subprocess.run([plain_python, "-I", "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert ast.literal_eval(done.stdout) == ["torch", "transformers"]


@plain
@pytest.mark.parametrize("name", ["gpt2", "t5"])
def test_a_model_is_complete_in_an_interpreter_without_anything_of_ours(
    name: str, tmp_path: Path, plain_python: str
) -> None:
    file = written(tmp_path, f"plain_{name}", ZOO[name])
    snapshot = capture(file, "model", python=plain_python).snapshot
    assert (snapshot.status, snapshot.reasons) == ("complete", ())
    assert lines(snapshot) == witness(file, "model", python=plain_python).operations


@plain
def test_the_examples_give_the_same_in_an_interpreter_without_anything_of_ours(plain_python: str) -> None:
    for name, target in (("resnet", "ResNet"), ("shape_error", "Classifier")):
        here, there = (capture(EXAMPLES / f"{name}.py", python=exe).snapshot for exe in (sys.executable, plain_python))
        assert there.execution.target == target
        assert lines(here) == lines(there)
