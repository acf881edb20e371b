"""The facts and the bits of a tensor, read below every mode and subclass: equal digests mean equal in every bit."""

import ctypes
import hashlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.nn.parameter import is_lazy
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

# As torch has them: while a recording runs, others stand in their place.
_data_ptr = Tensor.data_ptr
_tolist = Tensor.tolist
_untyped_storage = Tensor.untyped_storage

_COMPRESSED = {
    torch.sparse_csr: ("crow_indices", "col_indices", "values"),
    torch.sparse_bsr: ("crow_indices", "col_indices", "values"),
    torch.sparse_csc: ("ccol_indices", "row_indices", "values"),
    torch.sparse_bsc: ("ccol_indices", "row_indices", "values"),
}
_UNINITIALIZED = ("empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided", "resize_")
UNSPECIFIED = {"aten.mkldnn_rnn_layer.default": (("items", 3),)}
"""Results whose bits an operator leaves open, even from equal bits: a workspace, with gaps that it never writes."""


class Facts(NamedTuple):
    """As the contract tells them: what a layout does not have is None."""

    shape: tuple[Any, ...]
    strides: tuple[Any, ...] | None
    offset: Any
    dtype: str
    device: str
    layout: str
    bytes: int | None


def facts(tensor: Tensor) -> Facts:
    with torch._C.DisableTorchFunctionSubclass():
        strided = is_strided(tensor)
        return Facts(
            _shape(tensor),
            _numbers(tensor.stride()) if strided else None,
            _numbers([tensor.storage_offset()])[0] if strided else None,
            str(tensor.dtype),
            str(tensor.device),
            str(tensor.layout),
            _size(tensor) if strided else None,
        )


def _numbers(sizes: Any) -> tuple[int | str, ...]:
    """A size that torch knows only by name, as that of a ragged dimension, is that name."""
    return tuple(size if type(size) is int else str(size) for size in sizes)


def _size(tensor: Tensor) -> int | None:
    count = tensor.numel()
    return count * tensor.element_size() if type(count) is int else None


def is_strided(tensor: Tensor) -> bool:
    return tensor.layout is torch.strided and not tensor.is_nested


def _shape(tensor: Tensor) -> tuple[int | str, ...]:
    if is_nested_list(tensor):
        columns = _tolist(tensor._nested_tensor_size().t())
        return (len(columns[0]), *(sizes[0] if len({*sizes}) == 1 else "*" for sizes in columns))
    asked_of_torch: Any = torch.Tensor.shape  # a subclass may have a ``shape`` of its own, or refuse to tell it
    return ("unknown",) if is_lazy(tensor) else _numbers(asked_of_torch.__get__(tensor))


def is_nested_list(tensor: Tensor) -> bool:
    """The older kind of nested tensor, which has no shape of its own."""
    return tensor.is_nested and tensor.layout is torch.strided


def storage(tensor: Tensor) -> torch.UntypedStorage | None:
    """The one object of the tensor's memory; None where there is no single memory."""
    if not is_strided(tensor) or is_traceable_wrapper_subclass(tensor) or _has_no_memory(tensor):
        return None
    try:
        return _untyped_storage(tensor)
    except (RuntimeError, NotImplementedError):
        return None


def _has_no_memory(tensor: Tensor) -> bool:
    return isinstance(tensor, FakeTensor) or tensor._is_zerotensor()


def digest(tensor: Tensor) -> str | None:
    """None for a tensor without data, such as a meta tensor, and for a subclass that lets nobody read it."""
    if tensor.device.type == "meta" or isinstance(tensor, FakeTensor) or is_lazy(tensor):
        return None
    total = hashlib.blake2b(digest_size=16)
    with torch.no_grad(), torch._C.DisableTorchFunctionSubclass():
        try:
            for part in _parts(tensor):
                total.update(_bytes(part))
        except TypeError:
            return None
    return total.hexdigest()


def _parts(tensor: Tensor) -> Iterator[Tensor]:
    """The ordinary tensors that hold the data of one of any kind."""
    if is_traceable_wrapper_subclass(tensor):
        names, _ = tensor.__tensor_flatten__()
        for name in names:
            yield from _parts(getattr(tensor, name))
    elif tensor._is_zerotensor():
        return
    elif tensor.layout is torch.sparse_coo:
        yield from (tensor._indices(), tensor._values())
    elif tensor.layout in _COMPRESSED:
        yield from (getattr(tensor, name)() for name in _COMPRESSED[tensor.layout])
    elif tensor.layout is not torch.strided:
        yield tensor.to_dense()
    elif is_nested_list(tensor):
        yield from (tensor._nested_tensor_size(), *tensor.unbind())
    elif tensor.is_quantized:
        yield from (tensor.int_repr(), *_scales(tensor))
    else:
        yield tensor


def _scales(tensor: Tensor) -> tuple[Tensor, ...]:
    if tensor.qscheme() in (torch.per_channel_affine, torch.per_channel_affine_float_qparams):
        return tensor.q_per_channel_scales(), tensor.q_per_channel_zero_points()
    return (torch.tensor([tensor.q_scale(), tensor.q_zero_point()], dtype=torch.float64),)


def _bytes(tensor: Tensor) -> Any:
    """By address: an array from ``numpy()`` would keep torch from ever resizing the memory."""
    plain = tensor.detach().resolve_conj().resolve_neg().contiguous()
    size = plain.numel() * plain.element_size()
    is_readable = size > 0 and plain.device.type != "meta"
    return bytes((ctypes.c_char * size).from_address(_data_ptr(plain))) if is_readable else b""


def memory_size(args: Any) -> int:
    """The bytes of the first operand's memory: what an operator that resizes it leaves as it is."""
    memory = storage(args[0]) if args and isinstance(args[0], Tensor) else None
    return 0 if memory is None else memory.nbytes()


def settle_memory(operator: Any, result: Any, size_before: int) -> None:
    """Zeros in memory that an operator leaves as it found it, so that every run of a program sees the same bits."""
    if getattr(operator, "namespace", None) != "aten" or operator._opname not in _UNINITIALIZED:
        return
    begin = size_before if operator._opname == "resize_" else 0
    memory = storage(result)
    if memory is not None and memory.device.type != "meta" and memory.nbytes() > begin:
        with torch.no_grad():
            laid_on(memory, torch.uint8, begin, (memory.nbytes() - begin,), (1,)).zero_()


def laid_on(memory: torch.UntypedStorage, dtype: torch.dtype, offset: Any, shape: Any, strides: Any) -> Tensor:
    return torch.empty(0, dtype=dtype, device=memory.device).set_(memory, offset, shape, strides)
