"""Programs that differentiate: checkpoints, derivatives, transforms of functions, compiled and traced models."""

import copy
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, vjp, vmap
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

from zoo.architecture import Entry

from .training_programs import Block, loss_of, program

# -- recomputation


def recomputed(model: Any, x: Tensor, reentrant: bool) -> Any:
    y = checkpoint(model, x.clone().requires_grad_(), use_reentrant=reentrant)
    y.sum().backward()
    return model[0].weight.grad


def recomputed_in_parts(model: Any, x: Tensor) -> Any:
    checkpoint_sequential(model, 2, x.clone().requires_grad_(), use_reentrant=False).sum().backward()
    return model[4].weight.grad


def recomputed_by_choice(model: Any, x: Tensor) -> Any:
    from torch.utils.checkpoint import create_selective_checkpoint_contexts

    chosen = partial(create_selective_checkpoint_contexts, [torch.ops.aten.addmm.default])
    checkpoint(model, x, use_reentrant=False, context_fn=chosen).sum().backward()
    return model[0].weight.grad


# -- derivatives


class Clipped(torch.autograd.Function):
    """Writes to its input, and has its own derivative."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, bound: float) -> tuple[Tensor, Tensor]:
        kept = x.abs() < bound
        ctx.save_for_backward(kept)
        ctx.mark_dirty(x)
        ctx.mark_non_differentiable(kept)
        return x.clamp_(-bound, bound), kept

    @staticmethod
    def backward(ctx: Any, *given: Tensor) -> Any:
        (kept,) = ctx.saved_tensors
        return given[0] * kept, None


def own_derivative(model: Any, x: Tensor) -> Any:
    y, kept = Clipped.apply(model(x), 0.3)
    (y * kept).sum().backward()
    return model[0].bias.grad


def second_derivative(model: Any, x: Tensor) -> list[Tensor]:
    point = x.clone().requires_grad_()
    (first,) = torch.autograd.grad(model(point).sin().sum(), point, create_graph=True)
    return list(torch.autograd.grad(first.pow(2).sum(), [point, model[0].weight]))


def forward_derivative(model: Any, x: Tensor) -> Any:
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x, torch.ones_like(x))
        return torch.autograd.forward_ad.unpack_dual(model[0](dual).tanh()).tangent


def leaf_written_in_place(model: Any, x: Tensor) -> Tensor:
    with torch.no_grad():
        model[0].weight.mul_(0.5)
        nn.init.orthogonal_(model[4].weight)
    loss_of(model, x).backward()
    model[0].weight.grad = None
    return model(x).detach_().mul_(2)


def per_sample(model: Any, x: Tensor) -> Any:
    weights = {name: item.detach() for name, item in model.named_parameters()}

    def loss(weights: Any, row: Tensor) -> Tensor:
        return functional_call(model, weights, (row[None],)).pow(2).sum()

    return vmap(grad(loss), in_dims=(None, 0), randomness="different")(weights, x)


def ensemble(model: Any, x: Tensor) -> Any:
    models = [copy.deepcopy(model).eval() for _ in range(3)]
    weights, buffers = torch.func.stack_module_state(models)
    return vmap(lambda one, two: functional_call(models[0], (one, two), (x,)))(weights, buffers)


def derivatives_of_functions(model: Any, x: Tensor) -> list[Any]:
    f, row = model.eval(), x[0]
    return [
        grad_and_value(lambda y: f(y).sum())(row),
        jvp(f, (row,), (row,)),
        vjp(f, row)[1](row),
        jacrev(f)(row),
        jacfwd(f)(row),
        hessian(lambda y: f(y).sum())(row[:6]),
        vmap(vmap(torch.sin))(x),
        vmap(lambda y: y.cumsum(0).masked_fill(y > 0, 0.0), in_dims=1, out_dims=1)(x),
        torch.autograd.functional.jacobian(f, row),
    ]


# -- compiled, scripted, traced


def compiled(model: Any, x: Tensor) -> Any:
    return torch.compile(model.eval(), backend="eager")(x)


def scripted(model: Any, x: Tensor) -> Any:
    return torch.jit.script(model.eval())(x)


def symbolically_traced(model: Any, x: Tensor) -> Any:
    return torch.fx.symbolic_trace(model.eval())(x)


def conditional(model: Any, x: Tensor) -> Any:
    return torch.cond(x.sum() > 0, lambda y: y + 1, lambda y: y - 1, (x,))


def survived_errors(model: Any, x: Tensor) -> Tensor:
    survived = x
    for attempt in (lambda: x @ torch.ones(5), lambda: x.view(7), lambda: model(x[:, :2]), lambda: x[99]):
        try:
            attempt()
        except (RuntimeError, IndexError):
            survived = survived + 1
    return survived


def profiled(model: Any, x: Tensor) -> Tensor:
    with torch.profiler.record_function("outer"), torch.profiler.record_function("inner"):
        return model(x)


BLOCKS: dict[str, Block] = {
    "checkpoint": partial(recomputed, reentrant=False),
    "reentrant checkpoint": partial(recomputed, reentrant=True),
    "checkpoint in parts": recomputed_in_parts,
    "checkpoint by choice": recomputed_by_choice,
    "an autograd function that writes": own_derivative,
    "a second derivative": second_derivative,
    "a forward derivative": forward_derivative,
    "parameters written in place": leaf_written_in_place,
    "gradients of each sample": per_sample,
    "an ensemble under vmap": ensemble,
    "transforms of functions": derivatives_of_functions,
    "a compiled model, eager backend": compiled,
    "a scripted model": scripted,
    "a symbolically traced model": symbolically_traced,
    "cond": conditional,
    "errors that are survived": survived_errors,
    "profiler ranges": profiled,
}
ENTRIES = tuple(Entry(name, "derivatives", partial(program, block)) for name, block in BLOCKS.items())
