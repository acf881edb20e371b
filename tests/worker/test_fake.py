"""Runs without values: whatever is run under --fake is fake, and the capture says so."""

from pathlib import Path

import pytest

from tensorviz.contracts.arguments import OpaqueArgument

from .reading import leaves, lines, place
from .running import ROOT, capture

KEEPS = """
import torch

class Keeps(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
        self.second.weight = self.first.weight
        self.register_buffer("kept", torch.zeros(2))

    def forward(self, x):
        self.kept.copy_(x)
        return self.second(self.first(self.kept[None]))

model = Keeps()
example_inputs = (torch.ones(2),)
"""
HUGE = """
import torch

class Huge(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(30_000, 30_000) for _ in range(80))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x).relu()
        return x

def example_inputs():
    return torch.randn(4, 30_000)
"""

NEEDS = """
import torch

class Needs(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.constant = torch.ones(4)

    def forward(self, x):
        y = self.linear(x) + self.constant
        y = y * torch.tensor(3).item()
        return {expression}

model = Needs()
example_inputs = (torch.ones(2, 4),)
"""
LINE = 1 + NEEDS[: NEEDS.index("return")].count("\n")


def write(folder: Path, text: str) -> Path:
    file = folder / "model.py"
    file.write_text(text)
    return file


def test_a_model_made_at_import_is_as_fake_as_one_made_under_the_mode(tmp_path: Path) -> None:
    snapshot = capture(write(tmp_path, KEEPS), fake=True).snapshot
    assert (snapshot.status, snapshot.reasons) == ("complete", ())
    assert snapshot.valuesUnavailable == "fake_tensor"
    assert snapshot.execution.fake
    assert "fake_device_reads" in snapshot.normalizations


def test_fake_and_real_runs_of_one_model_record_the_same(tmp_path: Path) -> None:
    file = write(tmp_path, KEEPS)
    real, fake = capture(file).snapshot, capture(file, fake=True).snapshot
    assert lines(fake) == lines(real)
    assert "valuesUnavailable" not in real.model_fields_set
    assert [(s.kind, s.paths) for s in fake.state] == [(s.kind, s.paths) for s in real.state]
    assert [(v.type, v.shape, v.strides, v.logicalBytes) for v in fake.values] == [
        (v.type, v.shape, v.strides, v.logicalBytes) for v in real.values
    ]


def test_seventy_billion_parameters_need_no_memory(tmp_path: Path) -> None:
    snapshot = capture(write(tmp_path, HUGE), fake=True).snapshot
    assert snapshot.status == "complete"
    assert snapshot.invocations[0].parameterCount == 80 * (30_000 * 30_000 + 30_000)
    assert not [
        leaf for call in snapshot.invocations for leaf in leaves(call.output) if isinstance(leaf, OpaqueArgument)
    ]


def test_a_script_runs_fake_too_and_stops_where_a_value_is_needed() -> None:
    outcome = capture(ROOT / "examples" / "script.py", "__main__", fake=True)
    snapshot = outcome.snapshot
    assert snapshot.valuesUnavailable == "fake_tensor"
    assert [reason.code for reason in snapshot.reasons] == ["data_dependent"]
    failed = snapshot.operations[-1]
    assert (failed.target, failed.status) == ("aten._local_scalar_dense.default", "failed")
    assert "DataDependentOutputException" in snapshot.diagnostics[-1].exception


@pytest.mark.parametrize(
    ("expression", "target"),
    [
        ("y * y.sum().item()", "aten._local_scalar_dense.default"),
        ("y[y > 0]", "aten.index.Tensor"),
        ("y.nonzero()", "aten.nonzero.default"),
    ],
)
def test_a_run_ends_at_the_operation_that_needs_a_value_and_keeps_what_was_before(
    tmp_path: Path, expression: str, target: str
) -> None:
    file = write(tmp_path, NEEDS.format(expression=expression))
    real, fake = capture(file).snapshot, capture(file, fake=True).snapshot
    assert [operation.status for operation in fake.operations] == ["completed"] * (len(fake.operations) - 1) + [
        "failed"
    ]
    assert lines(fake)[:-1] == lines(real)[: len(fake.operations) - 1]
    assert (fake.operations[-1].target, place(fake, fake.operations[-1].location)) == (target, f"model.py:{LINE}")
    assert [(reason.code, reason.subject) for reason in fake.reasons] == [("data_dependent", fake.operations[-1].id)]
    assert fake.diagnostics[-1].exception.startswith("torch._subclasses.fake_tensor.")


def test_what_needs_no_value_of_a_fake_tensor_runs_to_its_end(tmp_path: Path) -> None:
    training = "[loss := y.square().sum(), loss.backward(), self.linear.weight.grad * 2, str(y)][2]"
    snapshot = capture(write(tmp_path, NEEDS.format(expression=training)), fake=True).snapshot
    assert snapshot.status == "complete"
    assert snapshot.invocations[0].output is not None
    assert [operation.status for operation in snapshot.operations if operation.status != "completed"] == []
