"""What a higher-order operator calls is recorded as it runs, and runs as it does unwatched."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._higher_order_ops._invoke_quant import invoke_quant
from torch._higher_order_ops.associative_scan import associative_scan_op
from torch._higher_order_ops.foreach_map import foreach_map
from torch.fx import GraphModule, symbolic_trace
from torch.fx.experimental.proxy_tensor import make_fx
from torch.overrides import TorchFunctionMode

import tensorviz
from tensorviz.contracts.capture import CaptureSnapshot, Limits

from .reading import place
from .running import capture
from .witness import Model, Witness, example, recorded

operators = torch.ops.higher_order
Body = Callable[..., Any]


def waves(x: torch.Tensor) -> tuple[torch.Tensor]:
    return (x.sin() + 1,)


def draws(x: torch.Tensor) -> tuple[torch.Tensor]:
    return (torch.nn.functional.dropout(x) + torch.rand(4),)


def graph(body: Body) -> GraphModule:
    return symbolic_trace(body)


def condition(no: Any, *operands: torch.Tensor) -> Any:
    """Takes the second branch."""
    return operators.cond(False, lambda *unused: unused, no, operands)


def targets(snapshot: CaptureSnapshot) -> list[str]:
    return [operation.target for operation in snapshot.operations]


def alone(body: Body, *operands: torch.Tensor) -> list[str]:
    """What a body dispatches when nothing but us calls it, in the state in which an operator calls it."""
    with torch.no_grad(), torch._C._AutoDispatchBelowAutograd(), Witness() as witness:
        body(*operands)
    return witness.seen


OPERATORS: dict[str, tuple[Body, Callable[[Body, torch.Tensor], Any]]] = {
    "cond": (waves, condition),
    "run_const_graph": (waves, lambda body, x: operators.run_const_graph(graph(body), (x,))),
    "invoke_subgraph": (waves, lambda body, x: operators.invoke_subgraph(graph(body), "name", x)),
    "invoke_quant": (waves, lambda body, x: invoke_quant(graph(body), x)),
    "hints_wrapper": (draws, lambda body, x: operators.hints_wrapper(body, (x,), {}, hints={})),
    "strict_mode": (draws, lambda body, x: operators.strict_mode(body, (x,))),
    "associative_scan": (lambda x: [x + x, x + x], lambda _, x: associative_scan_op(lambda a, b: [a + b], [x], ())),
    "foreach_map": (lambda x: [x.sin(), x.sin()], lambda _, x: foreach_map(torch.sin, [x, x])),
}


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.filterwarnings("ignore")
def test_the_operations_of_a_body_come_before_its_operator(name: str) -> None:
    body, call = OPERATORS[name]
    snapshot = recorded(lambda _, x: call(body, x), sees_all=False)
    seen = [target for target in alone(body, example()) if "select" not in target]
    assert seen
    assert targets(snapshot) == [*seen, *targets(snapshot)[-1:]]
    assert name in targets(snapshot)[-1]
    assert [reason.code for reason in snapshot.reasons] == ["unsupported_argument"]


def test_the_operator_returns_the_value_that_its_body_made() -> None:
    *_, made, operator = recorded(lambda _, x: condition(waves, x)).operations
    assert operator.output.items[0] == made.output  # type: ignore[union-attr]


def test_a_body_that_writes_its_operand_leaves_the_operator_the_value_from_before() -> None:
    snapshot = recorded(lambda _, x: [y := x.clone(), condition(lambda z: (z.square_() + 1,), y), y + 1])
    clone, write, _, operator, after = snapshot.operations
    assert operator.args[3].items[0] == clone.output  # type: ignore[union-attr]
    assert after.args[0] == write.effects[0].after


def test_a_module_that_is_a_body_has_its_call() -> None:
    snapshot = recorded(lambda model, x: condition(model.linear, x))
    root, call = snapshot.invocations
    assert call.parent == root.id
    assert [operation.invocation for operation in snapshot.operations] == [call.id, root.id]


class Functions(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("mode", [Functions, lambda: torch.device("cpu")])
def test_a_body_runs_under_the_function_modes_of_the_program(mode: Callable[[], Any]) -> None:
    def program(_: Any, x: torch.Tensor) -> Any:
        with mode():
            return condition(draws, x)

    recorded(program)


def fails(x: torch.Tensor) -> Any:
    return x.sin() @ torch.ones(7)


def test_a_body_that_fails_is_the_cause_of_the_failure_of_its_operator() -> None:
    snapshot = recorded(lambda _, x: condition(lambda y: condition(fails, y), x))
    assert [operation.status for operation in snapshot.operations] == ["completed", "completed", *["failed"] * 3]
    said = [(found.operation, found.cause, found.disposition) for found in snapshot.diagnostics]
    assert said == [("o2", None, "replaced"), ("o3", "x0", "replaced"), ("o4", "x1", "propagated")]


def test_an_error_of_a_body_s_own_is_the_operator_s() -> None:
    def raises(x: torch.Tensor) -> Any:
        raise KeyError(x.cos().shape)

    snapshot = recorded(lambda _, x: condition(raises, x))
    (diagnostic,) = snapshot.diagnostics
    assert (diagnostic.exception, diagnostic.operation) == ("builtins.KeyError", "o1")


@pytest.mark.parametrize("room", [1, 2, 3])
def test_a_budget_that_is_spent_inside_a_body_leaves_a_prefix(room: int) -> None:
    model = Model(lambda _, x: condition(waves, x.cos())[0] * 2)
    whole = targets(tensorviz.capture(model, example()).snapshot)
    run = tensorviz.capture(model, example(), limits=Limits(operations=room))
    assert targets(run.snapshot) == whole[:room]
    assert run.snapshot.coverage.operations.omitted == len(whole) - room
    assert "operation_limit" in [reason.code for reason in run.snapshot.reasons]
    assert torch.equal(run.result, model(example()))


def test_a_tracer_is_handed_the_program_s_own_functions() -> None:
    kept: list[Any] = []

    def program(_: Any, x: torch.Tensor) -> Any:
        kept.append(make_fx(lambda y: operators.run_const_graph(body, (y,)))(x))
        return kept[-1](x)

    body = graph(waves)
    recorded(program, sees_all=False)
    assert [type(child) for child in kept[-1].children()] == [type(body)]


BRANCHES = """
import torch

class Branches(torch.nn.Module):
    def forward(self, x):
        return torch.ops.higher_order.cond(
            x.sum() > 9,
            lambda y: y.sin(),
            lambda y: y.cos(),
            (x,),
        )

model = Branches()
example_inputs = (torch.ones(2),)
"""


def test_an_operation_of_a_body_has_its_place_in_the_body(tmp_path: Path) -> None:
    file = tmp_path / "branches.py"
    file.write_text(BRANCHES)
    snapshot = capture(file).snapshot
    assert [place(snapshot, operation.location) for operation in snapshot.operations][-2:] == [
        "branches.py:9",
        "branches.py:6",
    ]


def test_without_values_the_operator_runs_both_branches(tmp_path: Path) -> None:
    file = tmp_path / "branches.py"
    file.write_text(BRANCHES)
    snapshot = capture(file, fake=True).snapshot
    assert targets(snapshot)[-3:] == ["aten.sin.default", "aten.cos.default", "cond"]
