"""Programs that do unusual things with tensors: memory, layouts, dtypes, random numbers, subclasses."""

# pyright: reportPrivateImportUsage=false

import copy
import io
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from zoo.architecture import Entry, Program

Function = Callable[[Tensor], Any]


class Runs(nn.Module):
    """A model that is one function of a tensor."""

    def __init__(self, function: Function) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Any:
        return self.function(x)


def program(function: Function) -> Program:
    return Program(Runs(function), {"x": torch.randn(4, 6)})


# -- memory


def partly_written(x: Tensor) -> Tensor:
    cache = torch.empty(8, 6)
    cache[:4] = x
    return cache[:4] * 2 + cache[4:].shape[0]


def overlapping(x: Tensor) -> Tensor:
    rows = x.clone().as_strided((3, 4), (2, 1))
    return rows.contiguous().add_(rows[0])


def swapped_memory(x: Tensor) -> list[Tensor]:
    first, second = x.clone(), torch.zeros(2, 2)
    view = first[1]
    second.set_(first)  # type: ignore[call-overload]
    second.mul_(3)
    return [first, second, view]


def resized(x: Tensor) -> list[Tensor]:
    grown = x.clone()
    grown.resize_(5, 6)
    shrunk = x.clone().resize_(2, 3)
    return [grown[:4], shrunk, torch.empty(0).resize_(2, 3).copy_(x[:2, :3])]


def metadata_in_place(x: Tensor) -> Tensor:
    y = x.clone()
    y.t_().unsqueeze_(0).transpose_(0, 1).squeeze_(1)
    return y.swapaxes_(0, 1).add_(1)


def written_through_views(x: Tensor) -> list[Tensor]:
    y = x.clone()
    parts = [*y.split(2), *y.unbind(1)]
    parts[0].mul_(2)
    parts[-1].copy_(parts[2])
    y.view(-1)[::3].zero_()
    y.diagonal().fill_(7)
    return [y, *parts]


def scattered(x: Tensor) -> list[Tensor]:
    y, index = x.clone(), torch.tensor([0, 2, 2])
    y[index, torch.tensor([1, 1, 3])] = 5.0
    y.index_put_((index,), torch.ones(6), accumulate=True)
    y.index_add_(0, index, x[:3]).index_copy_(0, index[:2], x[:2]).index_fill_(1, index[:1], 0.5)
    y.scatter_(1, torch.zeros(4, 1, dtype=torch.long), 9.0)
    y.scatter_reduce_(0, torch.zeros(1, 6, dtype=torch.long), x[:1], "amax")
    y.masked_fill_(x > 1, -1.0).masked_scatter_(x < -1, torch.arange(24.0))
    return [y, y.gather(1, x.argsort()), y.take_along_dim(x.argmax(1, keepdim=True), 1), y.put_(index, x[0, :3])]


def with_out(x: Tensor) -> list[Tensor]:
    values, indices = torch.empty(4, 6), torch.empty(4, 6, dtype=torch.long)
    torch.sort(x, out=(values, indices))
    target = torch.zeros(6, 12)
    torch.mm(x.t(), x, out=target[:, ::2])
    grown = torch.empty(0)
    torch.cat([x, x], out=grown)
    return [values, indices, target, grown, torch.add(x, 1, out=torch.empty(4, 6))]


def in_lists(x: Tensor) -> list[Tensor]:
    parts = list(x.clone().unbind())
    torch._foreach_add_(parts, 1.0)
    torch._foreach_mul_(parts, [1.0, 2.0, 3.0, 4.0])
    torch._foreach_copy_(parts[:2], parts[2:])
    torch._foreach_addcdiv_(parts, parts, [part + 9 for part in parts], 0.5)
    return [*parts, *torch._foreach_norm(parts), *torch._foreach_exp(parts)]


# -- custom operators


@torch.library.custom_op("tensorviz_zoo::scaled", mutates_args=())
def scaled(x: Tensor, by: list[float], deep: bool = False) -> list[Tensor]:
    return [x * number for number in by]


@torch.library.custom_op("tensorviz_zoo::bump", mutates_args={"x"})
def bump(x: Tensor, amount: int) -> None:
    x.add_(amount)


_library = torch.library.Library("tensorviz_zoo", "FRAGMENT")
_library.define("twice(Tensor x, *, ScalarType? dtype=None) -> (Tensor, Tensor)")
_library.impl("twice", lambda x, *, dtype=None: (x.to(dtype or x.dtype), x * 2), "CompositeExplicitAutograd")


def custom_operators(x: Tensor) -> list[Tensor]:
    y = x.clone()
    bump(y[1:], 3)
    return [y, *scaled(x, [0.5, -0.0], deep=True), *torch.ops.tensorviz_zoo.twice(x, dtype=torch.float64)]


# -- random numbers


def draws(x: Tensor) -> list[Tensor]:
    y = torch.empty(5)
    probabilities = x.softmax(1)
    return [
        torch.rand(3),
        torch.randint(0, 9, (3,)),
        torch.randperm(6),
        torch.multinomial(probabilities, 2),
        torch.bernoulli(probabilities),
        torch.poisson(probabilities * 4),
        y.normal_().clone(),
        y.exponential_().clone(),
        y.uniform_(-1, 1).clone(),
        torch.nn.functional.gumbel_softmax(x),
        torch.distributions.Gamma(probabilities + 1, 2.0).rsample(),
        torch.nn.functional.rrelu(x, training=True),
        torch.nn.functional.feature_alpha_dropout(x, training=True),
    ]


def seeds(x: Tensor) -> list[Tensor]:
    first = torch.rand(2)
    torch.manual_seed(5)
    own = torch.Generator().manual_seed(1)
    with torch.random.fork_rng(devices=[]):
        inside = torch.rand(2)
    return [first, inside, torch.rand(2), torch.rand(2, generator=own), torch.randn(2, generator=own), torch.rand(2)]


# -- the rest of the library


def linear_algebra(x: Tensor) -> list[Tensor]:
    square = x @ x.t() + torch.eye(4)
    pairs = [*torch.linalg.qr(x), *torch.linalg.eigh(square), *torch.linalg.svd(x, full_matrices=False)]
    solved = [torch.linalg.solve(square, x), torch.linalg.inv(square), torch.linalg.det(square), torch.linalg.pinv(x)]
    return [
        *pairs,
        *solved,
        torch.linalg.cholesky(square),
        torch.matrix_exp(square / 9),
    ]


def images(x: Tensor) -> list[Tensor]:
    f, image = nn.functional, x.view(1, 2, 3, 4).contiguous(memory_format=torch.channels_last)
    weight = torch.ones(4, 1, 2, 2)
    return [
        f.conv2d(image, weight, groups=2),
        f.conv_transpose2d(image, weight.view(2, 2, 2, 2), stride=2),
        *f.max_pool2d(image, 2, 1, return_indices=True),
        f.avg_pool2d(image, 2, 1),
        f.adaptive_avg_pool2d(image, (2, 2)),
        f.interpolate(image, scale_factor=2, mode="bilinear"),
        f.interpolate(image, size=(5, 5), mode="bicubic", antialias=True),
        f.pixel_unshuffle(x.view(1, 1, 4, 6), 2),
        f.unfold(image, 2),
        f.pad(image, (1, 1, 1, 1), mode="reflect"),
        f.grid_sample(image, torch.zeros(1, 2, 2, 2), align_corners=False),
    ]


def searches(x: Tensor) -> list[Tensor]:
    found = [*x.topk(2), *x.sort(1, descending=True), *x.kthvalue(2), *x.mode(), *x.median(1), *x.cummax(0)]
    whole = (x * 2).long()
    return [
        *found,
        *torch.unique(whole, return_inverse=True, return_counts=True),
        torch.bucketize(x, torch.tensor([-1.0, 0.0, 1.0])),
        torch.searchsorted(torch.tensor([-1.0, 0.0, 1.0]), x),
        torch.histc(x, 4),
        torch.bincount(whole.abs().flatten()),
        x.nonzero(),
        torch.einsum("ij,kj->ik", x, x),
        torch.tensordot(x, x.t(), dims=1),
        torch.where(x > 0, x, torch.tensor(float("nan"))).nan_to_num(),
        x.logcumsumexp(1),
        torch.cdist(x, x),
    ]


def reads_numbers(x: Tensor) -> Tensor:
    largest = x.max().item()
    return x * largest if bool(x[0, 0] > 0) else x - int(x.sum()) + len(x)


def copies(x: Tensor) -> list[Any]:
    buffer = io.BytesIO()
    torch.save(x, buffer)
    buffer.seek(0)
    return [copy.deepcopy(x), copy.copy(x), torch.load(buffer), torch.tensor(x.tolist())]


def a_generator(x: Tensor) -> Iterator[Tensor]:
    yield from (row * 2 for row in x)


FUNCTIONS: dict[str, Function] = {
    "memory left as it was found": partly_written,
    "overlapping strides": overlapping,
    "set_ to other memory": swapped_memory,
    "resize_": resized,
    "metadata changed in place": metadata_in_place,
    "writes through views": written_through_views,
    "scatter, index and mask writes": scattered,
    "out= of every kind": with_out,
    "foreach lists": in_lists,
    "custom operators": custom_operators,
    "random numbers": draws,
    "seeds and generators": seeds,
    "linear algebra": linear_algebra,
    "image functions": images,
    "sorting and searching": searches,
    "numbers read from tensors": reads_numbers,
    "copies and files": copies,
    "numpy": lambda x: torch.from_numpy(x.numpy() * 2) + 1,
    "a generator as result": a_generator,
}
ENTRIES = tuple(Entry(name, "tensors", partial(program, function)) for name, function in FUNCTIONS.items())
