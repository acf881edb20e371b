"""The facts of one tensor, read without dispatching anything and without touching its elements."""

from typing import Any

import torch
from torch import Tensor
from torch._C._functorch import is_functorch_wrapped_tensor
from torch.nn.parameter import UninitializedTensorMixin  # pyright: ignore[reportAttributeAccessIssue]

from tensorviz_worker.journal import quote, to_json

untyped_storage = torch._C.TensorBase.untyped_storage
_strided = torch.strided
_NUMBERS = (int, torch.SymInt)
PLAIN = frozenset((Tensor, torch.nn.Parameter))
"""The types that have no code of their own behind their attributes."""
_MODULE, _NAME = type.__dict__["__module__"], type.__dict__["__qualname__"]
_Base: Any = torch._C.TensorBase
"""Whose attributes a subclass cannot put its own code in front of."""
REFUSALS = (RuntimeError, TypeError, AttributeError, ValueError)
"""How torch and its subclasses refuse to tell; what else is raised while we read came from outside, as by a signal."""
_MAX_SIZE = 2**53 - 1
_MAX_TEXTS = 4096
_texts: "dict[Any, str]" = {}
"""Encoded facts by what they say: a model has a few dozen kinds of tensors and thousands of values."""

Reading = tuple[str, Any, "int | None", bool, bool, bool, Any]
"""Encoded facts that a version does not change, storage object or None, version, requires_grad, fake, plain, shape.

A plain tensor has no code of its own behind its attributes, and a version. A bare tuple: one is made for every value.
"""


class Unreadable(Exception):
    """The tensor's metadata cannot be read here, as that of a functorch wrapper inside a transform."""


def type_name(kind: type) -> str:
    """``module.QualifiedName`` of a class, as text that a contract name can hold."""
    module = type.__getattribute__(kind, "__dict__").get("__module__", _MODULE.__get__(kind))
    name = f"{module if isinstance(module, str) else '?'}.{_NAME.__get__(kind)}"  # whatever a metaclass says
    return name.encode("utf-8", "replace").decode()[:1024]


def is_fake(tensor: Tensor) -> bool:
    return isinstance(tensor, torch._subclasses.FakeTensor)


def counters(tensor: Tensor) -> "tuple[int | None, bool]":
    """PyTorch's version counter and ``requires_grad``. Inference tensors have no version, and say so by raising."""
    with torch._C.DisableTorchFunctionSubclass():
        return _version(tensor), _Base.requires_grad.__get__(tensor)


def _version(tensor: Tensor) -> "int | None":
    try:
        return _Base._version.__get__(tensor)
    except (RuntimeError, NotImplementedError):
        return None


def read(tensor: Tensor) -> Reading:
    """Raises Unreadable. The caller has paused its dispatch mode: some subclasses dispatch on attribute reads."""
    kind = type(tensor)
    try:
        if is_functorch_wrapped_tensor(tensor):
            raise Unreadable
        if kind not in PLAIN:
            return _read_subclass(tensor, kind)
        shape, layout = tensor.shape, tensor.layout
        if layout is not _strided or tensor.is_nested:
            return _read(tensor, kind, False)
        stride, offset = tensor.stride(), tensor.storage_offset()
        key = (kind, shape, stride, offset, tensor.dtype, tensor.device, layout)
        text = _texts.get(key) or _learn(key, tensor)
        return text, untyped_storage(tensor), tensor._version, tensor.requires_grad, False, True, shape
    except REFUSALS:  # an inference tensor, symbolic sizes, no storage: what is rare is read with more care
        return _read_carefully(tensor, kind)


def _read_carefully(tensor: Tensor, kind: type) -> Reading:
    try:
        with torch._C.DisableTorchFunctionSubclass():
            return _read(tensor, kind, False)
    except REFUSALS as error:
        raise Unreadable from error


def _read_subclass(tensor: Tensor, kind: type) -> Reading:
    if issubclass(kind, UninitializedTensorMixin):  # its sizes are not its own yet
        raise Unreadable
    with torch._C.DisableTorchFunctionSubclass():
        fake = is_fake(tensor)
        return _read(tensor, _twin(tensor) if fake else kind, fake)


def _read(tensor: Tensor, kind: type, fake: bool) -> Reading:
    nested, layout = _Base.is_nested.__get__(tensor), _Base.layout.__get__(tensor)
    strided = layout is _strided and not nested
    shape = _sizes(tensor) if nested and layout is _strided else _Base.shape.__get__(tensor)
    stride, offset = (_Base.stride(tensor), _Base.storage_offset(tensor)) if strided else (None, None)
    place, version = storage(tensor) if strided else None, _version(tensor)
    device: Any = tensor.device if fake else _Base.device.__get__(tensor)  # a fake tensor says for which it stands
    text = _text(tensor, (kind, shape, stride, offset, _Base.dtype.__get__(tensor), device, layout))
    plain = kind is type(tensor) and kind in PLAIN and version is not None and not nested
    return text, place, version, _Base.requires_grad.__get__(tensor), fake, plain, shape


def _sizes(tensor: Tensor) -> "tuple[Any, ...]":
    """Of a nested tensor that is not jagged, the sizes that it has; it refuses to tell the others."""
    sizes: list[Any] = []
    for dimension in range(_Base.dim(tensor)):
        try:
            sizes.append(_Base.size(tensor, dimension))
        except RuntimeError:
            sizes.append("*")
    return tuple(sizes)


def _text(tensor: Tensor, key: "tuple[Any, ...]") -> str:
    try:
        return _texts.get(key) or _learn(key, tensor)
    except TypeError:  # a symbolic size has no hash
        return _describe(tensor, key)


def _learn(key: "tuple[Any, ...]", tensor: Tensor) -> str:
    if len(_texts) >= _MAX_TEXTS:
        _texts.clear()
    text = _texts[key] = _describe(tensor, key)
    return text


def _describe(tensor: Tensor, key: "tuple[Any, ...]") -> str:
    kind, shape, stride, offset, dtype, device, layout = key
    text = (
        f'"type":{quote(type_name(kind))},"shape":{_dimensions(shape)},'
        f'"strides":{"null" if stride is None else _dimensions(stride)},'
        f'"storageOffset":{"null" if offset is None else _dimension(offset)},'
        f'"dtype":{quote(str(dtype))},"device":{quote(str(device))},"layout":{quote(str(layout))}'
    )
    count = _count(shape)
    size = None if count is None or stride is None else count * _Base.element_size(tensor)
    return text if size is None or size > _MAX_SIZE else f'{text},"logicalBytes":{size}'


def _twin(tensor: Tensor) -> type:
    """A fake tensor stands for the real one of the same program."""
    return torch.nn.Parameter if isinstance(tensor, torch.nn.Parameter) else Tensor


def storage(tensor: Tensor) -> Any:
    """The storage object, one per storage; None for a tensor that has none."""
    try:
        return untyped_storage(tensor)
    except (RuntimeError, NotImplementedError):
        return None


def _count(shape: "tuple[Any, ...]") -> "int | None":
    total = 1
    for size in shape:
        if type(size) is not int:
            return None
        total *= size
    return total


def _dimensions(sizes: Any) -> str:
    return "[" + ",".join(map(_dimension, sizes)) + "]"


def _dimension(size: Any) -> str:
    if type(size) is int:
        return int.__repr__(size) if -_MAX_SIZE <= size <= _MAX_SIZE else f'"{size:+d}"'
    if isinstance(size, str):
        return '"*"'
    if not isinstance(size, _NUMBERS):
        raise Unreadable
    return quote(str(size)[:256]) if isinstance(size, torch.SymInt) else to_json(int(size))
