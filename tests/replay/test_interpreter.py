"""The replay finds what is wrong: a capture that is bent in one place does not replay."""

import json
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from tensorviz.contracts.base import encode
from tensorviz.contracts.capture import CaptureSnapshot
from tensorviz.contracts.validate import parse

from .oracle import Watched, examine_block, watch, watch_call

Document = dict[str, Any]


class Writes(nn.Module):
    """Views, writes through them, a random number, a buffer, a constant and two results."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.register_buffer("seen", torch.zeros(4))
        self.scale = torch.tensor([1.0, 2.0, 3.0, 4.0])

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> dict[str, torch.Tensor]:
        kept = torch.empty(2, 4)
        kept[0].copy_(x[0])
        kept[1].copy_(y[0])
        turned = kept.t()
        turned.mul_(2)
        self.get_buffer("seen").add_(kept.sum(0))
        drawn = torch.rand(4) * self.scale - y
        return {"kept": turned, "drawn": self.linear(drawn - kept), "seen": self.get_buffer("seen")}


def recorded() -> Watched:
    torch.manual_seed(0)
    with torch.no_grad():
        return watch_call(Writes(), torch.randn(2, 4), torch.randn(2, 4))


def bent(snapshot: CaptureSnapshot, bend: Callable[[Document], None]) -> CaptureSnapshot:
    document = json.loads(encode(snapshot))
    bend(document)
    return parse(CaptureSnapshot, json.dumps(document).encode())


def operation(document: Document, target: str, number: int = 0) -> Document:
    return [item for item in document["operations"] if item["target"] == target][number]


def value(document: Document, tree: Document) -> Document:
    return document["values"][int(tree["value"][1:])]


def leaves_out_an_operation(document: Document) -> None:
    document["operations"].remove(operation(document, "aten.rand.default"))


def renames_a_target(document: Document) -> None:
    operation(document, "aten.sub.Tensor")["target"] = "aten.add.Tensor"


def changes_a_number(document: Document) -> None:
    operation(document, "aten.mul_.Tensor")["args"][1] = {"kind": "int", "value": "3"}


def swaps_operands(document: Document) -> None:
    operation(document, "aten.sub.Tensor")["args"].reverse()


def turns_a_keyword(document: Document) -> None:
    keyword = next(item for item in operation(document, "aten.rand.default")["kwargs"] if item["name"] == "pin_memory")
    keyword["name"] = "dtype"


def forgets_an_effect(document: Document) -> None:
    operation(document, "aten.add_.Tensor")["effects"] = []


def forgets_the_effect_on_an_alias(document: Document) -> None:
    effects = operation(document, "aten.mul_.Tensor")["effects"]
    effects.remove(next(effect for effect in effects if effect["relation"] == "alias"))


def invents_an_effect(document: Document) -> None:
    write = operation(document, "aten.mul_.Tensor")["effects"][0]
    operation(document, "aten.rand.default")["effects"] = [{**write, "before": write["after"]["value"]}]


def reads_an_older_version(document: Document) -> None:
    write = operation(document, "aten.mul_.Tensor")["effects"]
    alias = next(effect for effect in write if effect["relation"] == "alias")
    operation(document, "aten.sum.dim_IntList")["args"][0]["value"] = alias["before"]


def takes_a_view_for_a_copy(document: Document) -> None:
    value(document, operation(document, "aten.t.default")["output"])["storage"] = "s99"


def takes_a_copy_for_a_view(document: Document) -> None:
    drawn = value(document, operation(document, "aten.rand.default")["output"])
    drawn["storage"] = value(document, operation(document, "aten.t.default")["output"])["storage"]


def bends_a_stride(document: Document) -> None:
    value(document, operation(document, "aten.t.default")["output"])["strides"] = [4, 1]


def bends_a_shape(document: Document) -> None:
    value(document, operation(document, "aten.addmm.default")["output"])["shape"] = [4, 2]


def calls_an_input_by_the_name_of_another(document: Document) -> None:
    for item in document["values"]:
        if item["producer"]["kind"] == "input":
            item["producer"]["path"] = ["args", 1 - item["producer"]["path"][1]]


def calls_a_parameter_by_the_name_of_another(document: Document) -> None:
    by_path = {item["paths"][0]["path"]: item for item in document["state"]}
    first, second = by_path["linear.bias"], by_path["seen"]
    first["paths"], second["paths"] = second["paths"], first["paths"]


def returns_another_tensor(document: Document) -> None:
    entries = document["invocations"][0]["output"]["entries"]
    entries[0]["value"], entries[1]["value"] = entries[1]["value"], entries[0]["value"]


def returns_under_another_name(document: Document) -> None:
    document["invocations"][0]["output"]["entries"][0]["key"]["value"] = "other"


def adds_another_zero(document: Document) -> None:
    operation(document, "aten.add.Tensor")["args"][1]["value"] = "0.0"


BENT = [
    leaves_out_an_operation,
    renames_a_target,
    changes_a_number,
    swaps_operands,
    turns_a_keyword,
    forgets_an_effect,
    forgets_the_effect_on_an_alias,
    invents_an_effect,
    reads_an_older_version,
    takes_a_view_for_a_copy,
    takes_a_copy_for_a_view,
    bends_a_stride,
    bends_a_shape,
    calls_an_input_by_the_name_of_another,
    calls_a_parameter_by_the_name_of_another,
    returns_another_tensor,
    returns_under_another_name,
]


def test_a_true_capture_replays() -> None:
    watched = recorded()
    assert (watched.snapshot.status, watched.difference()) == ("complete", None)


@pytest.mark.parametrize("bend", BENT, ids=lambda bend: bend.__name__)
def test_no_capture_replays_that(bend: Callable[[Document], None]) -> None:
    watched = recorded()
    assert watched.difference(bent(watched.snapshot, bend)) is not None


def test_one_other_bit_is_a_difference() -> None:
    watched = recorded()
    memory = watched.known.kept.memories[watched.known.states["linear.weight"].storage or 0]
    memory[0] = memory[0] ^ 1
    assert "other bits" in (watched.difference() or "")


def test_nan_and_negative_zero_are_compared_as_bits() -> None:
    x = torch.tensor([0.0, -0.0, float("nan")])
    watched = watch(lambda: (x * -1.0, x * float("nan"), x + -0.0))
    assert (watched.snapshot.status, watched.difference()) == ("complete", None)
    assert "other bits" in (watched.difference(bent(watched.snapshot, adds_another_zero)) or "")


def test_a_seed_that_is_set_on_the_way_and_a_generator_are_followed() -> None:
    def draw() -> torch.Tensor:
        first = torch.rand(3)
        torch.manual_seed(first.numel())
        own = torch.Generator().manual_seed(7)
        return torch.randn(3) + torch.rand(3, generator=own) + torch.rand(3, generator=own) + torch.rand(3)

    verdict = examine_block(draw)
    assert (verdict.snapshot.status, verdict.difference) == ("complete", None)


def test_a_replay_leaves_the_random_state_as_the_program_left_it() -> None:
    torch.manual_seed(3)
    expected = [torch.rand(2), torch.rand(2)][1]
    torch.manual_seed(3)
    examine_block(lambda: torch.rand(2))
    assert torch.equal(torch.rand(2), expected)
