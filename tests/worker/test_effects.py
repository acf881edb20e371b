"""Writes: each declared one is an effect on its operand and on every alias that was seen, from value to value."""

from typing import Any

import pytest
import torch
from torch import nn

from tensorviz.contracts.arguments import TensorArgument
from tensorviz.contracts.capture import CaptureSnapshot, Effect

from .reading import value
from .witness import Row, assert_recorded_as_said, recorded, row


def views_and_bases(_: Any, x: torch.Tensor) -> list[torch.Tensor]:
    y = x.clone()
    view = y[0]
    view.add_(1)
    y.mul_(2)
    torch.as_strided(y, (2, 2), (1, 1)).fill_(3)
    return [view, y]


def a_detached_alias(model: Any, x: torch.Tensor) -> torch.Tensor:
    y = model.linear(x)
    y.detach().add_(1)
    return y + 0


def out_arguments(_: Any, x: torch.Tensor) -> list[torch.Tensor]:
    whole, empty, index = torch.empty(2, 4), torch.empty(0), torch.empty(0, dtype=torch.long)
    row_of_it = whole[0]
    torch.add(x, 1, out=whole)
    torch.max(x, 0, out=(empty, index))
    return [row_of_it, empty, index]


def set_and_resize(_: Any, x: torch.Tensor) -> torch.Tensor:
    y = torch.empty(2, 4)
    y.set_(x.clone())  # pyright: ignore[reportArgumentType]
    return y.resize_(1, 2)


def indexed_writes(_: Any, x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y[0] = 1
    y[:, [1, 2]] = 5
    y[y > 4] = 0
    y.scatter_(1, torch.zeros(2, 1, dtype=torch.long), 7.0)
    y.index_add_(0, torch.tensor([0]), x[:1])
    return y.masked_fill_(y < 0, 3)


def survives(write: Any) -> Any:
    def program(_: Any, x: torch.Tensor) -> torch.Tensor:
        y = x.clone()
        try:
            write(y)
        except RuntimeError:
            return y + 1
        raise AssertionError("the write was to fail")

    return program


def writes_a_leaf(model: Any, x: torch.Tensor) -> torch.Tensor:
    try:
        model.linear.weight.add_(1)
    except RuntimeError:
        return model.linear(x)
    raise AssertionError("torch refuses to write a leaf")


def statistics(model: Any, x: torch.Tensor) -> Any:
    return model.norm.train()(x)


def descends(make: Any, steps: int = 2, **options: Any) -> Any:
    """A program that trains a layer for a few steps."""

    def program(model: Any, x: torch.Tensor) -> Any:
        optimizer = make(model.linear.parameters(), lr=0.1, **options)
        for _ in range(steps):
            model.linear(x).sum().backward()
            nn.utils.clip_grad_norm_(model.linear.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=False)
        return model.linear(x)

    return program


def with_a_closure(model: Any, x: torch.Tensor) -> Any:
    optimizer = torch.optim.LBFGS(model.linear.parameters(), max_iter=2)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = model.linear(x).square().sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    return model.linear(x)


def mixed_precision(model: Any, x: torch.Tensor) -> Any:
    optimizer, scaler = torch.optim.SGD(model.linear.parameters(), lr=0.1), torch.amp.GradScaler("cpu")
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = model.linear(x).float().sum()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_value_(model.linear.parameters(), 0.5)
    scaler.step(optimizer)
    scaler.update()
    schedule.step()
    return model.linear(x)


def averages(model: Any, x: torch.Tensor) -> Any:
    average = torch.optim.swa_utils.AveragedModel(model.linear)
    average.update_parameters(model.linear)
    return average(x)


def keeps_an_average_by_hand(model: Any, x: torch.Tensor) -> Any:
    with torch.no_grad():
        for kept, parameter in zip(model.other.parameters(), model.linear.parameters(), strict=True):
            kept.mul_(0.9).add_(parameter, alpha=0.1)
    return model.other(x)


def assigns_a_gradient(model: Any, x: torch.Tensor) -> Any:
    model.linear.weight.grad = torch.ones(4, 4)
    model.linear.weight.grad.add_(1)
    return model.linear.weight.grad * 2


@torch.library.custom_op("tensorviz_effects::shift", mutates_args={"x"})
def shift(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    x.add_(1)
    return y.cos()


def custom_write(_: Any, x: torch.Tensor) -> list[torch.Tensor]:
    y = x.clone()
    view = y[0]
    return [shift(y, x), y, view]


ROWS: dict[str, Row] = {
    "writes through views, to bases, through `as_strided`": row(views_and_bases),
    "an in-place write to a detached alias": row(a_detached_alias),
    "`out=`, of one and of several, resized": row(out_arguments),
    "`set_` of a tensor, `resize_`": row(set_and_resize),
    "`copy_`, `fill_`, `zero_`": row(lambda _, x: torch.empty(2, 4).copy_(x).fill_(1).zero_()),
    "indexed writes, `scatter_`, `index_add_`, `masked_fill_`": row(indexed_writes),
    "a write that fails": row(survives(lambda y: y.add_(torch.ones(7))), "failed_write"),
    "an `out=` that fails": row(
        survives(lambda y: torch.add(y, 1, out=torch.empty(2, dtype=torch.int))), "failed_write"
    ),
    "a write that torch refuses before it dispatches": row(writes_a_leaf),
    "running statistics in training": row(statistics),
    "`load_state_dict`": row(
        lambda model, x: (model.linear.load_state_dict(model.other.state_dict()), model.linear(x))[1]
    ),
    "`load_state_dict(assign=True)`": row(
        lambda model, x: (model.linear.load_state_dict(nn.Linear(4, 4).state_dict(), assign=True), model.linear(x))[1],
        "dynamic_state",
    ),
    "`requires_grad_`": row(lambda model, x: model.linear.requires_grad_(False)(x)),
    "SGD with momentum": row(descends(torch.optim.SGD, momentum=0.9)),
    "AdamW, one parameter at a time": row(descends(torch.optim.AdamW, foreach=False)),
    "AdamW, all parameters at once": row(descends(torch.optim.AdamW, foreach=True)),
    "AdamW, fused": row(descends(torch.optim.AdamW, fused=True)),
    "LBFGS with a closure": row(with_a_closure),
    "autocast, `GradScaler`, clipping, a schedule": row(mixed_precision),
    "an averaged copy of a model": row(averages, "dynamic_state"),
    "an average kept by hand": row(keeps_an_average_by_hand),
    "a gradient that is assigned": row(assigns_a_gradient),
    "a custom operator with `mutates_args`": row(custom_write),
}


@pytest.mark.parametrize("name", ROWS)
def test_the_coverage_page_tells_of(name: str) -> None:
    assert_recorded_as_said(ROWS[name])


def effects(snapshot: CaptureSnapshot, target: str) -> list[Effect]:
    return [effect for operation in snapshot.operations if operation.target == target for effect in operation.effects]


def told(snapshot: CaptureSnapshot, effect: Effect) -> tuple[str, tuple[str | int, ...], str, int]:
    """Relation, argument path, the object written, and by how much its logical version grew."""
    before = value(snapshot, effect.before)
    assert isinstance(effect.after, TensorArgument)
    after = value(snapshot, effect.after.value)
    assert (after.object, after.previousVersion) == (before.object, before.id)
    return effect.relation, effect.argument, before.object, after.logicalVersion - before.logicalVersion


def test_a_write_reaches_the_operand_and_every_alias_that_was_seen() -> None:
    snapshot = recorded(views_and_bases)
    view, base = (value(snapshot, effect.before).object for effect in effects(snapshot, "aten.add_.Tensor"))
    assert view != base
    assert [told(snapshot, effect) for effect in effects(snapshot, "aten.add_.Tensor")] == [
        ("operand", ("args", 0), view, 1),
        ("alias", ("args", 0), base, 1),
    ]
    assert [told(snapshot, effect)[:3] for effect in effects(snapshot, "aten.mul_.Tensor")] == [
        ("operand", ("args", 0), base),
        ("alias", ("args", 0), view),
    ]
    assert {told(snapshot, effect)[2] for effect in effects(snapshot, "aten.fill_.Scalar")} >= {view, base}


def test_a_write_to_an_alias_without_gradient_changes_the_tensor_that_has_one() -> None:
    snapshot = recorded(a_detached_alias)
    written = [told(snapshot, effect)[2] for effect in effects(snapshot, "aten.add_.Tensor")]
    (used,) = (operation.args[0] for operation in snapshot.operations if operation.target == "aten.add.Tensor")
    assert isinstance(used, TensorArgument)
    assert value(snapshot, used.value).object in written
    assert value(snapshot, used.value).producer.kind == "effect"


def test_each_tensor_of_a_list_has_an_effect_at_its_own_path() -> None:
    def program(_: Any, x: torch.Tensor) -> list[torch.Tensor]:
        tensors = [x.clone() for _ in range(3)]
        torch.ops.aten._foreach_copy_.default(tensors, [x, x, x])
        return tensors

    snapshot = recorded(program)
    assert [told(snapshot, effect)[1] for effect in effects(snapshot, "aten._foreach_copy_.default")] == [
        ("args", 0, "items", index) for index in range(3)
    ]


def test_out_arguments_that_are_resized_have_their_new_shapes_after_the_write() -> None:
    snapshot = recorded(out_arguments)
    values, indices = effects(snapshot, "aten.max.dim_max")
    assert [value(snapshot, effect.before).shape for effect in (values, indices)] == [(0,), (0,)]
    assert [
        value(snapshot, effect.after.value).shape  # type: ignore[union-attr]
        for effect in (values, indices)
    ] == [(4,), (4,)]


def test_what_a_failed_write_left_behind_is_not_claimed_to_be_known() -> None:
    snapshot = recorded(ROWS["a write that fails"].program)
    (effect,) = effects(snapshot, "aten.add_.Tensor")
    assert effect.after.model_dump()["reason"] == "failed_write"
