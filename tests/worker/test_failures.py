"""Failures are told apart, and what an operator's operands violate is told by the numbers alone."""

import sys
from pathlib import Path

import pytest

from tensorviz.contracts.capture import CaptureSnapshot, Diagnostic
from tensorviz.views import failure

from .mistakes import MISTAKES
from .reading import path, place
from .running import capture

HEAD = """
import torch
from torch.utils.checkpoint import checkpoint

class Inner(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
    def forward(self, x):
        return self.linear(x).relu() + 1

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()
        prepare(self)
    def forward(self, x):
        return run(self, x)

def prepare(net):
    pass

def example_inputs():
    return (torch.ones(2, 4, requires_grad=True),)
"""


def captured(folder: Path, code: str, fake: bool = False) -> CaptureSnapshot:
    """A run of the model above with ``run(net, x)`` as it is written here. It goes wrong at ``# here``."""
    file = folder / "net.py"
    file.write_text(HEAD + code)
    return capture(file, "Net", fake=fake).snapshot


def told(snapshot: CaptureSnapshot, diagnostic: Diagnostic) -> str:
    """``RuntimeError aten.mm.default in '' suppressed``: exception, operation, module path and disposition."""
    target = snapshot.operations[int(diagnostic.operation[1:])].target if diagnostic.operation else "-"
    name = diagnostic.exception.rpartition(".")[2]
    return f"{name} {target} in {path(snapshot, diagnostic.invocation)!r} {diagnostic.disposition}"


def here(code: str) -> str:
    lines = (HEAD + code).split("\n")
    return f"net.py:{next(number for number, line in enumerate(lines, 1) if line.endswith('# here'))}"


# -- what the operands violate


def test_every_mistake_of_the_table_fails_where_it_says_and_violates_what_it_says(tmp_path: Path) -> None:
    file = tmp_path / "mistakes.py"
    codes = "\n".join(f"    lambda: {mistake.code}," for mistake in MISTAKES)
    file.write_text(
        "import torch\nfrom torch import nn, ones\nfrom torch.nn import functional as F\n"
        f"MISTAKES = [\n{codes}\n]\n"
        "for mistake in MISTAKES:\n    try:\n        mistake()\n    except (RuntimeError, IndexError):\n        pass\n"
    )
    snapshot = capture(file, "__main__").snapshot
    failed = [operation for operation in snapshot.operations if operation.status == "failed"]
    found = [(operation.target, next(failure.demands(snapshot, operation), None)) for operation in failed]
    assert found == [(mistake.target, mistake.violated) for mistake in MISTAKES]
    assert {diagnostic.disposition for diagnostic in snapshot.diagnostics} == {"suppressed"}


def test_an_operator_of_the_programs_own_has_no_demands_that_we_know(tmp_path: Path) -> None:
    code = """
@torch.library.custom_op("failures::broken", mutates_args=())
def broken(x: torch.Tensor) -> torch.Tensor:
    raise RuntimeError("mat1 and mat2 shapes cannot be multiplied (2x4 and 5x6)")
def run(net, x):
    return broken(x)
"""
    snapshot = captured(tmp_path, code)
    (diagnostic,) = snapshot.diagnostics
    assert told(snapshot, diagnostic) == "RuntimeError failures.broken.default in '' propagated"
    assert diagnostic.constraints == ()


# -- what became of the exception

DISPOSITIONS = {
    "an operator's failure": (
        """
def run(net, x):
    return net.inner(x.view(4, 2))
""",
        ["RuntimeError aten.addmm.default in 'inner.linear' propagated"],
    ),
    "a later assertion": (
        """
def run(net, x):
    y = net.inner(x)
    assert y.shape[1] == 5  # here
""",
        ["AssertionError - in '' propagated"],
    ),
    "an error that the program survives": (
        """
def run(net, x):
    try:
        return x @ x  # here
    except RuntimeError:
        return net.inner(x)
""",
        ["RuntimeError aten.mm.default in '' suppressed"],
    ),
    "an error that is raised again": (
        """
def run(net, x):
    try:
        return x @ x  # here
    except RuntimeError:
        net.inner(x)
        raise
""",
        ["RuntimeError aten.mm.default in '' propagated"],
    ),
    "a forward pre-hook": (
        """
def hook(module, args):
    raise ValueError  # here
def prepare(net):
    net.inner.register_forward_pre_hook(hook)
def run(net, x):
    return net.inner(x)
""",
        ["ValueError - in 'inner' propagated"],
    ),
    "an operation in a forward hook": (
        """
def hook(module, args, output):
    return output @ output  # here
def prepare(net):
    net.inner.register_forward_hook(hook)
def run(net, x):
    return net.inner(x)
""",
        ["RuntimeError aten.mm.default in 'inner' propagated"],
    ),
    "a tensor hook": (
        """
def hook(gradient):
    raise KeyError  # here
def run(net, x):
    y = net.inner(x)
    y.register_hook(hook)
    y.sum().backward()
""",
        ["KeyError - in '' propagated"],
    ),
    "an operation in a backward hook": (
        """
def hook(module, inputs, outputs):
    outputs[0] @ outputs[0]  # here
def prepare(net):
    net.inner.register_full_backward_hook(hook)
def run(net, x):
    net.inner(x).sum().backward()
""",
        ["RuntimeError aten.mm.default in '' propagated"],
    ),
    "the forward of an autograd function": (
        """
class Own(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x @ x  # here
def run(net, x):
    return Own.apply(net.inner(x))
""",
        ["RuntimeError aten.mm.default in '' propagated"],
    ),
    "the backward of an autograd function": (
        """
class Own(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, gradient):
        raise OSError  # here
def run(net, x):
    Own.apply(net.inner(x)).sum().backward()
""",
        ["OSError - in '' propagated"],
    ),
    "an error that is raised again after another": (
        """
def run(net, x):
    try:
        return x @ x  # here
    except RuntimeError as error:
        first = error
    try:
        torch.cat([x, x[0]])
    except RuntimeError:
        raise first
""",
        ["RuntimeError aten.mm.default in '' propagated", "RuntimeError aten.cat.default in '' suppressed"],
    ),
    "an error in whose place another is raised": (
        """
def run(net, x):
    try:
        return x @ x  # here
    except RuntimeError as error:
        raise ValueError from error
""",
        ["RuntimeError aten.mm.default in '' replaced", "ValueError - in '' propagated"],
    ),
    "an error while another is handled, which the program survives": (
        """
def run(net, x):
    try:
        try:
            return x @ x  # here
        except RuntimeError:
            net.inner(x.view(4, 2))
    except RuntimeError:
        return net.inner(x)
""",
        ["RuntimeError aten.mm.default in '' replaced", "RuntimeError aten.addmm.default in 'inner.linear' suppressed"],
    ),
    "an error that another is said not to come from": (
        """
def run(net, x):
    try:
        return x @ x  # here
    except RuntimeError:
        raise ValueError from None
""",
        ["RuntimeError aten.mm.default in '' suppressed", "ValueError - in '' propagated"],
    ),
    "an error behind one that was never recorded": (
        """
def run(net, x):
    try:
        try:
            return x @ x  # here
        except RuntimeError as error:
            raise KeyError from error
    except KeyError as error:
        raise ValueError from error
""",
        ["RuntimeError aten.mm.default in '' replaced", "ValueError - in '' propagated"],
    ),
    "a generator that is closed": (
        """
def steps(x):
    yield x + 1
    yield x + 2
def run(net, x):
    left = steps(x)
    next(left)
    left.close()
    return sum(steps(x))
""",
        [],
    ),
}


@pytest.mark.skipif(sys.version_info < (3, 11), reason="exceptions are grouped since Python 3.11")
def test_a_group_takes_the_place_of_the_first_of_its_exceptions(tmp_path: Path) -> None:
    code = """
def run(net, x):
    errors = []
    for shape in (3, 3), (5, 5):
        try:
            x.view(shape)
        except RuntimeError as error:
            errors.append(error)
    raise ExceptionGroup("both", errors)
"""
    snapshot = captured(tmp_path, code)
    assert [(told(snapshot, diagnostic), diagnostic.cause) for diagnostic in snapshot.diagnostics] == [
        ("RuntimeError aten.view.default in '' replaced", None),
        ("RuntimeError aten.view.default in '' suppressed", None),
        ("ExceptionGroup - in '' propagated", "x0"),
    ]


@pytest.mark.parametrize("case", DISPOSITIONS)
def test_it_is_told_where_it_was_raised_and_what_became_of(case: str, tmp_path: Path) -> None:
    code, expected = DISPOSITIONS[case]
    snapshot = captured(tmp_path, code)
    assert [told(snapshot, diagnostic) for diagnostic in snapshot.diagnostics] == expected
    if "# here" in code:
        assert place(snapshot, snapshot.diagnostics[0].location) == here(code)


def test_checkpoint_stops_a_call_that_it_has_recomputed_and_nothing_failed(tmp_path: Path) -> None:
    code = "def run(net, x):\n    checkpoint(net.inner, x, use_reentrant=False).sum().backward()\n"
    snapshot = captured(tmp_path, code)
    assert snapshot.status == "complete"
    assert [told(snapshot, diagnostic) for diagnostic in snapshot.diagnostics] == [
        "_StopRecomputationError - in 'inner' control_flow"
    ]
    assert [(path(snapshot, call), call.status) for call in snapshot.invocations] == [
        ("", "completed"),
        ("inner", "completed"),
        ("inner.linear", "completed"),
        ("inner", "stopped"),
        ("inner.linear", "completed"),
    ]
    assert {covered.state for covered in snapshot.coverage.modules} == {"observed"}


def test_the_log_has_the_tracebacks_of_all_exceptions_in_the_chain_without_our_frames(tmp_path: Path) -> None:
    file = tmp_path / "net.py"
    lines = ("try:", "    x @ x", "except RuntimeError as error:", "    raise OSError from error")
    file.write_text(HEAD + "def run(net, x):\n" + "".join(f"    {line}\n" for line in lines))
    log = capture(file, "Net").log
    assert "The above exception was the direct cause of the following exception" in log
    assert "tensorviz_worker" not in log


# -- without values

DATA_DEPENDENT = {
    "item": ("return x if (x * 2).sum().item() > 0 else -x  # here", "aten._local_scalar_dense.default"),
    "a branch": ("return x if (x > 0).any() else -x  # here", "aten._local_scalar_dense.default"),
    "a mask": ("return x[x > 0]  # here", "aten.index.Tensor"),
    "nonzero": ("return torch.nonzero(x)  # here", "aten.nonzero.default"),
    "unique": ("return x.unique()  # here", "aten._unique2.default"),
}


@pytest.mark.parametrize("case", DATA_DEPENDENT)
def test_a_fake_run_stops_at_the_operation_that_needs_values_and_keeps_what_was_before(
    case: str, tmp_path: Path
) -> None:
    line, target = DATA_DEPENDENT[case]
    code = f"def run(net, x):\n    x = net.inner(x).detach()\n    {line}\n"
    snapshot = captured(tmp_path, code, fake=True)
    operation = snapshot.operations[-1]
    assert (operation.target, operation.status) == (target, "failed")
    assert place(snapshot, operation.location) == here(code)
    assert [(reason.code, reason.subject) for reason in snapshot.reasons] == [("data_dependent", operation.id)]
    assert "aten.addmm.default" in [earlier.target for earlier in snapshot.operations]


def test_a_fake_run_that_goes_on_without_a_value_is_partial_for_it_went_another_way(tmp_path: Path) -> None:
    code = """
def run(net, x):
    for one in x.unbind():
        try:
            one.sum().item()
        except RuntimeError:
            continue
    return net.inner(x)
"""
    snapshot = captured(tmp_path, code, fake=True)
    assert snapshot.termination.kind == "returned"
    first = next(operation.id for operation in snapshot.operations if operation.status == "failed")
    assert [(reason.code, reason.count, reason.subject) for reason in snapshot.reasons] == [
        ("data_dependent", 2, first)
    ]


def test_a_fake_run_stops_at_an_operation_without_a_rule_for_fake_tensors(tmp_path: Path) -> None:
    code = """
library = torch.library.Library("failures", "DEF")
library.define("plain(Tensor x) -> Tensor")
library.impl("plain", lambda x: x.clone(), "CPU")
def run(net, x):
    return torch.ops.failures.plain(net.inner(x))  # here
"""
    snapshot = captured(tmp_path, code, fake=True)
    operation = snapshot.operations[-1]
    assert (operation.target, place(snapshot, operation.location)) == ("failures.plain.default", here(code))
    assert [(reason.code, reason.subject) for reason in snapshot.reasons] == [("fake_unsupported", operation.id)]
