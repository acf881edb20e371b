"""Whatever an argument can be: how it is recorded, and which kinds are named by their type alone."""

import collections
import dataclasses
import decimal
import enum
import functools
import pathlib
import types
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import nn
from transformers.modeling_outputs import BaseModelOutput

import tensorviz
from tensorviz.contracts.arguments import Argument, OpaqueArgument, TensorArgument
from tensorviz.contracts.base import encode
from tensorviz.contracts.capture import CaptureSnapshot, Limits
from tensorviz.contracts.validate import parse_capture

from .reading import leaves


class Takes(nn.Module):
    def forward(self, x: torch.Tensor, argument: Any) -> Any:
        return x + 1, argument


class Pair(NamedTuple):
    first: Any
    second: int


@dataclasses.dataclass(frozen=True)
class Frozen:
    inside: torch.Tensor
    size: int = 1


@dataclasses.dataclass(frozen=True)
class HoldsMore(Frozen):
    def __post_init__(self) -> None:
        object.__setattr__(self, "computed", 3)


class Ordered(collections.OrderedDict):
    pass


class Attributes(dict):
    __getattr__ = dict.__getitem__


class Lying(dict):
    def refuse(self, *_: Any) -> Any:
        raise RuntimeError("do not call me")

    items = keys = values = __iter__ = __len__ = __getitem__ = __repr__ = __eq__ = refuse
    __hash__ = None


class Number(int):
    def __repr__(self) -> str:
        raise RuntimeError("do not call me")

    __int__ = __index__ = __str__ = __repr__  # type: ignore[assignment]


class Word(str):
    __slots__ = ()


class Side(enum.IntEnum):
    LEFT = 1


class Flags(enum.Flag):
    A = 1
    B = 2


class Named(str, enum.Enum):
    ONE = "one"


class Proxy:
    __class__ = property(lambda self: 1 / 0)  # type: ignore[assignment]


class ListOf(list):
    pass


x = torch.ones(2)


def cycle() -> list[Any]:
    tree: list[Any] = [x]
    tree.append(tree)
    return tree


def nested(depth: int) -> Any:
    return functools.reduce(lambda tree, _: [tree], range(depth), x)


READ: dict[str, tuple[Callable[[], Any], str]] = {
    "`None`, `True`, `...`": (lambda: [None, True, False, ...], "[none, bool true, bool false, ellipsis]"),
    "integers of any size": (lambda: [0, -3, 2**53 + 1, 10**400], f"[int 0, int -3, int {2**53 + 1}, int {10**400}]"),
    "floats, `nan`, `inf`, `-0.0`": (
        lambda: [1.0, 0.1, float("nan"), float("-inf"), -0.0, 0.0, 1e-320],
        "[float 1.0, float 0.1, float nan, float -inf, float -0, float 0.0, float 1e-320]",
    ),
    "complex numbers": (lambda: complex(float("nan"), -0.0), "complex nan -0"),
    "strings": (lambda: ["", "é\n\x00𝄞"], "[string , string é\n\x00𝄞]"),
    "numbers and strings of a subclass": (
        lambda: [Number(3), Word("a"), np.float64(1.5)],
        "[int 3, string a, float 1.5]",
    ),
    "dtypes, devices, layouts, memory formats": (
        lambda: [torch.float32, torch.device("cuda:1"), torch.strided, torch.channels_last],
        "[dtype torch.float32, device cuda:1, layout torch.strided, memory_format torch.channels_last]",
    ),
    "generators of random numbers": (lambda: torch.Generator(), "generator cpu"),
    "`torch.Size`": (lambda: torch.Size([2, 3]), "(int 2, int 3)"),
    "slices": (lambda: slice(1, None, x), "slice(int 1, none, tensor)"),
    "lists and tuples, repeated references": (lambda: [x, (x, [x]), ()], "[tensor, (tensor, [tensor]), ()]"),
    "named tuples": (lambda: Pair(x, 2), "Pair(first=tensor, second=int 2)"),
    "torch's result types": (lambda: torch.max(x, 0), "max(values=tensor, indices=tensor)"),
    "dicts, with keys of any kind": (
        lambda: {1: x, "a": 1, (1, 2): None, None: x, 1.5: x},
        "{int 1: tensor, string a: int 1, (int 1, int 2): none, none: tensor, float 1.5: tensor}",
    ),
    "dict subclasses, read from their storage": (
        lambda: [Ordered(a=x, b=1), Attributes(a=x), Lying(a=x)],
        "[Ordered{string a: tensor, string b: int 1}, Attributes{string a: tensor}, Lying{string a: tensor}]",
    ),
    "`ModelOutput` of transformers": (
        lambda: BaseModelOutput(last_hidden_state=x),
        "BaseModelOutput{string last_hidden_state: tensor}",
    ),
    "dataclasses, frozen and inherited": (
        lambda: [Frozen(x), HoldsMore(x, 2)],
        "[Frozen(inside=tensor, size=int 1), HoldsMore(inside=tensor, size=int 2)]",
    ),
    "enumerations": (
        lambda: [Side.LEFT, Flags.A | Flags.B, Named.ONE],
        "[Side.LEFT, Flags.A|B, Named.ONE]",
    ),
}
"""How each is recorded, in the shorthand of ``shown``."""

NAMED_ONLY: dict[str, tuple[Callable[[], Any], str, str]] = {
    "an object": (object, "<object unsupported_type>", "unsupported_argument"),
    "an object that hides its class": (Proxy, "<Proxy unsupported_type>", "unsupported_argument"),
    "classes, modules, operators": (
        lambda: [int, nn.Identity(), torch.ops.aten.sin.default],
        "[<type unsupported_type>, <Identity unsupported_type>, <OpOverload unsupported_type>]",
        "unsupported_argument",
    ),
    "iterators and generators": (lambda: iter([x]), "<list_iterator unsupported_type>", "unsupported_argument"),
    "list subclasses": (lambda: ListOf([x]), "<ListOf unsupported_type>", "unsupported_argument"),
    "NumPy arrays": (lambda: np.ones(2), "<ndarray unsupported_type>", "unsupported_argument"),
    "bytes, decimals, paths, namespaces": (
        lambda: [b"a", decimal.Decimal(1), types.SimpleNamespace(a=x)],
        "[<bytes unsupported_type>, <Decimal unsupported_type>, <SimpleNamespace unsupported_type>]",
        "unsupported_argument",
    ),
    "half of a surrogate pair": (lambda: "\ud800", "<str unsupported_type>", "unsupported_argument"),
    "a container that contains itself": (cycle, "[tensor, <list cycle>]", "unsupported_argument"),
    "containers deeper than the limit": (lambda: nested(9), "[" * 8 + "<list depth_limit>" + "]" * 8, "argument_limit"),
    "more items than the limit": (lambda: [x, [0] * 99], "[tensor, <list item_limit>]", "argument_limit"),
    "text longer than the limit": (lambda: ["a" * 99, 1], "[<str text_limit>, int 1]", "argument_limit"),
    "integers longer than a number is kept": (lambda: 10**4500, "<int text_limit>", "argument_limit"),
}
"""How each is recorded, and the reason why the capture is partial."""


def shown(tree: Argument) -> str:
    """A short form of an argument tree."""
    node = tree.model_dump()
    kind = node["kind"]
    name = str(node.get("type")).rpartition(".")[2]
    many = [shown(item) for item in getattr(tree, "items", ())]
    match kind:
        case "list":
            return f"[{', '.join(many)}]"
        case "tuple":
            return f"({', '.join(many)})"
        case "namedtuple":
            return f"{name}({', '.join(f'{field}={item}' for field, item in zip(node['fields'], many, strict=True))})"
        case "dict":
            entries = ", ".join(f"{shown(entry.key)}: {shown(entry.value)}" for entry in tree.entries)  # type: ignore[union-attr]
            return f"{'' if node['type'] is None else name}{{{entries}}}"
        case "dataclass":
            return f"{name}({', '.join(f'{field.name}={shown(field.value)}' for field in tree.fields)})"  # type: ignore[union-attr]
        case "slice":
            return f"slice({shown(tree.start)}, {shown(tree.stop)}, {shown(tree.step)})"  # type: ignore[union-attr]
        case "enum":
            return f"{name}.{node['name']}"
        case "opaque":
            return f"<{name} {node['reason']}>"
        case "tensor" | "none" | "ellipsis":
            return kind
        case _:
            return " ".join(
                [kind, *(str(v).lower() if v in (True, False) else str(v) for k, v in node.items() if k != "kind")]
            )


def captured(argument: Any) -> CaptureSnapshot:
    limits = Limits(argumentDepth=8, argumentItems=50, text=64)
    run = tensorviz.capture(Takes(), torch.ones(2), argument, limits=limits)
    assert run.result[1] is argument
    assert parse_capture(encode(run.snapshot)) == run.snapshot
    return run.snapshot


@pytest.mark.parametrize("name", READ)
def test_recorded_in_full_are(name: str) -> None:
    make, expected = READ[name]
    snapshot = captured(make())
    assert shown(snapshot.invocations[0].args[1]) == expected
    assert snapshot.status == "complete"


@pytest.mark.parametrize("name", NAMED_ONLY)
def test_recorded_by_type_alone_are(name: str) -> None:
    make, expected, reason = NAMED_ONLY[name]
    snapshot = captured(make())
    assert shown(snapshot.invocations[0].args[1]) == expected
    assert {found.code for found in snapshot.reasons} == {reason}


def test_a_tensor_that_is_met_twice_is_one_value() -> None:
    (root,) = captured([x, {"again": x}]).invocations
    references = [leaf.value for leaf in leaves(root.args[1]) if isinstance(leaf, TensorArgument)]
    assert len(references) == 2
    assert len(set(references)) == 1


def test_an_opaque_argument_tells_its_type_and_never_what_it_says_of_itself() -> None:
    snapshot = captured(pathlib.PurePosixPath("/secret/place"))
    (argument,) = leaves(snapshot.invocations[0].args[1])
    assert isinstance(argument, OpaqueArgument)
    assert b"secret" not in encode(snapshot)


def test_keyword_arguments_keep_their_names_and_their_order() -> None:
    class Keywords(nn.Module):
        def forward(self, **arguments: Any) -> torch.Tensor:
            return arguments["z"] + arguments["a"]

    (root,) = tensorviz.capture(Keywords(), z=x, a=1).snapshot.invocations
    assert [(item.name, item.value.kind) for item in root.kwargs] == [("z", "tensor"), ("a", "int")]
