"""The facts of one tensor, read without dispatching anything and without touching its elements."""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch._C._functorch import is_functorch_wrapped_tensor

from tensorviz_worker.journal import quote, to_json

_untyped_storage = torch._C.TensorBase.untyped_storage
_NUMBERS = (int, torch.SymInt)
_PLAIN = (Tensor, torch.nn.Parameter)
_MAX_TEXTS = 4096
_texts: "dict[Any, str]" = {}
"""Encoded facts by what they say: a model has a few dozen kinds of tensors and thousands of values."""


class Unreadable(Exception):
    """The tensor's metadata cannot be read here, as that of a functorch wrapper inside a transform."""


class Facts(NamedTuple):
    """``text`` is the encoded part that a version does not change; ``storage`` the storage object or None.

    ``plain`` tensors have no code of their own behind their attributes, and a version.
    """

    text: str
    storage: Any
    version: "int | None"
    requires_grad: bool
    fake: bool
    plain: bool
    shape: Any


def type_name(kind: type) -> str:
    """``module.QualifiedName`` of a class, as text that a contract name can hold."""
    name = f"{getattr(kind, '__module__', '?')}.{getattr(kind, '__qualname__', kind.__name__)}"
    return name.encode("utf-8", "replace").decode()[:1024] or "?"


def is_fake(tensor: Tensor) -> bool:
    return isinstance(tensor, torch._subclasses.FakeTensor)


def counters(tensor: Tensor) -> "tuple[int | None, bool]":
    """PyTorch's version counter and ``requires_grad``. Inference tensors have no version, and say so by raising."""
    if type(tensor) not in _PLAIN:
        with torch._C.DisableTorchFunctionSubclass():
            return _version(tensor), tensor.requires_grad
    return _version(tensor), tensor.requires_grad


def _version(tensor: Tensor) -> "int | None":
    try:
        return tensor._version
    except (RuntimeError, NotImplementedError):
        return None


def read(tensor: Tensor) -> Facts:
    """Raises Unreadable. The caller has paused its dispatch mode: some subclasses dispatch on attribute reads."""
    try:
        if is_functorch_wrapped_tensor(tensor):
            raise Unreadable
        if type(tensor) in _PLAIN:
            return _read(tensor)
        with torch._C.DisableTorchFunctionSubclass():
            return _read(tensor)
    except Unreadable:
        raise
    except Exception as error:
        raise Unreadable from error


def _read(tensor: Tensor) -> Facts:
    strided = tensor.layout is torch.strided and not tensor.is_nested
    stride, offset = (tensor.stride(), tensor.storage_offset()) if strided else (None, None)
    kind = _type_of(tensor)
    key = (kind, tensor.shape, stride, offset, tensor.dtype, tensor.device, tensor.layout)
    try:
        text = _texts.get(key)
    except TypeError:  # a symbolic size has no hash
        text = _describe(tensor, kind, stride, offset)
    if text is None:
        if len(_texts) >= _MAX_TEXTS:
            _texts.clear()
        text = _texts[key] = _describe(tensor, kind, stride, offset)
    place, version = storage(tensor) if strided else None, _version(tensor)
    plain = version is not None and type(tensor) in _PLAIN
    return Facts(text, place, version, tensor.requires_grad, is_fake(tensor), plain, tensor.shape)


def _describe(tensor: Tensor, kind: type, stride: Any, offset: Any) -> str:
    shape = tuple(tensor.shape)
    text = (
        f'"type":{quote(type_name(kind))},"shape":{_dimensions(shape)},'
        f'"strides":{"null" if stride is None else _dimensions(stride)},'
        f'"storageOffset":{"null" if offset is None else _dimension(offset)},'
        f'"dtype":{quote(str(tensor.dtype))},"device":{quote(str(tensor.device))},"layout":{quote(str(tensor.layout))}'
    )
    count = _count(shape)
    if count is not None and stride is not None:
        text += f',"logicalBytes":{count * tensor.element_size()}'
    return text


def _type_of(tensor: Tensor) -> type:
    """A fake tensor stands for the real one of the same program."""
    if is_fake(tensor):
        return torch.nn.Parameter if isinstance(tensor, torch.nn.Parameter) else Tensor
    return type(tensor)


def storage(tensor: Tensor) -> Any:
    """The storage object, one per storage; None for a tensor that has none."""
    try:
        return _untyped_storage(tensor)
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
        return int.__repr__(size)
    if not isinstance(size, _NUMBERS):
        raise Unreadable
    return quote(str(size)[:256]) if isinstance(size, torch.SymInt) else to_json(int(size))
