"""What is claimed is a valid part of a capture, and what the records do not say exactly leads to no claim."""

from typing import Any

import orjson
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorviz.constraints import MOST, NAMES, violated
from tensorviz.constraints.call import parse_schema
from tensorviz.contracts.capture import Exited, Limits
from tensorviz.ingest import Origin, assemble
from tensorviz_worker.journal import to_json
from tensorviz_worker.launch import environment

from .recording import overloads, recorded
from .test_soundness import ACCEPTED, SLOW, changed

EXECUTION = {
    "file": None,
    "target": "__main__",
    "targetKind": "script",
    "inputs": {"kind": "none", "name": None},
    "mode": "as_is",
    "fake": False,
    "gradEnabled": True,
    "inferenceMode": False,
}
HEAD = f'{{"environment":{to_json(environment())}}}\n{{"execution":{to_json(EXECUTION)}}}\n'.encode()
SCHEMAS = sorted(str(op._schema) for op in overloads(NAMES))


def capture(journal: bytes, **limits: int) -> dict[str, Any]:
    """The capture, which ``assemble`` has checked in full."""
    origin = Origin("att-0123456789abcdef", {"kind": "in_process"}, Limits(**limits), ())
    return orjson.loads(assemble(HEAD + journal, Exited(kind="exited", code=0), origin).data)


@settings(max_examples=300, deadline=None, suppress_health_check=SLOW)
@given(st.sampled_from(sorted(ACCEPTED)), st.booleans(), st.data())
def test_whatever_is_claimed_is_true_of_the_records(name: str, inference: bool, data: st.DataObject) -> None:
    args = data.draw(changed(ACCEPTED[name]))

    def call() -> None:
        torch.ones(1)  # so that there is a capture, even if torch refuses the call before any operator runs
        with torch.inference_mode(inference):
            getattr(torch.ops.aten, name)(*args)

    for diagnostic in capture(recorded(call))["diagnostics"]:
        assert len(diagnostic["constraints"]) <= MOST


def wrong(times: int) -> bytes:
    def call() -> None:
        for _ in range(times):
            try:
                torch.mm(torch.ones(2, 3), torch.ones(2, 3))
            except RuntimeError:
                continue
        torch.mm(torch.ones(2, 3), torch.ones(2, 3))

    return recorded(call)


def test_of_very_many_failures_the_first_are_examined_and_the_rest_says_that_it_was_not() -> None:
    found = [diagnostic["constraints"] for diagnostic in capture(wrong(300))["diagnostics"]]
    examined = found.index(None)
    assert examined > 50
    assert all(found[:examined])
    assert not any(found[examined:])


def test_constraints_take_no_room_that_a_capture_does_not_have() -> None:
    journal = wrong(2)
    size = len(orjson.dumps(capture(journal)))
    found = [diagnostic["constraints"] for diagnostic in capture(journal, bytes=size - 1)["diagnostics"]]
    assert None in found
    assert any(found)


# -- records that do not say


def tensor(*shape: Any, **facts: Any) -> dict[str, Any]:
    told = {"type": "torch.Tensor", "dtype": "torch.float32", "device": "cpu", "layout": "torch.strided"}
    return {"shape": list(shape), **told, **facts}


def mm(left: dict[str, Any], right: dict[str, Any]) -> list[dict[str, Any]]:
    args = [{"kind": "tensor", "value": f"v{index}"} for index in range(2)]
    return violated({"target": "aten.mm.default", "args": args, "kwargs": []}, MM, [left, right])


MM = "aten::mm(Tensor self, Tensor mat2) -> Tensor"


def test_sizes_that_differ_are_claimed_with_their_places() -> None:
    assert mm(tensor(2, 3), tensor(4, 5)) == [
        {
            "kind": "equal",
            "what": "inner",
            "left": {"path": ["args", 0], "of": "size", "dim": 1, "number": 3},
            "right": {"path": ["args", 1], "of": "size", "dim": 0, "number": 4},
        }
    ]


def test_operands_on_two_devices_are_claimed() -> None:
    (claim,) = mm(tensor(2, 3), tensor(3, 5, device="cuda:0"))
    assert (claim["kind"], claim["left"]["name"], claim["right"]["name"]) == ("same", "cpu", "cuda:0")


UNTOLD = {
    "a symbolic size": tensor(4, 5) | {"shape": ["s0", 5]},
    "a size that no reader could hold exactly": tensor(2**53, 5),
    "a subclass": tensor(4, 5, type="net.Weight"),
    "a sparse tensor": tensor(4, 5, layout="torch.sparse_coo"),
    "a tensor on the meta device": tensor(4, 5, device="meta"),
}


@pytest.mark.parametrize("case", UNTOLD)
def test_nothing_is_claimed_of(case: str) -> None:
    assert mm(tensor(2, 3), UNTOLD[case]) == []


def test_nothing_is_claimed_of_an_operator_that_is_not_torchs_own() -> None:
    operation = {"target": "my.mm.default", "args": [{"kind": "tensor", "value": "v0"}] * 2, "kwargs": []}
    assert violated(operation, MM, [tensor(2, 3)]) == []
    assert violated({**operation, "target": "aten.mm.default"}, None, [tensor(2, 3)]) == []


NODES = st.recursive(
    st.sampled_from(
        [
            {"kind": "none"},
            {"kind": "bool", "value": True},
            {"kind": "int", "value": "-3"},
            {"kind": "int", "value": "2"},
            {"kind": "int", "value": "1" + "0" * 30},
            {"kind": "float", "value": "0.5"},
            {"kind": "string", "value": "same"},
            {"kind": "symbolic", "type": "int", "expression": "s0"},
            {"kind": "opaque", "type": "x", "reason": "cycle"},
            *({"kind": "tensor", "value": f"v{index}"} for index in range(4)),
        ]
    ),
    lambda inner: st.lists(inner, max_size=3).map(lambda items: {"kind": "list", "items": items}),
    max_leaves=4,
)
VALUES = [tensor(2, 3), tensor(), tensor("s0", 2, dtype="torch.int64"), tensor(1, 0, 4, 2, 2, dtype="my.dtype")]


@settings(max_examples=500, deadline=None)
@given(st.sampled_from(SCHEMAS), st.lists(NODES, max_size=9), st.lists(NODES, max_size=2))
def test_any_arguments_are_examined_without_an_exception(schema: str, args: list[Any], named: list[Any]) -> None:
    target = schema.partition("(")[0].replace("::", ".")
    names = [parameter.name for parameter in parse_schema(schema)][len(args) :]
    kwargs = [{"name": name, "value": node} for name, node in zip(names, named, strict=False)]
    violated({"target": target, "args": args, "kwargs": kwargs}, schema, VALUES)


def test_every_parameter_of_every_schema_is_read() -> None:
    for op in overloads(NAMES):
        found = [(parameter.name, parameter.default is not None) for parameter in parse_schema(str(op._schema))]
        assert found == [(argument.name, argument.has_default_value()) for argument in op._schema.arguments]
