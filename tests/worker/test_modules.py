"""Modules of every kind: which calls are recorded, under which paths, and what of their state is known."""

import asyncio
import copy
import gc
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations, prune

import tensorviz

from .reading import path, values
from .witness import Row, assert_recorded_as_said, example, recorded, row, row_of_module


class Inner(nn.Module):
    """A module that owns a layer. Torch can script it."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x)


class CallsItself(Inner):
    def forward(self, x: torch.Tensor, times: int = 3) -> torch.Tensor:
        return self(self.linear(x), times - 1) if times else self.linear(x)


class CallsForward(Inner):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear.forward(x)


class Encodes(Inner):
    """Is used through a method that is not ``forward``."""

    def encode(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError


class HidesItsLayer(nn.Module):
    """Its layer is in a plain list, so it is registered nowhere."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = [nn.Linear(4, 4)]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.hidden[0](x)


class AvoidsTheCall(nn.Module):
    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return self.forward(x)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + 1


class OwnCall(Inner):
    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return super().__call__(x) * 2


class Meta(type):
    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return super().__call__(*args, **kwargs)


class OfAnotherMetaclass(Inner, metaclass=Meta):
    pass


class Hostile(Inner):
    """Answers nothing that an observer might ask."""

    def refuse(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("do not call me")

    __eq__ = __repr__ = __bool__ = __len__ = __dir__ = refuse
    __hash__ = None  # type: ignore[assignment]
    modules = parameters = named_modules = named_parameters = children = buffers = state_dict = refuse


class Shadows(nn.Module):
    """Registers a child under the name of a method of Module."""

    def __init__(self) -> None:
        super().__init__()
        self.modules = nn.ModuleList([nn.Linear(4, 4)])
        self._modules["parameters"] = nn.ReLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self._modules["parameters"](self._modules["modules"][0](x))  # type: ignore[index,misc]


class Containers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleDict({"a": nn.ModuleList([nn.Linear(4, 4), nn.ModuleDict({"z": nn.ReLU()})])})
        self.list, self.dict = nn.ParameterList([torch.ones(4)]), nn.ParameterDict({"w": torch.ones(4)})

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        linear, inner = self.blocks["a"]  # type: ignore[misc]
        return inner["z"](linear(x)) + self.list[0] + self.dict["w"]


class Generates(Inner):
    def forward(self, x: torch.Tensor) -> Any:
        for _ in range(3):
            x = self.linear(x)
            yield x


class Awaits(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    async def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x)


class Uses(nn.Module):
    def __init__(self, inner: nn.Module, use: Callable[[Any, torch.Tensor], Any]) -> None:
        super().__init__()
        self.inner, self.use = inner, use

    def forward(self, x: torch.Tensor) -> Any:
        return self.use(self.inner, x)


def shared() -> nn.Module:
    layer = nn.Linear(4, 4)
    return nn.Sequential(layer, layer, nn.Sequential(layer))


def tied() -> nn.Module:
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    model[1].weight = model[0].weight
    return model


def cyclic() -> nn.Module:
    model = Inner()
    model.linear.up = model
    return model


def pruned() -> nn.Module:
    layer = nn.Linear(4, 4)
    prune.l1_unstructured(layer, "weight", 0.5)
    return layer


def removes(model: Any, x: torch.Tensor) -> torch.Tensor:
    y = model.other(x)
    del model.other
    gc.collect()
    return y


def adds(model: Any, x: torch.Tensor) -> torch.Tensor:
    model.added = nn.ReLU()
    return model.added(x)


def replaces(model: Any, x: torch.Tensor) -> torch.Tensor:
    model.linear = nn.Tanh()
    return model.linear(x)


def new_parameter(model: Any, x: torch.Tensor) -> torch.Tensor:
    model.linear.weight = nn.Parameter(torch.ones(4, 4))
    return model.linear(x)


def new_buffer(model: Any, x: torch.Tensor) -> torch.Tensor:
    model.kept = model.kept + 1
    model.register_buffer("another", torch.ones(4))
    return x + model.kept + model.another


def ties(model: Any, x: torch.Tensor) -> torch.Tensor:
    model.other.weight = model.linear.weight
    return model.other(model.linear(x))


def with_hooks(model: Any, x: torch.Tensor) -> Any:
    hooked, seen = model.linear, []
    handles = [
        hooked.register_forward_pre_hook(lambda _, args, kwargs: ((args[0] * 2,), kwargs), with_kwargs=True),
        hooked.register_forward_hook(lambda _, __, ___, output: output + 1, with_kwargs=True),
        hooked.register_forward_hook(lambda *_: seen.append(1), always_call=True),
        hooked.register_full_backward_pre_hook(lambda _, grads: (grads[0] * 3,)),
        hooked.register_full_backward_hook(lambda *_: seen.append(2)),
        nn.modules.module.register_module_forward_pre_hook(lambda *_: seen.append(3)),
        nn.modules.module.register_module_forward_hook(lambda *_: seen.append(4)),
        nn.modules.module.register_module_full_backward_hook(lambda *_: None),
    ]
    try:
        hooked(x).sum().backward()
    finally:
        for handle in handles:
            handle.remove()
    return [seen, hooked.weight.grad]


def survives_a_hook(model: Any, x: torch.Tensor) -> torch.Tensor:
    handle = model.linear.register_forward_hook(lambda *_: 1 / 0)
    try:
        return model.linear(x)
    except ZeroDivisionError:
        return x + 1
    finally:
        handle.remove()


def trace(module: nn.Module) -> nn.Module:
    traced = torch.jit.trace(module, example())
    assert isinstance(traced, nn.Module)
    return traced


def calls_a_copy(model: Any, x: torch.Tensor) -> Any:
    return copy.deepcopy(model.linear)(x)


ROWS: dict[str, Row] = {
    "a module called twice": row(lambda model, x: model.linear(model.linear(x))),
    "a module that calls itself": row_of_module(CallsItself),
    "a shared module": row_of_module(shared),
    "a shared parameter": row_of_module(tied),
    "a module that contains itself": row_of_module(cyclic),
    "`ModuleList`, `ModuleDict`, `ParameterList`, `ParameterDict`": row_of_module(Containers),
    "`module.forward(x)` in place of a call": row_of_module(CallsForward),
    "another method than `forward`": row_of_module(lambda: Uses(Encodes(), lambda inner, x: inner.encode(x))),
    "`__call__` of the class that ends in Module's": row_of_module(lambda: nn.Sequential(OwnCall())),
    "`__call__` of the class that calls `forward` itself": row_of_module(
        lambda: nn.Sequential(AvoidsTheCall()), "unobserved_call"
    ),
    "a class of another metaclass": row_of_module(OfAnotherMetaclass),
    "a module that refuses every question": row_of_module(lambda: nn.Sequential(Hostile())),
    "a child named `modules` or `parameters`": row_of_module(Shadows),
    "a module that is registered nowhere": row_of_module(HidesItsLayer, "dynamic_state"),
    "a module made in forward": row(lambda _, x: nn.Linear(4, 4)(x), "dynamic_state"),
    "a module without state made in forward": row(lambda _, x: nn.ReLU()(x)),
    "a module added, replaced, removed in forward": row(
        lambda model, x: replaces(model, adds(model, removes(model, x)))
    ),
    "a deep copy of a module": row(calls_a_copy, "dynamic_state"),
    "a parameter made in forward": row(new_parameter, "dynamic_state"),
    "a buffer made or replaced in forward": row(new_buffer),
    "a parameter tied in forward": row(ties),
    "lazy modules at their first call": row_of_module(
        lambda: nn.Sequential(nn.LazyLinear(3), nn.LazyBatchNorm1d()),
        "lazy_state",
        "dynamic_state",
        "unsupported_tensor",
    ),
    "weight norm": row_of_module(lambda: parametrizations.weight_norm(nn.Linear(4, 4))),
    "spectral norm": row_of_module(lambda: parametrizations.spectral_norm(nn.Linear(4, 4))),
    "an orthogonal parametrization": row_of_module(lambda: parametrizations.orthogonal(nn.Linear(4, 4))),
    "a pruned module": row_of_module(pruned),
    "module hooks of every kind": row(with_hooks),
    "a hook that raises and is survived": row(survives_a_hook),
    "`forward` as a generator that the model runs": row_of_module(
        lambda: Uses(Generates(), lambda inner, x: list(inner(x))), "unsupported_argument"
    ),
    "`forward` as a coroutine that the model runs": row_of_module(
        lambda: Uses(Awaits(), lambda inner, x: asyncio.run(inner(x))), "unsupported_argument"
    ),
    "a frozen scripted module": row_of_module(lambda: torch.jit.freeze(torch.jit.script(Inner().eval()))),
    "a scripted module": row_of_module(lambda: torch.jit.script(Inner())),
    "a traced module": row_of_module(lambda: trace(Inner())),
    "a module traced by torch.fx": row_of_module(lambda: torch.fx.symbolic_trace(nn.Sequential(nn.Linear(4, 4)))),
}


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.filterwarnings("ignore")
def test_the_coverage_page_tells_of(name: str) -> None:
    assert_recorded_as_said(ROWS[name])


def called(row_: Row) -> list[str | None]:
    snapshot = recorded(row_.program, row_.make)
    return [path(snapshot, call) for call in snapshot.invocations]


def test_each_call_of_a_shared_module_is_a_call_of_its_own_under_all_its_paths() -> None:
    snapshot = recorded(ROWS["a shared module"].program, ROWS["a shared module"].make)
    assert [path(snapshot, call) for call in snapshot.invocations] == ["", "0", "0", "2", "0"]
    (layer,) = (module for module in snapshot.modules if len(module.paths) == 3)
    assert [registered.path for registered in layer.paths] == ["0", "1", "2.0"]


def test_calls_that_are_entered_again_are_inside_one_another() -> None:
    snapshot = recorded(ROWS["a module that calls itself"].program, ROWS["a module that calls itself"].make)
    outer = [call for call in snapshot.invocations if path(snapshot, call) == ""]
    assert [call.parent for call in outer] == [None, *(call.id for call in outer[:-1])]
    assert [call.exit for call in outer] == sorted((call.exit for call in outer), reverse=True)  # type: ignore[type-var]


def test_a_method_that_is_no_call_leaves_the_module_unobserved_and_its_layers_observed() -> None:
    assert called(ROWS["another method than `forward`"]) == ["", "inner.linear"]
    assert called(ROWS["`module.forward(x)` in place of a call"]) == [""]


def test_a_module_registered_nowhere_has_no_path() -> None:
    assert called(ROWS["a module that is registered nowhere"]) == ["", None]


def test_a_hook_works_inside_the_call_that_it_belongs_to() -> None:
    def program(model: Any, x: torch.Tensor) -> Any:
        handle = model.linear.register_forward_hook(lambda _, __, output: output * 2)
        try:
            return model.linear(x)
        finally:
            handle.remove()

    snapshot = recorded(program)
    doubled = snapshot.operations[-1]
    assert (doubled.target, path(snapshot, doubled.invocation)) == ("aten.mul.Tensor", "linear")
    assert values(snapshot, snapshot.invocations[1].output) == values(snapshot, doubled.output)


def test_parameters_are_counted_once_however_often_they_are_registered() -> None:
    snapshot = tensorviz.capture(tied(), example()).snapshot
    assert snapshot.invocations[0].parameterCount == 16 + 4 + 4
    assert [state.paths[0].path for state in snapshot.state] == ["0.weight", "0.bias", "1.bias"]
    assert [registered.path for registered in snapshot.state[0].paths] == ["0.weight", "1.weight"]
