"""torch is the oracle: where a constraint is claimed to be violated, torch refuses the operands."""

from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch._subclasses.fake_tensor import FakeTensorMode

from tensorviz.constraints import NAMES

from .recording import claims, overloads

DTYPES = (torch.float32, torch.float64, torch.float16, torch.int64, torch.int32, torch.bool, torch.complex64)
OVERLOADS = overloads(NAMES)
SIZES = st.sampled_from((2, 2, 2, 4, 4, 1, 3, 0, 6))
SHAPES = st.lists(SIZES, max_size=5).map(tuple)
SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example)
INTEGERS = st.sampled_from((1, 1, 2, 2, 0, 3, 4, -1, 6))

# -- any overload, with arguments of the types that its schema names


@st.composite
def any_call(draw: Any, op: Any) -> tuple[list[Any], dict[str, Any]]:
    """Arguments that often fit: one dtype, alike shapes, small numbers."""
    shapes = draw(st.lists(SHAPES, min_size=1, max_size=2))
    dtypes = draw(st.sampled_from([(dtype,) for dtype in DTYPES] + [DTYPES]))
    args, kwargs = [], {}
    for argument in op._schema.arguments:
        if argument.has_default_value() and draw(st.booleans()):
            if not argument.kwarg_only:
                break
            continue
        value = draw(_value(argument, shapes, dtypes))
        if argument.kwarg_only:
            kwargs[argument.name] = value
        else:
            args.append(value)
    return args, kwargs


def _value(argument: Any, shapes: list[Any], dtypes: Any) -> st.SearchStrategy[Any]:
    kind = str(argument.type)
    if kind.startswith("Optional["):
        return st.none() | _of(kind[9:-1], argument.name, shapes, dtypes)
    return _of(kind, argument.name, shapes, dtypes)


def _of(kind: str, name: str, shapes: list[Any], dtypes: Any) -> st.SearchStrategy[Any]:
    integers = st.integers(-2, 3) if "dim" in name else INTEGERS
    tensors = _tensors(name, shapes, dtypes)
    return {
        "Tensor": tensors,
        "List[Tensor]": st.lists(tensors, max_size=3),
        "List[Optional[Tensor]]": st.lists(st.none() | tensors, max_size=3),
        "int": integers,
        "List[int]": st.sampled_from(shapes).map(list) | st.lists(integers, max_size=4),
        "bool": st.booleans(),
        "float": st.just(0.5),
        "number": st.sampled_from((2, 0.5, True)),
        "str": st.sampled_from(("sum", "add", "mean", "valid")),
    }.get(kind, st.none())


@st.composite
def _tensors(draw: Any, name: str, shapes: list[Any], dtypes: Any) -> torch.Tensor:
    shape = list(draw(st.sampled_from(shapes) | SHAPES))
    if draw(st.integers(0, 2)) == 0:
        shape = shape[draw(st.integers(0, len(shape))) :]
    wants_index = name in ("index", "indices", "target", "mask", "condition") and draw(st.integers(0, 3))
    dtype = draw(st.sampled_from((torch.int64, torch.bool) if wants_index else dtypes))
    return tensor(*shape, dtype=dtype, device="meta" if draw(st.integers(0, 15)) == 0 else "cpu")


def tensor(*shape: int, dtype: torch.dtype = torch.float32, device: str = "cpu") -> torch.Tensor:
    """Matrices of ones on the diagonal: valid as indices, and invertible."""
    made = torch.zeros(shape, dtype=dtype, device=device)
    if len(shape) > 1:
        made.diagonal(dim1=-2, dim2=-1).fill_(1)
    return made


# -- calls that torch accepts, and the same with something changed

t, long = tensor, torch.int64
ACCEPTED: dict[str, list[Any]] = {
    "mm": [t(2, 4), t(4, 6)],
    "_int_mm": [t(32, 32, dtype=torch.int8), t(32, 32, dtype=torch.int8)],
    "addmm": [t(6), t(2, 4), t(4, 6)],
    "addmm_": [t(2, 6), t(2, 4), t(4, 6)],
    "bmm": [t(3, 2, 4), t(3, 4, 6)],
    "baddbmm": [t(3, 2, 6), t(3, 2, 4), t(3, 4, 6)],
    "baddbmm_": [t(3, 2, 6), t(3, 2, 4), t(3, 4, 6)],
    "mv": [t(2, 4), t(4)],
    "addmv": [t(2), t(2, 4), t(4)],
    "dot": [t(4), t(4)],
    "vdot": [t(4), t(4)],
    "outer": [t(4), t(3)],
    "matmul": [t(3, 2, 4), t(1, 4, 6)],
    "linear": [t(3, 4), t(6, 4), t(6)],
    "scaled_dot_product_attention": [t(2, 2, 3, 4), t(2, 2, 6, 4), t(2, 2, 6, 3)],
    "add": [t(2, 3), t(3)],
    "add_": [t(2, 3), t(3)],
    "mul_": [t(2, 3), t(2, 1)],
    "div_": [t(2, 3), t(1, 3)],
    "bitwise_and": [t(2, 3, dtype=long), t(3, dtype=torch.bool)],
    "where": [t(2, 3, dtype=torch.bool), t(3), t(2, 1)],
    "lerp": [t(2, 3), t(2, 3), t(3)],
    "addcmul_": [t(2, 3), t(2, 3), t(3)],
    "masked_fill": [t(2, 3), t(3, dtype=torch.bool), 1.0],
    "masked_fill_": [t(2, 3), t(3, dtype=torch.bool), 1.0],
    "copy_": [t(2, 3), t(1, 3)],
    "expand": [t(2, 1), [3, 2, 4]],
    "mse_loss": [t(2, 3), t(2, 3)],
    "cat": [[t(2, 3), t(4, 3)], 0],
    "stack": [[t(2, 3), t(2, 3)], 2],
    "view": [t(2, 6), [3, -1]],
    "_unsafe_view": [t(2, 6), [3, 4]],
    "reshape": [t(2, 6), [4, 3]],
    "split_with_sizes": [t(2, 6), [2, 4], 1],
    "split": [t(2, 6), 4, 1],
    "chunk": [t(2, 6), 4, 1],
    "permute": [t(2, 3, 4), [2, 0, 1]],
    "flip": [t(2, 3, 4), [0, -1]],
    "transpose": [t(2, 3, 4), 0, -1],
    "unsqueeze": [t(2, 3), 2],
    "squeeze": [t(2, 1), 1],
    "diagonal": [t(2, 3, 3), 0, 1, 2],
    "repeat": [t(2, 3), [1, 2, 2]],
    "unfold": [t(2, 6), 1, 2, 2],
    "triu": [t(2, 3)],
    "sum": [t(2, 3), [1]],
    "mean": [t(2, 3), [1]],
    "cumsum": [t(2, 3), 1],
    "cummax": [t(2, 3), 1],
    "_softmax": [t(2, 3), -1, False],
    "_log_softmax": [t(2, 3), -1, False],
    "max": [t(2, 3), 1],
    "sort": [t(2, 3), 1],
    "topk": [t(2, 6), 3, 1],
    "select": [t(2, 3), 1, -3],
    "slice": [t(2, 3), 1, 0, 2, 1],
    "narrow": [t(2, 6), 1, 2, 4],
    "unbind": [t(2, 3), 1],
    "unflatten": [t(2, 6), 1, [2, 3]],
    "gather": [t(4, 3), 0, t(2, 3, dtype=long)],
    "scatter": [t(4, 3), 0, t(2, 3, dtype=long), t(2, 3)],
    "scatter_add_": [t(4, 3), 1, t(2, 3, dtype=long), t(2, 3)],
    "scatter_reduce": [t(4, 3), 0, t(2, 3, dtype=long), t(2, 3), "sum"],
    "index_select": [t(2, 3), 1, t(4, dtype=long)],
    "index_add": [t(2, 3), 1, t(4, dtype=long), t(2, 4)],
    "index_copy_": [t(2, 3), 1, t(1, dtype=long), t(2, 1)],
    "index": [t(2, 3), [t(2, dtype=torch.bool), t(1, dtype=long)]],
    "index_put_": [t(2, 3), [t(2, 3, dtype=torch.bool)], t()],
    "embedding": [t(6, 4), t(2, 3, dtype=long)],
    "convolution": [t(2, 4, 6, 6), t(6, 2, 3, 3), t(6), [1, 1], [0, 0], [1, 1], False, [0, 0], 2],
    "conv1d": [t(2, 4, 6), t(6, 4, 3), t(6), [1], [0], [1], 1],
    "conv2d": [t(4, 6, 6), t(6, 2, 3, 3), t(6), [2, 2], [1, 1], [2, 2], 2],
    "conv3d": [t(2, 4, 4, 4, 4), t(6, 4, 2, 2, 2), None, [1] * 3, [0] * 3, [1] * 3, 1],
    "conv_transpose1d": [t(2, 4, 6), t(4, 3, 3), t(6), [1], [0], [0], 2, [1]],
    "conv_transpose2d": [t(2, 4, 6, 6), t(4, 6, 3, 3), t(6), [1, 1], [0, 0], [0, 0], 1, [1, 1]],
    "max_pool2d_with_indices": [t(2, 4, 6, 6), [3, 3], [2, 2], [1, 1], [1, 1], False],
    "max_pool2d": [t(4, 6, 6), [2, 2]],
    "avg_pool2d": [t(2, 4, 6, 6), [3, 3], [2, 2], [1, 1], False],
    "max_pool3d_with_indices": [t(2, 2, 6, 6, 6), [3, 3, 3], [2, 2, 2], [1, 1, 1], [1, 1, 1], False],
    "avg_pool3d": [t(2, 2, 6, 6, 6), [3, 3, 3], [2, 2, 2], [1, 1, 1], False],
    "native_layer_norm": [t(2, 3, 4), [3, 4], t(3, 4), t(3, 4), 0.1],
    "layer_norm": [t(2, 3, 4), [4], t(4), t(4)],
    "rms_norm": [t(2, 3, 4), [4], t(4)],
    "batch_norm": [t(2, 4, 3), t(4), t(4), t(4), t(4), False, 0.1, 0.1, False],
    "group_norm": [t(2, 4, 3), 2, t(4), t(4)],
    "pixel_shuffle": [t(2, 8, 3, 3), 2],
    "pixel_unshuffle": [t(2, 2, 4, 6), 2],
    "reflection_pad1d": [t(2, 3, 4), [3, 2]],
    "reflection_pad2d": [t(2, 3, 4, 3), [2, 1, 3, 3]],
    "linalg_inv_ex": [t(2, 3, 3)],
    "linalg_cholesky_ex": [t(2, 3, 3)],
    "linalg_det": [t(3, 3)],
    "linalg_eig": [t(3, 3)],
    "nll_loss_forward": [t(4, 3), t(4, dtype=long), t(3), 1, -100],
    "nll_loss2d_forward": [t(2, 3, 4, 6), t(2, 4, 6, dtype=long), t(3), 1, -100],
}


@st.composite
def changed(draw: Any, args: list[Any]) -> list[Any]:
    """The arguments with up to three of them changed a little."""
    args = [_copied(argument) for argument in args]
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.integers(0, len(args) - 1))
        args[place] = draw(_changed(args[place]))
    return args


def _copied(argument: Any) -> Any:
    if isinstance(argument, torch.Tensor):
        return argument.clone()
    return [_copied(item) for item in argument] if isinstance(argument, list) else argument


@st.composite
def _changed(draw: Any, argument: Any) -> Any:
    if isinstance(argument, torch.Tensor):
        return draw(_changed_tensor(argument))
    if isinstance(argument, bool) or argument is None or not isinstance(argument, (int, list)):
        return argument
    if isinstance(argument, int):
        return draw(INTEGERS | st.integers(-5, 7))
    items = list(argument)
    change = draw(st.sampled_from(("item", "item", "drop", "repeat"))) if items else ""
    place = draw(st.integers(0, len(items) - 1)) if items else 0
    if change == "item":
        items[place] = draw(_changed(items[place]))
    elif change == "drop":
        del items[place]
    elif change == "repeat":
        items.insert(place, items[place])
    return items


@st.composite
def _changed_tensor(draw: Any, argument: torch.Tensor) -> torch.Tensor:
    shape, dtype = list(argument.shape), argument.dtype
    change = draw(st.sampled_from(("size", "size", "rank", "dtype")))
    place = draw(st.integers(0, len(shape) - 1)) if shape else 0
    if change == "size" and shape:
        shape[place] = draw(SIZES)
    elif change == "rank":
        shape = shape[:place] + shape[place + 1 :] if draw(st.booleans()) else [*shape[:place], 1, *shape[place:]]
    elif change == "dtype":
        dtype = draw(st.sampled_from(DTYPES))
    return tensor(*shape, dtype=dtype)


# -- the properties


def _moved(argument: Any, data: st.DataObject) -> Any:
    if isinstance(argument, torch.Tensor):
        device = data.draw(st.sampled_from(("cpu", "cuda:0", "cuda:1")))
        return torch.empty(argument.shape, dtype=argument.dtype, device=device)
    return [_moved(item, data) for item in argument] if isinstance(argument, list) else argument


def assert_sound(call: Any, inference: bool) -> None:
    def run() -> None:
        with torch.inference_mode(inference):
            call()

    for claim in claims(run):
        assert claim.failed or not claim.constraints


@settings(max_examples=400, deadline=None, suppress_health_check=SLOW)
@given(st.booleans(), st.data())
def test_what_torch_accepts_violates_nothing(inference: bool, data: st.DataObject) -> None:
    op = data.draw(st.sampled_from(OVERLOADS))
    args, kwargs = data.draw(any_call(op))
    assert_sound(lambda: op(*args, **kwargs), inference)


@settings(max_examples=800, deadline=None, suppress_health_check=SLOW)
@given(st.sampled_from(sorted(ACCEPTED)), st.booleans(), st.data())
def test_a_call_that_is_a_little_wrong_is_refused_where_it_violates_something(
    name: str, inference: bool, data: st.DataObject
) -> None:
    args = data.draw(changed(ACCEPTED[name]))
    assert_sound(lambda: getattr(torch.ops.aten, name)(*args), inference)


@settings(max_examples=200, deadline=None, suppress_health_check=SLOW)
@given(st.sampled_from(sorted(ACCEPTED)), st.data())
def test_operands_on_different_devices_are_refused_where_that_is_claimed(name: str, data: st.DataObject) -> None:
    def call() -> None:
        with FakeTensorMode():  # which has all devices, on every machine
            getattr(torch.ops.aten, name)(*[_moved(argument, data) for argument in ACCEPTED[name]])

    for claim in claims(call):
        devices = [it for it in claim.constraints if it["kind"] == "same" and it["left"]["of"] == "device"]
        assert claim.failed or not devices


@pytest.mark.parametrize("name", ACCEPTED)
def test_the_calls_that_are_changed_are_valid_before(name: str) -> None:
    for inference in (False, True):
        with torch.inference_mode(inference):
            getattr(torch.ops.aten, name)(*_copied(ACCEPTED[name]))
