"""One recorded operation as its operator sees it: arguments by name, and measures of them that know where they stand.

Whatever cannot be read exactly (a symbolic size, an opaque object, a tensor that is not plain) raises Unknown: then
nothing is claimed.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod
from typing import Any, NamedTuple

Json = dict[str, Any]
Path = tuple[str | int, ...]

_PLAIN = frozenset(("torch.Tensor", "torch.nn.parameter.Parameter", "torch.nn.parameter.Buffer"))
_LARGEST = 2**53 - 1
_ARGUMENT = re.compile(r"^(?P<type>\S+) (?P<name>\w+)(=(?P<default>.+))?$", re.DOTALL)


class Unknown(Exception):
    """The records do not say."""


class Measure(NamedTuple):
    """A number, and what was read where to get it."""

    path: Path
    of: str
    number: int
    dim: int | None = None

    def to_json(self) -> Json:
        return {"path": list(self.path), "of": self.of, "dim": self.dim, "number": self.number}


def measure(path: Path, of: str, number: int, dim: int | None = None) -> Measure:
    """Raises Unknown for numbers that no reader could hold exactly, and for those that stand nowhere."""
    if not path or abs(number) > _LARGEST:
        raise Unknown
    return Measure(path, of, number, dim)


class Parameter(NamedTuple):
    type: str
    name: str
    default: str | None


@dataclass(frozen=True)
class Tensor:
    """A tensor among the arguments."""

    path: Path
    shape: tuple[int | str, ...]
    dtype: str
    device: str

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def rank(self) -> Measure:
        return Measure(self.path, "rank", len(self.shape))

    @property
    def sizes(self) -> tuple[int, ...]:
        if any(isinstance(size, str) for size in self.shape):
            raise Unknown
        return tuple(size for size in self.shape if isinstance(size, int))

    @property
    def is_empty(self) -> bool:
        return 0 in self.shape

    @property
    def elements(self) -> Measure:
        return measure(self.path, "elements", prod(self.sizes))

    def size(self, dim: int, of: str = "size", number: int | None = None) -> Measure:
        """The size of a dimension, or ``number`` that was worked out of it."""
        if not -self.ndim <= dim < self.ndim:
            raise Unknown
        dim %= self.ndim
        size = self.shape[dim]
        if isinstance(size, str):
            raise Unknown
        return measure(self.path, of, size if number is None else number, dim)

    def trait(self, of: str) -> Json:
        return {"path": list(self.path), "of": of, "name": self.dtype if of == "dtype" else self.device}


@dataclass(frozen=True)
class Numbers:
    """A list of integers. ``path`` is empty for a default, which stands nowhere in the records."""

    path: Path
    items: tuple[int, ...]

    def at(self, index: int) -> int:
        """The item of a dimension. A list of one speaks for every dimension."""
        if not self.items:
            raise Unknown
        return self.items[0] if len(self.items) == 1 else self.items[index] if index < len(self.items) else _raise()

    def item(self, index: int) -> Measure:
        return measure(self.path and (*self.path, "items", index), "value", self.items[index])


class Call:
    """The arguments of one operation, by the names that its schema declares."""

    def __init__(self, operation: Json, schema: str, values: Sequence[Json]) -> None:
        self.target: str = operation["target"]
        self.base = self.target.split(".")[1] if self.target.count(".") else self.target
        self.parameters = parse_schema(schema)
        self._operation = operation
        self._values = values

    @cached_property
    def _nodes(self) -> dict[str, tuple[Path, Json]]:
        given = dict(enumerate(self._operation["args"]))
        named = {item["name"]: (index, item["value"]) for index, item in enumerate(self._operation["kwargs"])}
        found: dict[str, tuple[Path, Json]] = {}
        for position, parameter in enumerate(self.parameters):
            if position in given:
                found[parameter.name] = (("args", position), given[position])
            elif parameter.name in named:
                index, node = named[parameter.name]
                found[parameter.name] = (("kwargs", index, "value"), node)
        return found

    @property
    def names(self) -> Iterator[str]:
        return (parameter.name for parameter in self.parameters)

    def writes(self, name: str) -> bool:
        return any(parameter.name == name and "!" in parameter.type for parameter in self.parameters)

    def is_given(self, name: str) -> bool:
        return name in self._nodes and self._nodes[name][1]["kind"] != "none"

    def tensor(self, name: str) -> Tensor:
        path, node = self._node(name)
        return self._tensor(path, node)

    def first_tensor(self, name: str) -> Tensor:
        """The tensor of this name, or the first of a list."""
        path, node = self._node(name)
        if node["kind"] == "tensor":
            return self._tensor(path, node)
        items = _items(node)
        return self._tensor((*path, "items", 0), items[0]) if items else _raise()

    def tensors(self, name: str) -> list[Tensor]:
        """The tensors of a list. All of them, or Unknown."""
        path, node = self._node(name)
        return [self._tensor((*path, "items", index), item) for index, item in enumerate(_items(node))]

    def optional_tensors(self, name: str) -> list[Tensor | None]:
        """As ``tensors``, with None where the list has none."""
        path, node = self._node(name)
        return [
            None if item["kind"] == "none" else self._tensor((*path, "items", index), item)
            for index, item in enumerate(_items(node))
        ]

    def operands(self) -> list[Tensor]:
        """Every tensor that is an argument of its own, but for those that only receive a result."""
        found = []
        for position, parameter in enumerate(self.parameters):
            if not parameter.type.startswith("Tensor") or not self.is_given(parameter.name):
                continue
            if "!" in parameter.type and position > 0:
                continue
            found.append(self.tensor(parameter.name))
        return found

    def integer(self, name: str) -> int:
        if name in self._nodes:
            return _integer(self._nodes[name][1])
        default = self._default(name)
        return int(default) if re.fullmatch(r"-?\d+", default) else _raise()

    def literal(self, name: str) -> Measure:
        """An integer that was written out in the call."""
        path, node = self._node(name)
        return measure(path, "value", _integer(node))

    def integers(self, name: str) -> Numbers:
        """A list of integers, or the one that stands for a list."""
        if name not in self._nodes:
            return Numbers((), _default_list(self._default(name)))
        path, node = self._nodes[name]
        if node["kind"] == "int":
            return Numbers((), (_integer(node),))
        return Numbers(path, tuple(_integer(item) for item in _items(node)))

    def flag(self, name: str) -> bool:
        if name in self._nodes:
            node = self._nodes[name][1]
            return node["value"] if node["kind"] == "bool" else _raise()
        return {"True": True, "False": False}.get(self._default(name), False)

    def _default(self, name: str) -> str:
        for parameter in self.parameters:
            if parameter.name == name and parameter.default is not None:
                return parameter.default
        raise Unknown

    def _node(self, name: str) -> tuple[Path, Json]:
        if not self.is_given(name):
            raise Unknown
        return self._nodes[name]

    def _tensor(self, path: Path, node: Json) -> Tensor:
        if node["kind"] != "tensor":
            raise Unknown
        value = self._value(node)
        return Tensor(path, tuple(value["shape"]), value["dtype"], value["device"])

    def _value(self, node: Json) -> Json:
        return self._values[int(node["value"][1:])]

    @property
    def is_plain(self) -> bool:
        """Whether the operator itself sees these tensors: no subclass answers for it, and none lacks its memory."""
        tops = [*self._operation["args"], *(item["value"] for item in self._operation["kwargs"])]
        nodes = [node for top in tops for node in (top, *top.get("items", ()))]
        values = (self._value(node) for node in nodes if node["kind"] == "tensor")
        return all(
            value["type"] in _PLAIN and value["layout"] == "torch.strided" and value["device"] != "meta"
            for value in values
        )


def _raise() -> Any:
    raise Unknown


def _items(node: Json) -> list[Json]:
    if node["kind"] not in ("list", "tuple"):
        raise Unknown
    return node["items"]


def _integer(node: Json) -> int:
    if node["kind"] != "int":
        raise Unknown
    return int(node["value"])


def _default_list(text: str) -> tuple[int, ...]:
    found = re.findall(r"-?\d+", text)
    return tuple(map(int, found))


@lru_cache(maxsize=4096)
def parse_schema(schema: str) -> tuple[Parameter, ...]:
    """The parameters of ``aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor``, in order."""
    start = schema.find("(")
    parts, depth, begin = [], 0, start + 1
    for index in range(max(start, 0), len(schema)):
        letter = schema[index]
        depth += (letter in "([") - (letter in ")]")
        if (letter == "," and depth == 1) or (letter == ")" and depth == 0):
            parts.append(schema[begin:index].strip())
            begin = index + 1
            if depth == 0:
                break
    matches = [_ARGUMENT.match(_without_aliases(part)) for part in parts if part != "*"]
    return tuple(Parameter(match["type"], match["name"], match["default"]) for match in matches if match)


def _without_aliases(part: str) -> str:
    """``Tensor(a -> *) self`` has a space inside its type."""
    return re.sub(r"\(([^)]*)\)", lambda inside: f"({inside[1].replace(' ', '')})", part, count=1)
