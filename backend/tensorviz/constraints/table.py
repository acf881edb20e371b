"""What each operator demands of its operands: patterns of names, each with the checks that hold for them.

Names are those of ``aten`` without their overload; a trailing underscore (in place) is dropped before the look-up.
"""

from collections.abc import Iterator

from tensorviz.constraints import checks as c
from tensorviz.constraints.checks import Check, dimension, one_device, one_dtype, rank, sizes, wants

_POINTWISE = """
    add sub rsub mul multiply div divide true_divide floor_divide remainder fmod pow float_power atan2 arctan2
    maximum minimum fmax fmin eq ne lt le gt ge greater greater_equal less less_equal not_equal
    bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift logical_and logical_or logical_xor
    __and__ __or__ __xor__ __iand__ __ior__ __ixor__ __lshift__ __rshift__
    copysign nextafter hypot heaviside gcd lcm logaddexp logaddexp2 xlogy polar complex igamma igammac
    where lerp addcmul addcdiv clamp clamp_min clamp_max masked_fill
    mse_loss smooth_l1_loss huber_loss soft_margin_loss
    sigmoid_backward tanh_backward threshold_backward gelu_backward silu_backward
"""
_ARITHMETIC = "add sub mul multiply div divide true_divide remainder fmod atan2 hypot addcmul addcdiv"
_BITWISE = "bitwise_and bitwise_or bitwise_xor bitwise_not __and__ __or__ __xor__"
_REDUCTIONS = """
    sum nansum mean amax amin argmax argmin prod any all cumsum cumprod logcumsumexp logsumexp std var
    std_mean var_mean max min median mode sort topk kthvalue softmax _softmax log_softmax _log_softmax
    gather scatter scatter_add scatter_reduce index_select index_add index_copy index_fill
    select slice narrow split split_with_sizes unbind chunk squeeze flip count_nonzero glu linalg_vector_norm unflatten
"""
_SQUARE = """
    linalg_inv_ex linalg_inv linalg_det _linalg_det linalg_cholesky_ex linalg_cholesky linalg_eig linalg_eigvals
    linalg_matrix_exp
"""

_TABLE: tuple[tuple[str, tuple[Check, ...]], ...] = (
    # products
    ("mm _int_mm _scaled_mm", (rank(2, 2, "self", "mat2"), sizes("inner", ("self", 1), ("mat2", 0)))),
    ("mm bmm", (one_dtype("self", "mat2"), one_device("self", "mat2"))),
    (
        "addmm _addmm_activation",
        (
            rank(2, 2, "mat1", "mat2"),
            sizes("inner", ("mat1", 1), ("mat2", 0)),
            rank(0, 2, "self"),
            c.fits(("self", -1), ("mat2", 1)),
            c.fits(("self", -2), ("mat1", 0)),
            one_dtype("mat1", "mat2", "self"),
            one_device("mat1", "mat2"),
        ),
    ),
    (
        "bmm",
        (
            rank(3, 3, "self", "mat2"),
            sizes("batch", ("self", 0), ("mat2", 0)),
            sizes("inner", ("self", 2), ("mat2", 1)),
        ),
    ),
    (
        "baddbmm",
        (
            rank(3, 3, "batch1", "batch2"),
            sizes("batch", ("batch1", 0), ("batch2", 0)),
            sizes("inner", ("batch1", 2), ("batch2", 1)),
            c.fits(("self", -1), ("batch2", 2)),
            c.fits(("self", -2), ("batch1", 1)),
            c.fits(("self", -3), ("batch1", 0)),
            one_dtype("batch1", "batch2"),
            one_device("batch1", "batch2"),
        ),
    ),
    ("mv", (rank(2, 2, "self"), rank(1, 1, "vec"), sizes("inner", ("self", 1), ("vec", 0)), one_dtype("self", "vec"))),
    (
        "addmv",
        (
            rank(2, 2, "mat"),
            rank(1, 1, "vec"),
            sizes("inner", ("mat", 1), ("vec", 0)),
            rank(0, 1, "self"),
            c.fits(("self", 0), ("mat", 0)),
            one_dtype("mat", "vec"),
        ),
    ),
    ("dot", (rank(1, 1, "self", "tensor"), sizes("inner", ("self", 0), ("tensor", 0)), one_dtype("self", "tensor"))),
    ("vdot", (rank(1, 1, "self", "other"), sizes("inner", ("self", 0), ("other", 0)), one_dtype("self", "other"))),
    ("outer ger", (rank(1, 1, "self", "vec2"),)),
    ("matmul", (c.matmul,)),
    (
        "linear",
        (
            rank(1, None, "input"),
            rank(1, 2, "weight"),
            sizes("inner", ("input", -1), ("weight", -1)),
            one_dtype("input", "weight"),
        ),
    ),
    (
        "scaled_dot_product_attention",
        (
            rank(2, None, "query", "key", "value"),
            one_dtype("query", "key", "value"),
        ),
    ),
    # broadcasting
    (_POINTWISE, (c.broadcast, c.one_device_for_all)),
    (_ARITHMETIC, (c.result_fits_in_place,)),
    (_BITWISE, (c.all_want("integral"),)),
    ("masked_fill", (rank(0, 0, "value"),)),
    ("copy", (c.stretches_to_self("src"),)),
    ("expand", (c.expanded,)),
    # joining, splitting, reshaping
    ("cat", (c.concatenated, dimension("dim", "tensors"))),
    ("stack", (c.stacked, dimension("dim", "tensors", more=1, least=0))),
    ("view _unsafe_view", (c.reshaped("size"),)),
    ("reshape", (c.reshaped("shape"),)),
    ("split_with_sizes", (c.split_sizes("split_sizes"),)),
    ("split unsafe_split", (c.literal("split_size", 0),)),
    ("chunk", (c.literal("chunks", 1),)),
    ("permute", (c.permuted, dimension("dims"))),
    ("flip", (dimension("dims"),)),
    ("transpose", (dimension("dim0"), dimension("dim1"))),
    ("unsqueeze", (dimension("dim", more=1, least=0),)),
    ("diagonal", (dimension("dim1"), dimension("dim2"))),
    ("repeat", (c.covers_rank("repeats"),)),
    ("unfold", (dimension("dimension"),)),
    ("triu tril", (rank(2, None, "self"),)),
    # reductions and indexing
    (_REDUCTIONS, (dimension("dim"),)),
    ("select slice unbind", (rank(1, None, "self"),)),
    ("select", (c.selected,)),
    ("slice", (c.literal("step", 1),)),
    ("narrow", (c.narrowed,)),
    ("topk", (c.no_more_than_dimension("k"),)),
    ("gather", (c.gathered,)),
    ("scatter scatter_add scatter_reduce", (c.gathered, c.scattered, one_dtype("self", "src"))),
    ("gather scatter scatter_add scatter_reduce index_select index_add index_copy", (wants("index", "index"),)),
    ("index_select index_add index_copy", (rank(0, 1, "index"),)),
    ("index_add index_copy", (c.index_count, one_dtype("self", "source"))),
    ("index index_put _unsafe_index", (c.masked, c.indices_are_integral)),
    ("embedding", (rank(2, 2, "weight"), wants("index", "indices"))),
    # layers
    ("convolution", (c.convolution(None, None), one_dtype("input", "weight"))),
    *((f"conv{n}d", (c.convolution(n, False), one_dtype("input", "weight"))) for n in (1, 2, 3)),
    *((f"conv_transpose{n}d", (c.convolution(n, True), one_dtype("input", "weight"))) for n in (1, 2, 3)),
    *((f"max_pool{n}d max_pool{n}d_with_indices", (c.pooling(n, True),)) for n in (2, 3)),
    *((f"avg_pool{n}d", (c.pooling(n, False),)) for n in (2, 3)),
    ("native_layer_norm layer_norm rms_norm", (c.layer_norm, wants("floating", "input"))),
    ("batch_norm", (rank(2, None, "input"), c.per_channel("weight", "bias", "running_mean", "running_var"))),
    ("group_norm", (c.grouped, c.per_channel("weight", "bias"))),
    ("pixel_shuffle", (rank(3, None, "self"), c.shuffled)),
    ("pixel_unshuffle", (rank(3, None, "self"), c.unshuffled)),
    ("reflection_pad1d", (rank(2, 3, "self"), c.reflected)),
    ("reflection_pad2d", (rank(3, 4, "self"), c.reflected)),
    ("_softmax _log_softmax", (wants("floating", "self"),)),
    ("mean std var var_mean std_mean", (c.wants_floating_unless_told,)),
    (_SQUARE, (c.square("A"), wants("floating", "A"))),
    # losses
    ("nll_loss_forward", (c.class_indices, c.class_weights, wants("integral", "target"), rank(0, 1, "target"))),
    ("nll_loss2d_forward", (c.class_images, wants("integral", "target"))),
)

_CHECKS: dict[str, tuple[Check, ...]] = {}
for _names, _checks in _TABLE:
    for _name in _names.split():
        _CHECKS[_name] = _CHECKS.get(_name, ()) + _checks

NAMES = tuple(_CHECKS)
"""Every operator of which something can be proven."""


def checks_of(base: str) -> Iterator[Check]:
    name = base if base in _CHECKS or base.endswith("__") else base.removesuffix("_")
    yield from _CHECKS.get(name, ())
