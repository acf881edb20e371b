"""Work that goes around the dispatcher, or seems to: recorded where torch shows it, else the reason why it is not."""

import asyncio
import copy
import functools
import io
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.pool import ThreadPool
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.autograd import forward_ad
from torch.utils import dlpack
from torch.utils._python_dispatch import _disable_current_modes

from .witness import Row, assert_recorded_as_said, row


def writes_through(expose: Any) -> Any:
    """A program that writes into the memory that ``expose`` hands out of a tensor."""

    def program(_: Any, x: torch.Tensor) -> torch.Tensor:
        y = x.clone()
        expose(y)[0] = 5
        return y + 1

    return program


def writes_into_storage(_: Any, x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y.untyped_storage().fill_(0)  # pyright: ignore[reportAttributeAccessIssue]
    return y + 1


def from_an_array(_: Any, x: torch.Tensor) -> torch.Tensor:
    array = np.ones(tuple(x.shape), dtype=np.float32)
    return x + torch.from_numpy(array)


def through_a_capsule(_: Any, x: torch.Tensor) -> torch.Tensor:
    capsule = dlpack.to_dlpack(x.clone())  # pyright: ignore[reportPrivateImportUsage]
    return dlpack.from_dlpack(capsule) + 1


def replaces_data(model: Any, x: torch.Tensor) -> torch.Tensor:
    model.linear.weight.data = torch.ones(4, 4)
    return model.linear(x)


def writes_to_data(model: Any, x: torch.Tensor) -> torch.Tensor:
    model.linear.weight.data.mul_(2)
    return model.linear(x)


def sets_state(_: Any, x: torch.Tensor) -> torch.Tensor:
    y = torch.zeros(2, 4)
    y.__setstate__((x.untyped_storage(), 0, (2, 4), (4, 1)))
    return y + 1


def swaps(_: Any, x: torch.Tensor) -> list[torch.Tensor]:
    first, second = x.clone(), x + 1
    torch.utils.swap_tensors(first, second)
    return [first * 2, second]


def saves_and_loads(_: Any, x: torch.Tensor) -> torch.Tensor:
    file = io.BytesIO()
    torch.save(x, file)
    file.seek(0)
    return torch.load(file) + 1


def below_the_dispatcher(_: Any, x: torch.Tensor) -> torch.Tensor:
    with _disable_current_modes():
        y = x.sin()
    with torch._C._DisableTorchDispatch():
        return y + 1


def traces(_: Any, x: torch.Tensor) -> torch.Tensor:
    traced: Any = torch.jit.trace(lambda y: y.sin() + 1, x)
    return traced(x)


def several_times(x: torch.Tensor) -> torch.Tensor:
    for _ in range(50):
        x = x.sin()
    return x


def forks(x: torch.Tensor) -> torch.Tensor:
    first, second = torch.jit.fork(several_times, x), torch.jit.fork(several_times, x)
    return torch.jit.wait(first) + torch.jit.wait(second)


@functools.cache
def scripted_forks() -> Any:
    return torch.jit.script(forks)


def forks_in_script(_: Any, x: torch.Tensor) -> torch.Tensor:
    return scripted_forks()(x)


def on(start: Any) -> Any:
    """A program that leaves its work to what ``start`` makes of a function."""

    def program(model: Any, x: torch.Tensor) -> torch.Tensor:
        results: list[torch.Tensor] = []
        start(lambda: results.append(model.linear(x)))
        return results[0]

    return program


def thread(work: Any) -> None:
    worker = threading.Thread(target=work)
    worker.start()
    worker.join(30)


def timer(work: Any) -> None:
    worker = threading.Timer(0, work)
    worker.start()
    worker.join(30)


def executor(work: Any) -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(work).result()


def thread_pool(work: Any) -> None:
    with ThreadPool(1) as pool:
        pool.apply(work)


def event_loop_thread(work: Any) -> None:
    async def wait() -> None:
        await asyncio.to_thread(work)

    asyncio.run(wait())


def event_loop(work: Any) -> None:
    async def several() -> None:
        async def one() -> None:
            await asyncio.sleep(0)
            work()

        await asyncio.gather(one(), one())

    asyncio.run(several())


def generator(model: Any, x: torch.Tensor) -> torch.Tensor:
    def steps(y: torch.Tensor) -> Any:
        while True:
            y = model.linear(y)
            yield y

    running = steps(x)
    next(running)
    return next(running)


# -- autograd


def leaf(x: torch.Tensor) -> torch.Tensor:
    return x.clone().requires_grad_()


def backward(model: Any, x: torch.Tensor) -> list[Any]:
    model.linear(x).relu().softmax(-1).square().mean().backward()
    return [parameter.grad for parameter in model.linear.parameters()]


def anomalies(model: Any, x: torch.Tensor) -> list[Any]:
    with torch.autograd.detect_anomaly():
        return backward(model, x)


def double_backward(model: Any, x: torch.Tensor) -> Any:
    x = leaf(x)
    (grad,) = torch.autograd.grad(model.linear(x).sin().sum(), x, create_graph=True)
    grad.square().sum().backward()
    return x.grad


def twice_over_one_graph(model: Any, x: torch.Tensor) -> Any:
    y = model.linear(x).sum()
    y.backward(retain_graph=True)
    y.backward()
    return model.linear.weight.grad


def tensor_hooks(model: Any, x: torch.Tensor) -> list[Any]:
    x = leaf(x)
    y = model.linear(x)
    y.register_hook(lambda grad: grad * 2)
    y.retain_grad()
    y.sum().backward()
    return [x.grad, y.grad]


def hooks_after_accumulation(model: Any, x: torch.Tensor) -> list[torch.Tensor]:
    seen: list[torch.Tensor] = []
    hook = model.linear.weight.register_post_accumulate_grad_hook(lambda parameter: seen.append(parameter.grad.clone()))
    model.linear(x).sum().backward()
    hook.remove()
    return seen


def hooks_of_nodes(model: Any, x: torch.Tensor) -> Any:
    y = model.linear(x)
    y.grad_fn.register_hook(lambda *_: None)
    y.grad_fn.register_prehook(lambda grads: (grads[0] * 3,))
    y.sum().backward()
    return model.linear.weight.grad


def hooks_of_saved_tensors(model: Any, x: torch.Tensor) -> Any:
    with torch.autograd.graph.saved_tensors_hooks(lambda saved: saved.clone(), lambda saved: saved * 1):
        y = model.linear(x).sin()
    y.sum().backward()
    return model.linear.weight.grad


class Triple(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x * 3

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> torch.Tensor:
        return grads[0] * 3 + 0 * ctx.saved_tensors[0]


class TripleInPlace(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.mark_dirty(x)
        return x.mul_(3)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> torch.Tensor:
        return grads[0] * 3


class Transformable(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x: torch.Tensor) -> torch.Tensor:
        return x * 3

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> torch.Tensor:
        return grads[0] * 3

    @staticmethod
    def jvp(ctx: Any, *tangents: torch.Tensor) -> torch.Tensor:
        return tangents[0] * 3


class OwnVmap(torch.autograd.Function):
    @staticmethod
    def forward(x: torch.Tensor) -> torch.Tensor:
        return x * 3

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> torch.Tensor:
        return grads[0] * 3

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: torch.Tensor) -> Any:
        return args[0] * 3, in_dims[0]


def applies(function: Any) -> Any:
    def program(model: Any, x: torch.Tensor) -> list[Any]:
        y = function.apply(model.linear(x))
        y.sum().backward()
        return [y, model.linear.weight.grad]

    return program


def forward_mode(_: Any, x: torch.Tensor) -> list[Any]:
    with forward_ad.dual_level():
        return list(forward_ad.unpack_dual(Transformable.apply(forward_ad.make_dual(x, torch.ones_like(x)))))


ROWS: dict[str, Row] = {
    "`item()`, `float()`, `int()`, `bool()` of a tensor": row(
        lambda _, x: x * x.sum().item() + float(x[0, 0]) + int(x[0, 1]) if x.sum() > -9 else x
    ),
    "printing a tensor": row(lambda _, x: (repr(x), f"{x.sum():.2f}", x + 1)),
    "iteration, `in` and `len` of a tensor": row(lambda _, x: sum(iter(x)) + len(x) + (1.0 in x)),
    "`numpy()`": row(writes_through(lambda y: y.numpy()), "escaped_storage"),
    "`numpy.asarray`, a NumPy function of a tensor": row(
        lambda _, x: torch.as_tensor(np.sin(x)) + 1, "escaped_storage"
    ),
    "a write to the array that `numpy.asarray` gives": row(writes_through(np.asarray), "escaped_storage"),
    "`tolist()`": row(lambda _, x: torch.tensor(x.tolist()) + 1, "unobserved_operation"),
    "`apply_`, `map_`": row(lambda _, x: x.clone().apply_(abs).map_(x, min) + 1, "unobserved_write"),
    "dispatch switched off": row(below_the_dispatcher, "unobserved_operation"),
    "`torch.jit.trace`": row(traces, "unobserved_operation"),
    "`torch.jit.fork` in scripted code": row(forks_in_script, "unobserved_thread"),
    "`torch.from_numpy`": row(from_an_array, "escaped_storage"),
    "`to_dlpack`": row(through_a_capsule, "escaped_storage"),
    "`torch.from_dlpack`, `__dlpack__`": row(writes_through(torch.from_dlpack), "escaped_storage"),
    "`data_ptr()`": row(lambda _, x: x + (x.data_ptr() == 0), "escaped_storage"),
    "`untyped_storage()`": row(writes_into_storage, "escaped_storage", "unsupported_argument"),
    "`storage()`": row(writes_through(lambda y: y.storage()), "escaped_storage", "unsupported_argument"),
    "`__setstate__`": row(sets_state, "escaped_storage", "unsupported_argument"),
    "`tensor.data = other`": row(replaces_data, "unobserved_write"),
    "an in-place operation on `tensor.data`": row(writes_to_data),
    "`module.to(dtype)`": row(lambda model, x: model.linear.to(torch.bfloat16)(x.bfloat16()), "unobserved_write"),
    "`torch.utils.swap_tensors`": row(swaps, "unobserved_write"),
    "`copy.deepcopy`, `pickle` of a tensor": row(
        lambda _, x: copy.deepcopy(x) + pickle.loads(pickle.dumps(x)), "unsupported_argument"
    ),
    "`torch.save` and `torch.load`": row(saves_and_loads, "unsupported_argument"),
    "`torch.tensor`, `torch.Tensor`, `new_tensor` of numbers": row(
        lambda _, x: x + torch.tensor([1.0, 2, 3, 4]) + torch.Tensor([1, 2, 3, 4]) + x.new_tensor([1, 2, 3, 4])
    ),
    "`threading.Thread`": row(on(thread), "unobserved_thread"),
    "`threading.Timer`": row(on(timer), "unobserved_thread"),
    "`ThreadPoolExecutor`": row(on(executor), "unobserved_thread"),
    "`multiprocessing.pool.ThreadPool`": row(on(thread_pool), "unobserved_thread"),
    "`asyncio.to_thread`": row(on(event_loop_thread), "unobserved_thread"),
    "coroutines on this thread": row(on(event_loop)),
    "generators": row(generator),
    "`torch.jit.fork` of a Python function": row(lambda model, x: torch.jit.wait(torch.jit.fork(model.linear, x)) + 1),
    "`DataParallel` without devices": row(lambda model, x: nn.DataParallel(model.linear)(x)),
    "`backward()`": row(backward),
    "`torch.autograd.grad`, and a gradient of it": row(double_backward),
    "two backward passes over one graph": row(twice_over_one_graph),
    "anomaly detection": row(anomalies),
    "hooks of tensors, `retain_grad`": row(tensor_hooks),
    "hooks after accumulation": row(hooks_after_accumulation),
    "hooks of autograd nodes": row(hooks_of_nodes),
    "`saved_tensors_hooks`": row(hooks_of_saved_tensors),
    "`autograd.Function`, forward and backward": row(applies(Triple)),
    "`autograd.Function` that writes its input": row(applies(TripleInPlace)),
    "`autograd.Function` under `vmap`": row(lambda _, x: torch.func.vmap(Transformable.apply)(x)),
    "`autograd.Function` with a `vmap` of its own": row(lambda _, x: torch.func.vmap(OwnVmap.apply)(x)),
    "`autograd.Function` under `torch.func.grad`": row(
        lambda _, x: torch.func.grad(lambda y: Transformable.apply(y).sum())(x)
    ),
    "`autograd.Function` in forward mode": row(forward_mode),
    "`autograd.gradcheck`": row(lambda _, x: torch.autograd.gradcheck(torch.sin, leaf(x.double()))),
}


NOT_DISPATCHED = {
    "dispatch switched off",
    "`torch.jit.trace`",
    "`torch.jit.fork` in scripted code",
}
"""Here the independent mode sees another part of the work than the recorder does."""


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.filterwarnings("ignore")
def test_the_coverage_page_tells_of(name: str) -> None:
    assert_recorded_as_said(ROWS[name], sees_all=name not in NOT_DISPATCHED)
