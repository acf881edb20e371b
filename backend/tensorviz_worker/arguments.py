"""Encodes everything that a dispatcher or module call can carry as the contract's typed tree, straight to JSON text.

Nothing of the user's is called: containers are read through the built-in methods of their base class, dataclasses
through their instance dictionary or slots, and an object that is none of these is opaque, by type name alone.
"""

import contextlib
import enum
from collections import OrderedDict
from collections.abc import Callable, Iterator
from types import GetSetDescriptorType, MemberDescriptorType
from typing import Any

import torch
from torch import Tensor

from tensorviz_worker.journal import quote
from tensorviz_worker.tensors import type_name

NONE = '{"kind":"none"}'
_MAX_LEVEL = 56
"""JSON containers inside one another, so that a whole capture stays below the contract's 64."""
_MAX_INT_BITS = 13_000
_MAX_KNOWN = 4096
_ONLY_INTS = {int}
_PROFILER_RANGE = "__torch__.torch.classes.profiler._RecordFunction"
_TORCH_KINDS: "dict[type, str]" = {
    torch.dtype: "dtype",
    torch.device: "device",
    torch.layout: "layout",
    torch.memory_format: "memory_format",
}
_SYMBOLS: "dict[type, str]" = {torch.SymInt: "int", torch.SymFloat: "float", torch.SymBool: "bool"}


def to_float(number: float) -> str:
    """The contract's float text: shortest round-trip digits, ``nan``, ``inf``, ``-inf``; ``-0`` is not 0."""
    text = float.__repr__(number)
    return "-0" if text == "-0.0" else text


def opaque(kind: type, reason: str) -> str:
    return f'{{"kind":"opaque","type":{quote(type_name(kind))},"reason":"{reason}"}}'


class ArgumentEncoder:
    """``reference(tensor, path)`` gives the encoded tensor argument; ``path`` is where in the tree it was met.

    ``scalars`` encode what has no parts, by the ``id()`` of its exact type: a class may have no hash.
    """

    def __init__(self, reference: "Callable[[Tensor, str], str]", depth: int, items: int, text: int) -> None:
        self._reference = reference
        self._depth = depth
        self._max_items = items
        self._max_text = text
        self._items = 0
        self._open: list[int] = []
        self._known_integers: dict[tuple[int, ...], str] = {}
        scalars: dict[type, Callable[[Any], str]] = {
            type(None): lambda _: NONE,
            bool: lambda value: '{"kind":"bool","value":true}' if value else '{"kind":"bool","value":false}',
            int: self._int,
            float: lambda value: f'{{"kind":"float","value":"{to_float(value)}"}}',
            complex: lambda value: (
                f'{{"kind":"complex","real":"{to_float(value.real)}","imag":"{to_float(value.imag)}"}}'
            ),
            str: self._str,
            type(Ellipsis): lambda _: '{"kind":"ellipsis"}',
            torch.Generator: lambda value: f'{{"kind":"generator","device":{quote(str(value.device))}}}',
            **dict.fromkeys(_SYMBOLS, self._symbol),
            **dict.fromkeys(_TORCH_KINDS, self._torch),
        }
        self.scalars = {id(kind): encode for kind, encode in scalars.items()}

    def encode(self, value: Any, path: str) -> str:
        """The tree of one argument or result that sits at ``path``."""
        if _is(value, Tensor):
            return self._reference(value, path)
        scalar = self.scalars.get(id(type(value)))
        if scalar is not None:
            return scalar(value)
        if type(value) is list and value and len(value) < self._max_items and {*map(type, value)} == _ONLY_INTS:
            return self._integers(value)
        self._items = 0
        self._open.clear()
        return self._node(value, path, 0, 2)

    def _integers(self, value: "list[int]") -> str:
        """Sizes and dimensions: few, short, and met again and again."""
        key = tuple(value)
        text = self._known_integers.get(key)
        if text is None:
            text = f'{{"kind":"list","items":[{",".join(map(self._int, value))}]}}'
            if len(key) < 16 and len(self._known_integers) < _MAX_KNOWN:
                self._known_integers[key] = text
        return text

    def _node(self, value: Any, path: str, depth: int, level: int) -> str:
        self._items += 1
        if self._items > self._max_items:
            return opaque(type(value), "item_limit")
        if _is(value, Tensor):
            return self._reference(value, path)
        kind = type(value)
        scalar = self.scalars.get(id(kind))
        if scalar is not None:
            return scalar(value)
        if (
            (kind is tuple or kind is list)
            and depth < self._depth
            and level < _MAX_LEVEL
            and id(value) not in self._open
        ):
            return self._bare(value, path, depth, level)
        if _is(value, enum.Enum):
            return f'{{"kind":"enum","type":{quote(type_name(kind))},"name":{quote(_enum_name(value))}}}'
        if _is(value, torch.ScriptObject) and value._type().qualified_name() == _PROFILER_RANGE:
            return '{"kind":"record_function"}'
        reader = self._reader(value)
        if reader is None:
            return self._subclassed_scalar(value) or opaque(kind, "unsupported_type")
        if id(value) in self._open:
            return opaque(kind, "cycle")
        if depth >= self._depth or level >= _MAX_LEVEL:
            return opaque(kind, "depth_limit")
        if self._items + _stored_length(value) > self._max_items:
            return opaque(kind, "item_limit")
        self._open.append(id(value))
        try:
            return reader(value, path, depth + 1, level)
        finally:
            self._open.pop()

    def _reader(self, value: Any) -> "Callable[[Any, str, int, int], str] | None":
        if _is(value, tuple):
            return self._namedtuple if _field_names(value) is not None else self._sequence
        if _is(value, list):
            return self._sequence
        if _is(value, dict):
            return self._dict
        if _is(value, slice):
            return self._slice
        return self._dataclass if _stored_fields(value) is not None else None

    def _sequence(self, value: Any, path: str, depth: int, level: int) -> str:
        kind = "tuple" if _is(value, tuple) else "list"
        if type(value) not in (list, tuple, torch.Size) and not _is_structseq(value):
            return opaque(type(value), "unsupported_type")
        return f'{{"kind":"{kind}","items":[{self._items_of(value, path, depth, level)}]}}'

    def _bare(self, value: Any, path: str, depth: int, level: int) -> str:
        """A tuple or list of no subclass: what most results are."""
        kind = type(value)
        if self._items + len(value) > self._max_items:
            return opaque(kind, "item_limit")
        self._open.append(id(value))
        inside = f'{path},"items",' if path else '"items",'
        try:
            items = [self._node(item, f"{inside}{index}", depth + 1, level + 2) for index, item in enumerate(value)]
        finally:
            self._open.pop()
        return f'{{"kind":"{kind.__name__}","items":[{",".join(items)}]}}'

    def _items_of(self, value: Any, path: str, depth: int, level: int) -> str:
        stored = tuple.__iter__(value) if _is(value, tuple) else list.__iter__(value)
        inside = f'{path},"items",' if path else '"items",'
        return ",".join([self._node(item, f"{inside}{index}", depth, level + 2) for index, item in enumerate(stored)])

    def _namedtuple(self, value: Any, path: str, depth: int, level: int) -> str:
        fields = ",".join(quote(name) for name in _field_names(value) or ())
        items = self._items_of(value, path, depth, level)
        return f'{{"kind":"namedtuple","type":{quote(type_name(type(value)))},"fields":[{fields}],"items":[{items}]}}'

    def _dict(self, value: Any, path: str, depth: int, level: int) -> str:
        entries = []
        for index, (key, item) in enumerate(_stored_items(value)):
            at = _inside(path, f'"entries",{index}')
            key_text = self._node(key, at + ',"key"', depth, level + 3)
            item_text = self._node(item, at + ',"value"', depth, level + 3)
            entries.append(f'{{"key":{key_text},"value":{item_text}}}')
        name = "null" if type(value) is dict else quote(type_name(type(value)))
        return f'{{"kind":"dict","type":{name},"entries":[{",".join(entries)}]}}'

    def _dataclass(self, value: Any, path: str, depth: int, level: int) -> str:
        fields = []
        for index, (name, item) in enumerate((_stored_fields(value) or {}).items()):
            at = _inside(path, f'"fields",{index},"value"')
            text = self._node(item, at, depth, level + 3)
            fields.append(f'{{"name":{quote(name)},"value":{text}}}')
        return f'{{"kind":"dataclass","type":{quote(type_name(type(value)))},"fields":[{",".join(fields)}]}}'

    def _slice(self, value: slice, path: str, depth: int, level: int) -> str:
        parts = []
        for name in ("start", "stop", "step"):
            text = self._node(getattr(value, name), _inside(path, quote(name)), depth, level + 1)
            parts.append(f"{quote(name)}:{text}")
        return '{"kind":"slice",' + ",".join(parts) + "}"

    def _int(self, value: int) -> str:
        if int.bit_length(value) > _MAX_INT_BITS:
            return opaque(int, "text_limit")
        return f'{{"kind":"int","value":"{int.__repr__(value)}"}}'

    def _str(self, value: str) -> str:
        if len(value) > self._max_text:
            return opaque(str, "text_limit")
        if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
            return opaque(str, "unsupported_type")  # half of a surrogate pair has no UTF-8 form
        return f'{{"kind":"string","value":{quote(value)}}}'

    def _symbol(self, value: Any) -> str:
        text = str(value)[: self._max_text]
        return f'{{"kind":"symbolic","type":"{_SYMBOLS[type(value)]}","expression":{quote(text)}}}'

    def _torch(self, value: Any) -> str:
        return f'{{"kind":"{_TORCH_KINDS[type(value)]}","value":{quote(str(value))}}}'

    def _subclassed_scalar(self, value: Any) -> "str | None":
        """An int, float or str of a subclass, such as numpy's float64, is that number to the dispatcher."""
        if _is(value, int):
            return self._int(int.__int__(value))
        if _is(value, float):
            return f'{{"kind":"float","value":"{to_float(float.__float__(value))}"}}'
        return self._str(str.__str__(value)) if _is(value, str) else None


def _inside(path: str, step: str) -> str:
    return f"{path},{step}" if path else step


def _is(value: Any, kind: type) -> bool:
    """By the class of an object, not by what it says of its class, as a proxy or a mock does."""
    return issubclass(type(value), kind)


def _stored_length(value: Any) -> int:
    if _is(value, list):
        return list.__len__(value)
    if _is(value, tuple):
        return tuple.__len__(value)
    return dict.__len__(value) if _is(value, dict) else 0


def _enum_name(value: enum.Enum) -> str:
    return str(value.__dict__.get("_name_") or value.__dict__.get("_value_"))[:1024] or "?"


def _field_names(value: Any) -> "tuple[str, ...] | None":
    """A named tuple's fields. torch's return types, such as ``torch.return_types.max``, have fields too."""
    if type(value) is tuple:
        return None
    names = _class_attribute(type(value), "_fields")
    if isinstance(names, tuple) and len(names) == tuple.__len__(value) and all(type(name) is str for name in names):
        return names
    return _structseq_names(value)


def _class_attribute(kind: type, name: str) -> Any:
    """What a class or a base of it stores under a name, past any code that a metaclass may have for that."""
    for base in type.__dict__["__mro__"].__get__(kind):
        stored = type.__getattribute__(base, "__dict__")
        if name in stored:
            return stored[name]
    return None


def _is_structseq(value: Any) -> bool:
    return _class_attribute(type(value), "n_sequence_fields") is not None


def _structseq_names(value: Any) -> "tuple[str, ...] | None":
    if not _is_structseq(value):
        return None
    names = _class_attribute(type(value), "__match_args__")
    return names if isinstance(names, tuple) and len(names) == tuple.__len__(value) else None


def _stored_items(value: "dict[Any, Any]") -> "Iterator[tuple[Any, Any]]":
    """The entries in a dict's own storage, without calling a method that a subclass may have overridden."""
    if _is(value, OrderedDict):
        ordered: Any = value
        return ((key, dict.__getitem__(value, key)) for key in OrderedDict.__iter__(ordered))
    return iter(dict.items(value))


def _stored_fields(value: Any) -> "dict[str, Any] | None":
    """What a dataclass stores for its fields, in a dictionary or in slots; a field that is not set is left out."""
    fields = _class_attribute(type(value), "__dataclass_fields__")
    if not isinstance(fields, dict):
        return None
    dictionary = _class_attribute(type(value), "__dict__")
    if dictionary is not None and type(dictionary) is not GetSetDescriptorType:
        return None  # code of the program's own
    stored = {} if dictionary is None else object.__getattribute__(value, "__dict__")
    found = {}
    for name in fields:
        slot = _class_attribute(type(value), name)
        if name in stored:
            found[name] = stored[name]
        elif type(slot) is MemberDescriptorType:
            with contextlib.suppress(AttributeError):
                found[name] = slot.__get__(value)
    return found
