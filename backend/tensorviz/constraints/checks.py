"""Small checks, each of one demand that operators make. A check yields the demand only where it is provably not met."""

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, pairwise
from math import prod

from tensorviz.constraints.call import Call, Json, Measure, Numbers, Tensor, Unknown, measure
from tensorviz.contracts.dtypes import is_of_class

Found = Iterator[Json]
Check = Callable[[Call], Found]


# -- demands


def equal(what: str, left: Measure, right: Measure) -> Found:
    if left.number != right.number:
        yield {"kind": "equal", "what": what, "left": left.to_json(), "right": right.to_json()}


def at_most(what: str, left: Measure, right: Measure) -> Found:
    if left.number > right.number:
        yield {"kind": "at_most", "what": what, "left": left.to_json(), "right": right.to_json()}


def divisible(what: str, left: Measure, right: Measure) -> Found:
    if right.number > 0 and left.number % right.number:
        yield {"kind": "divisible", "what": what, "left": left.to_json(), "right": right.to_json()}


def between(what: str, left: Measure, minimum: int | None, maximum: int | None) -> Found:
    if (minimum is not None and left.number < minimum) or (maximum is not None and left.number > maximum):
        yield {"kind": "between", "what": what, "left": left.to_json(), "minimum": minimum, "maximum": maximum}


def stretchable(left: Measure, right: Measure, stretches: str = "left") -> Found:
    """``left`` equals ``right``, or is 1 and can be stretched; ``either`` lets ``right`` be 1 as well."""
    if left.number not in (1, right.number) and (stretches == "left" or right.number != 1):
        yield {"kind": "broadcast", "stretches": stretches, "left": left.to_json(), "right": right.to_json()}


def same(of: str, left: Tensor, right: Tensor) -> Found:
    """Of empty tensors torch often looks at nothing."""
    if left.is_empty or right.is_empty:
        return
    one, other = left.trait(of), right.trait(of)
    if one["name"] != other["name"]:
        yield {"kind": "same", "left": one, "right": other}


def of_class(tensor: Tensor, wanted: str) -> Found:
    if is_of_class(tensor.dtype, wanted) is False and not tensor.is_empty:
        yield {"kind": "dtype", "left": tensor.trait("dtype"), "wanted": wanted}


# -- checks of single facts


def rank(minimum: int, maximum: int | None, *names: str) -> Check:
    def check(call: Call) -> Found:
        for name in names:
            yield from between("rank", call.tensor(name).rank, minimum, maximum)

    return check


def sizes(what: str, left: tuple[str, int], right: tuple[str, int]) -> Check:
    """The sizes of two dimensions are equal."""

    def check(call: Call) -> Found:
        yield from equal(what, call.tensor(left[0]).size(left[1]), call.tensor(right[0]).size(right[1]))

    return check


def fits(left: tuple[str, int], right: tuple[str, int]) -> Check:
    """A size that is added to a result of another size is that size, or 1. In place it must be that size."""

    def check(call: Call) -> Found:
        one, other = call.tensor(left[0]).size(left[1]), call.tensor(right[0]).size(right[1])
        yield from equal("shape", one, other) if call.writes(left[0]) else stretchable(one, other)

    return check


def one_dtype(*names: str) -> Check:
    def check(call: Call) -> Found:
        yield from _pairwise(call, names, "dtype")

    return check


def one_device(*names: str) -> Check:
    def check(call: Call) -> Found:
        yield from _pairwise(call, names, "device")

    return check


def _pairwise(call: Call, names: Sequence[str], of: str) -> Found:
    given = [call.tensor(name) for name in names if call.is_given(name)]
    for other in given[1:]:
        yield from same(of, given[0], other)


def wants(wanted: str, *names: str) -> Check:
    def check(call: Call) -> Found:
        for name in names:
            yield from of_class(call.tensor(name), wanted)

    return check


def wants_floating_unless_told(call: Call) -> Found:
    if not call.is_given("dtype"):
        yield from of_class(call.tensor("self"), "floating")


def dimension(name: str, of: str = "self", more: int = 0, least: int = 1) -> Check:
    """The number of a dimension, or each in a list. A tensor without dimensions counts as one of ``least``."""

    def check(call: Call) -> Found:
        count = max(call.first_tensor(of).ndim, least) + more
        for number in _literals(call, name):
            yield from between("dimension", number, -count, count - 1)

    return check


def _literals(call: Call, name: str) -> list[Measure]:
    try:
        return [call.literal(name)]
    except Unknown:
        numbers = call.integers(name)
        return [numbers.item(index) for index in range(len(numbers.items))]


def literal(name: str, minimum: int | None, maximum: int | None = None) -> Check:
    def check(call: Call) -> Found:
        for number in _literals(call, name):
            yield from between("amount", number, minimum, maximum)

    return check


# -- broadcasting


def broadcast(call: Call) -> Found:
    """All operands stretch to one shape, which in place is that of the first."""
    operands = call.operands()
    if len(operands) < 2:
        return
    if call.parameters and call.writes(call.parameters[0].name):
        for other in operands[1:]:
            yield from _stretches_to(other, operands[0])
    else:
        yield from _stretch_together(operands)


def stretches_to_self(name: str) -> Check:
    def check(call: Call) -> Found:
        yield from _stretches_to(call.tensor(name), call.tensor("self"))

    return check


def _stretches_to(source: Tensor, target: Tensor) -> Found:
    yield from at_most("rank", source.rank, target.rank)
    for dim in range(1, min(source.ndim, target.ndim) + 1):
        if isinstance(source.shape[-dim], int) and isinstance(target.shape[-dim], int):
            yield from stretchable(source.size(-dim), target.size(-dim))


def _stretch_together(operands: Sequence[Tensor]) -> Found:
    for one, other in combinations(operands, 2):
        for dim in range(1, min(one.ndim, other.ndim) + 1):
            if isinstance(one.shape[-dim], int) and isinstance(other.shape[-dim], int):
                yield from stretchable(one.size(-dim), other.size(-dim), "either")


def one_device_for_all(call: Call) -> Found:
    """A tensor without dimensions may be on another device than the rest."""
    operands = [tensor for tensor in call.operands() if tensor.ndim]
    for one, other in pairwise(operands):
        yield from same("device", one, other)


def result_fits_in_place(call: Call) -> Found:
    """Arithmetic with a floating operand gives a floating result, which an integral tensor cannot hold."""
    if call.parameters and call.writes(call.parameters[0].name):
        operands = call.operands()
        if any(is_of_class(other.dtype, "integral") is False for other in operands[1:]):
            yield from of_class(operands[0], "floating")


def all_want(wanted: str) -> Check:
    def check(call: Call) -> Found:
        for tensor in call.operands():
            yield from of_class(tensor, wanted)

    return check


def expanded(call: Call) -> Found:
    tensor, wanted = call.tensor("self"), call.integers("size")
    yield from at_most("rank", tensor.rank, measure(wanted.path, "length", len(wanted.items)))
    ahead = len(wanted.items) - tensor.ndim
    for index, size in enumerate(wanted.items):
        if index < ahead:  # of a tensor without dimensions torch takes any sizes
            yield from between("amount", wanted.item(index), 0, None) if tensor.ndim else ()
        elif ahead >= 0 and size != -1:
            yield from stretchable(tensor.size(index - ahead), wanted.item(index))


# -- matrix products


def matmul(call: Call) -> Found:
    left, right = call.tensor("self"), call.tensor("other")
    yield from between("rank", left.rank, 1, None)
    yield from between("rank", right.rank, 1, None)
    yield from equal("inner", left.size(-1), right.size(-min(right.ndim, 2)))
    for dim in range(3, min(left.ndim, right.ndim) + 1):
        yield from stretchable(left.size(-dim), right.size(-dim), "either")


# -- joining, splitting, reshaping


def concatenated(call: Call) -> Found:
    tensors = [tensor for tensor in call.tensors("tensors") if tensor.shape != (0,)]  # torch lets these through
    dim = call.integer("dim")
    for tensor in call.tensors("tensors"):
        yield from between("rank", tensor.rank, 1, None)
    if not tensors:
        return
    first = tensors[0]
    for other in tensors[1:]:
        yield from equal("rank", other.rank, first.rank)
        if other.ndim == first.ndim and -first.ndim <= dim < first.ndim:
            yield from _same_sizes(other, first, without=dim % first.ndim)


def stacked(call: Call) -> Found:
    first, rest = call.first_tensor("tensors"), call.tensors("tensors")[1:]
    for other in rest:
        yield from equal("rank", other.rank, first.rank)
        if other.ndim == first.ndim:
            yield from _same_sizes(other, first, without=None)


def _same_sizes(one: Tensor, other: Tensor, without: int | None) -> Found:
    for dim in range(one.ndim):
        if dim != without and isinstance(one.shape[dim], int) and isinstance(other.shape[dim], int):
            yield from equal("shape", one.size(dim), other.size(dim))


def reshaped(name: str) -> Check:
    """The new shape has the elements of the old one; one -1 in it stands for what is left."""

    def check(call: Call) -> Found:
        tensor, wanted = call.tensor("self"), call.integers(name)
        for index in range(len(wanted.items)):
            yield from between("amount", wanted.item(index), -1, None)
        yield from _fills(tensor.elements, wanted)

    return check


def _fills(whole: Measure, wanted: Numbers) -> Found:
    free = wanted.items.count(-1)
    product = prod(wanted.items)
    if free == 0:
        yield from equal("elements", whole, measure(wanted.path, "product", product))
    elif free == 1 and product < 0:  # the -1 is a factor of the product
        yield from divisible("elements", whole, measure(wanted.path, "known", -product))


def split_sizes(name: str) -> Check:
    def check(call: Call) -> Found:
        tensor, parts = call.tensor("self"), call.integers(name)
        for index in range(len(parts.items)):
            yield from between("amount", parts.item(index), 0, None)
        total = measure(parts.path, "sum", sum(parts.items))
        yield from equal("split", total, tensor.size(call.integer("dim")))

    return check


def permuted(call: Call) -> Found:
    dims = call.integers("dims")
    yield from equal("rank", measure(dims.path, "length", len(dims.items)), call.tensor("self").rank)


def covers_rank(name: str) -> Check:
    """A list with one item for each dimension, or more."""

    def check(call: Call) -> Found:
        numbers = call.integers(name)
        yield from at_most("rank", call.tensor("self").rank, measure(numbers.path, "length", len(numbers.items)))

    return check


# -- indexing


def selected(call: Call) -> Found:
    size = call.tensor("self").size(call.integer("dim")).number
    yield from between("index", call.literal("index"), -size, size - 1)


def narrowed(call: Call) -> Found:
    size = call.tensor("self").size(call.integer("dim")).number
    yield from between("index", call.literal("start"), -size, size)
    yield from between("amount", call.literal("length"), 0, size)


def no_more_than_dimension(name: str) -> Check:
    def check(call: Call) -> Found:
        yield from at_most("amount", call.literal(name), call.tensor("self").size(call.integer("dim")))

    return check


def gathered(call: Call) -> Found:
    """The index is no larger than what it reads, but for the dimension that it chooses from."""
    tensor, index = call.tensor("self"), call.tensor("index")
    if 0 in index.sizes or not (tensor.ndim and index.ndim):
        return
    yield from equal("rank", index.rank, tensor.rank)
    yield from _no_larger(index, tensor, without=call.integer("dim"))


def scattered(call: Call) -> Found:
    source, index = call.tensor("src"), call.tensor("index")
    if 0 in index.sizes or not (source.ndim and index.ndim):
        return
    yield from equal("rank", index.rank, source.rank)
    yield from _no_larger(index, source, without=None)


def _no_larger(one: Tensor, other: Tensor, without: int | None) -> Found:
    if one.ndim == other.ndim and (without is None or -one.ndim <= without < one.ndim):
        for dim in range(one.ndim):
            if without is None or dim != without % one.ndim:
                yield from at_most("shape", one.size(dim), other.size(dim))


def masked(call: Call) -> Found:
    """A mask among the indices has the sizes of the dimensions that it covers."""
    tensor, dim = call.tensor("self"), 0
    for index in call.optional_tensors("indices"):
        if index is None or index.dtype not in ("torch.bool", "torch.uint8"):
            dim += 1
            continue
        for place in range(index.ndim):
            yield from equal("shape", index.size(place), tensor.size(dim + place))
        dim += index.ndim


def indices_are_integral(call: Call) -> Found:
    for index in call.optional_tensors("indices"):
        if index is not None:
            yield from of_class(index, "integral")


def index_count(call: Call) -> Found:
    """As many indices as there are slices in the source."""
    index, source = call.tensor("index"), call.tensor("source")
    if index.ndim == 1 and source.ndim:
        yield from equal("amount", index.size(0), source.size(call.integer("dim")))


# -- layers


def convolution(dims: int | None, transposed: bool | None) -> Check:
    """``dims`` spatial dimensions, or as many as the weight has; ``transposed`` or as an argument says."""

    def check(call: Call) -> Found:
        data, weight = call.tensor("input"), call.tensor("weight")
        spatial = weight.ndim - 2 if dims is None else dims
        turned = call.flag("transposed") if transposed is None else transposed
        yield from (
            equal("rank", data.rank, weight.rank) if dims is None else between("rank", data.rank, dims + 1, dims + 2)
        )
        yield from between("rank", weight.rank, spatial + 2, spatial + 2)
        if data.ndim in (spatial + 1, spatial + 2) and weight.ndim == spatial + 2:
            yield from _channels(call, data, weight, spatial, turned)
            if not turned:
                yield from _kernel_fits(call, data, weight, spatial)

    return check


def _channels(call: Call, data: Tensor, weight: Tensor, spatial: int, turned: bool) -> Found:
    groups = call.integer("groups")
    given = data.size(-spatial - 1)
    if groups < 1:
        return
    grouped = weight.size(1) if groups == 1 else weight.size(1, "grouped", int(weight.size(1).number) * groups)
    yield from equal("channels", given, weight.size(0) if turned else grouped)
    if groups > 1:
        yield from divisible("groups", weight.size(0), call.literal("groups"))
    if call.is_given("bias"):
        bias = call.tensor("bias")
        yield from between("rank", bias.rank, 1, 1)
        if bias.ndim == 1:
            yield from equal("channels", bias.size(0), grouped if turned else weight.size(0))


def _kernel_fits(call: Call, data: Tensor, weight: Tensor, spatial: int) -> Found:
    padding, dilation = call.integers("padding"), call.integers("dilation")
    for index in range(spatial):
        size, kernel = data.size(index - spatial), weight.size(index - spatial)
        if padding.at(index) < 0 or dilation.at(index) < 1:
            return
        padded = data.size(index - spatial, "padded", size.number + 2 * padding.at(index))
        reach = dilation.at(index) * (kernel.number - 1) + 1
        yield from at_most("kernel", weight.size(index - spatial, "extent", reach), padded)


def pooling(dims: int, dilated: bool) -> Check:
    def check(call: Call) -> Found:
        data, kernel, padding = call.tensor("self"), call.integers("kernel_size"), call.integers("padding")
        yield from between("rank", data.rank, dims + 1, dims + 2)
        if data.ndim not in (dims + 1, dims + 2) or len(kernel.items) != dims:
            return
        dilation = call.integers("dilation") if dilated else Numbers((), (1,))
        for index, size in enumerate(kernel.items):
            if size < 1 or dilation.at(index) < 1:
                return
            reach = measure(kernel.path, "extent", dilation.at(index) * (size - 1) + 1, index)
            whole = data.size(index - dims).number + 2 * padding.at(index)
            if padding.at(index) >= 0 and not call.flag("ceil_mode"):
                yield from at_most("kernel", reach, data.size(index - dims, "padded", whole))
            if padding.path and len(padding.items) == dims:
                yield from between("padding", padding.item(index), 0, reach.number // 2)

    return check


def layer_norm(call: Call) -> Found:
    data, shape = call.tensor("input"), call.integers("normalized_shape")
    yield from at_most("rank", measure(shape.path, "length", len(shape.items)), data.rank)
    for index in range(len(shape.items)):
        back = index - len(shape.items)
        if -back <= data.ndim:
            yield from equal("features", data.size(back), shape.item(index))
    for name in ("weight", "bias"):
        if name in call.names and call.is_given(name):
            yield from _has_shape(call.tensor(name), shape)


def _has_shape(tensor: Tensor, shape: Numbers) -> Found:
    yield from equal("rank", tensor.rank, measure(shape.path, "length", len(shape.items)))
    if tensor.ndim == len(shape.items):
        for dim in range(tensor.ndim):
            yield from equal("features", tensor.size(dim), shape.item(dim))


def per_channel(*names: str) -> Check:
    """One element for each channel of the input."""

    def check(call: Call) -> Found:
        data = call.tensor("input")
        if data.is_empty:  # torch looks at nothing then
            return
        for name in names:
            if call.is_given(name):
                yield from equal("channels", call.tensor(name).elements, data.size(1))

    return check


def grouped(call: Call) -> Found:
    yield from divisible("groups", call.tensor("input").size(1), call.literal("num_groups"))


def shuffled(call: Call) -> Found:
    factor = call.literal("upscale_factor")
    square = measure(factor.path, "squared", factor.number**2)
    yield from divisible("channels", call.tensor("self").size(-3), square)


def unshuffled(call: Call) -> Found:
    for dim in (-2, -1):
        yield from divisible("shape", call.tensor("self").size(dim), call.literal("downscale_factor"))


def reflected(call: Call) -> Found:
    """No side is padded with more than there is beside its last element."""
    tensor, padding = call.tensor("self"), call.integers("padding")
    for index in range(len(padding.items)):
        yield from between("padding", padding.item(index), None, tensor.size(-1 - index // 2).number - 1)


def square(name: str) -> Check:
    def check(call: Call) -> Found:
        tensor = call.tensor(name)
        yield from between("rank", tensor.rank, 2, None)
        yield from equal("square", tensor.size(-2), tensor.size(-1))

    return check


# -- losses


def class_indices(call: Call) -> Found:
    """Scores of (batch, classes) or (classes,), and one class for each."""
    scores, target = call.tensor("self"), call.tensor("target")
    yield from between("rank", scores.rank, 1, 2)
    if scores.ndim == 2 and target.ndim == 1:
        yield from equal("batch", scores.size(0), target.size(0))


def class_weights(call: Call) -> Found:
    scores, weight = call.tensor("self"), call.tensor("weight")
    yield from between("rank", weight.rank, 1, 1)
    if scores.ndim in (1, 2):
        yield from equal("classes", weight.elements, scores.size(-1))


def class_images(call: Call) -> Found:
    scores, target = call.tensor("self"), call.tensor("target")
    yield from between("rank", scores.rank, 4, 4)
    yield from between("rank", target.rank, 3, 3)
    if scores.ndim == 4 and target.ndim == 3:
        for one, other in ((0, 0), (2, 1), (3, 2)):
            yield from equal("batch" if one == 0 else "shape", scores.size(one), target.size(other))
