"""Programs with tensors of every kind: layouts, dtypes, subclasses, and modes around them."""

# pyright: reportPrivateImportUsage=false

from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from zoo.architecture import Entry

from .tensor_programs import Function, program


def complex_numbers(x: Tensor) -> list[Tensor]:
    z = torch.view_as_complex(x.view(4, 3, 2).clone())
    turned = z.conj()
    turned.mul_(1j)
    z.imag.add_(1)
    spectrum = torch.fft.rfft2(x)
    return [z, turned @ z.t(), z.angle(), torch.fft.irfft2(spectrum), z.mH, torch.view_as_real(turned.resolve_conj())]


def negative_bits(x: Tensor) -> list[Tensor]:
    z = torch.complex(x, x)
    imaginary = z.conj().imag
    return [imaginary + 1, imaginary.clone(), imaginary.resolve_neg()]


def coordinates(x: Tensor) -> list[Tensor]:
    sparse = x.relu().to_sparse()
    twice = torch.sparse_coo_tensor(torch.tensor([[0, 0], [1, 1]]), torch.tensor([1.0, 2.0]), (4, 6))
    total = (sparse + twice).coalesce()
    return [total, torch.sparse.mm(total, x.t()), total.to_dense(), total.values() * 2, torch.sparse.sum(total, 0)]


def compressed(x: Tensor) -> list[Tensor]:
    rows, columns, blocks = x.to_sparse_csr(), x.to_sparse_csc(), x.to_sparse_bsr((2, 2))
    return [rows @ x.t(), rows, columns, blocks, columns.to_dense(), blocks.values(), rows.sum(1, keepdim=True)]


def quantized(x: Tensor) -> list[Tensor]:
    whole = torch.quantize_per_tensor(x, 0.1, 3, torch.quint8)
    rows = torch.quantize_per_channel(x, torch.full((4,), 0.2), torch.zeros(4, dtype=torch.long), 0, torch.qint8)
    return [
        whole,
        whole.dequantize(),
        rows.dequantize(),
        whole.int_repr(),
        torch.fake_quantize_per_tensor_affine(x, 0.1, 0, -128, 127),
    ]


def small_floats(x: Tensor) -> list[Tensor]:
    kinds = (torch.float8_e4m3fn, torch.float8_e5m2, torch.bfloat16, torch.float16)
    cast = [x.to(kind) for kind in kinds]
    return [*cast, *(item.float() for item in cast), cast[0].view(torch.uint8), x.to(torch.float8_e8m0fnu)]


def small_integers(x: Tensor) -> list[Tensor]:
    numbers = (x * 10).to(torch.int8)
    return [
        numbers,
        torch._int_mm(numbers, numbers.t().contiguous()),
        (x.abs() * 9).to(torch.uint16),
        numbers.int() << 2,
        numbers.bool() ^ True,
    ]


def ragged(x: Tensor) -> list[Tensor]:
    jagged = torch.nested.nested_tensor([x[:1], x[1:]], layout=torch.jagged)
    return [jagged.values(), (jagged * 2).sin().values(), torch.nested.to_padded_tensor(jagged, 0.0)]


def nested_strided(x: Tensor) -> list[Tensor]:
    nested = torch.nested.nested_tensor([x[:1], x[1:]])
    return [(nested * 2).to_padded_tensor(0.0), *nested.unbind()]


class Pair(Tensor):
    """Two tensors that go the same way."""

    first: Tensor
    second: Tensor

    @staticmethod
    def __new__(cls, first: Tensor, second: Tensor) -> "Pair":
        pair = Tensor._make_wrapper_subclass(cls, first.shape, dtype=first.dtype, device=first.device)
        pair.first, pair.second = first, second
        return pair

    def __tensor_flatten__(self) -> Any:
        return ["first", "second"], None

    @staticmethod
    def __tensor_unflatten__(inner: Any, context: Any, size: Any, stride: Any) -> "Pair":
        return Pair(inner["first"], inner["second"])

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        results = [
            func(*tree_map(partial(part_of, name), args), **tree_map(partial(part_of, name), kwargs or {}))
            for name in ("first", "second")
        ]
        return Pair(*results) if isinstance(results[0], Tensor) else results[0]


def part_of(name: str, value: Any) -> Any:
    return getattr(value, name) if isinstance(value, Pair) else value


def in_pairs(x: Tensor) -> Any:
    both: Any = Pair(x, x + 1) * 2
    return [both.first, Pair(x, x) @ Pair(x.t(), x.t())]


class Tagged(Tensor):
    """Sees functions, and passes them on."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return super().__torch_function__(func, types, args, kwargs or {})


class Doubles(TorchDispatchMode):
    """A mode of the program's own that changes what comes out."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        return result * 2 if func is torch.ops.aten.sin.default else result


def under_an_own_mode(x: Tensor) -> Tensor:
    with Doubles():
        return x.sin() + 1


def with_a_default_device(x: Tensor) -> Tensor:
    with torch.device("cpu"):
        return x + torch.ones(6) + torch.arange(6)


def counted_flops(x: Tensor) -> Tensor:
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        y = x @ x.t()
    return y + counter.get_total_flops()


def numbers_of_every_kind(x: Tensor) -> list[Tensor]:
    return [
        x * float("nan"),
        x * -0.0,
        x / float("inf"),
        x + 1e-320,
        x.long() * (2**62),
        x * (1 + 2j),
        torch.full((2,), 2**53 + 1),
        torch.full((2,), float("-inf")),
        x.to(torch.float64) + 0.1,
        torch.tensor([True, False]).logical_not(),
    ]


FUNCTIONS: dict[str, Function] = {
    "complex numbers and conjugate views": complex_numbers,
    "negative bits": negative_bits,
    "sparse coordinates": coordinates,
    "sparse rows, columns and blocks": compressed,
    "quantized tensors": quantized,
    "float8 and other small floats": small_floats,
    "integers of every size": small_integers,
    "jagged tensors": ragged,
    "nested tensors": nested_strided,
    "a wrapper subclass": in_pairs,
    "a subclass that sees functions": lambda x: x.as_subclass(Tagged) + 1,
    "a mode of its own": under_an_own_mode,
    "a default device": with_a_default_device,
    "a mode that counts": counted_flops,
    "numbers of every kind": numbers_of_every_kind,
    "meta tensors": lambda x: torch.empty(2, 3, device="meta") + 1,
}
ENTRIES = tuple(Entry(name, "kinds of tensors", partial(program, function)) for name, function in FUNCTIONS.items())
