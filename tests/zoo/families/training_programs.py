"""Programs that differentiate: optimizers, hooks, checkpoints, transforms of functions, precision."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from zoo.architecture import Entry, Program

Block = Callable[[Any, Tensor], Any]
"""A block of code with a network and an input."""
WIDTH = 6


def network(width: int = WIDTH) -> nn.Sequential:
    return nn.Sequential(nn.Linear(width, 8), nn.Tanh(), nn.Dropout(0.3), nn.LayerNorm(8), nn.Linear(8, width))


def program(block: Block) -> Program:
    model, x = network(), torch.randn(4, WIDTH)
    return Program(model, block=lambda: block(model, x))


def loss_of(model: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    return functional.mse_loss(model(x), x)


# -- optimizers


def steps(make: Callable[[Any], torch.optim.Optimizer]) -> Block:
    def run(model: Any, x: Tensor) -> Tensor:
        optimizer = make(model.parameters())
        for _ in range(2):
            optimizer.zero_grad()
            loss_of(model, x).backward()
            optimizer.step()
        return loss_of(model, x).detach()

    return run


def with_a_closure(model: Any, x: Tensor) -> Any:
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = loss_of(model.eval(), x)
        loss.backward()
        return loss

    return optimizer.step(closure)


def scheduled(model: Any, x: Tensor) -> Tensor:
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, amsgrad=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.2, total_steps=4)
    average = torch.optim.swa_utils.AveragedModel(model)
    for _ in range(3):
        loss_of(model, x).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
        schedule.step()
        average.update_parameters(model)
    return average(x)


def accumulated(model: Any, x: Tensor) -> list[Tensor]:
    for part in x.split(2):
        loss_of(model, part).backward()
    return [parameter.grad for parameter in model.parameters() if parameter.grad is not None]


def sparse_gradients(model: Any, x: Tensor) -> Tensor:
    table = nn.Embedding(9, WIDTH, sparse=True)
    optimizer = torch.optim.SparseAdam(table.parameters())
    for _ in range(2):
        optimizer.zero_grad()
        loss_of(model, table(torch.tensor([1, 4, 1]))).backward()
        optimizer.step()
    return table.weight.detach()


# -- hooks


def module_hooks(model: Any, x: Tensor) -> Tensor:
    handles = [
        model[0].register_forward_pre_hook(lambda _, args: (args[0] * 2,)),
        model[1].register_forward_hook(lambda _, args, output: output + 1),
        model[4].register_full_backward_hook(lambda _, given, come: tuple(item * 2 for item in given)),
        model[4].register_full_backward_pre_hook(lambda _, come: tuple(item + 0.1 for item in come)),
        nn.modules.module.register_module_forward_hook(lambda module, args, output: None),
    ]
    loss_of(model, x).backward()
    for handle in handles:
        handle.remove()
    return model(x)


def tensor_hooks(model: Any, x: Tensor) -> list[Any]:
    seen: list[Tensor] = []
    inside = model[0](x)
    inside.register_hook(lambda given: given * 3)
    inside.retain_grad()
    model[0].weight.register_post_accumulate_grad_hook(lambda parameter: seen.append(parameter.grad.clone()))
    model[4](functional.gelu(inside)).sum().backward()
    return [inside.grad, *seen]


def packed_tensors(model: Any, x: Tensor) -> Any:
    with torch.autograd.graph.saved_tensors_hooks(lambda saved: saved.double(), lambda packed: packed.float()):
        loss = loss_of(model, x)
    loss.backward()
    with torch.autograd.graph.save_on_cpu():
        loss_of(model, x).backward()
    return model[0].weight.grad


# -- precision and modes


def mixed(model: Any, x: Tensor) -> Any:
    scaler = torch.amp.GradScaler("cpu")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = loss_of(model, x)
        with torch.autocast("cpu", enabled=False):
            loss = loss + model(x).sum()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    return model[0].weight.detach()


def without_gradients(model: Any, x: Tensor) -> list[Tensor]:
    with torch.inference_mode():
        first = model(x)
        first.view(-1).add_(1)
        first.t_()
    with torch.no_grad():
        second = model.eval()(x)
    return [first.clone(), second, functional.linear(x, model[0].weight)]


def reparametrized(model: Any, x: Tensor) -> Any:
    nn.utils.parametrizations.weight_norm(model[0])
    nn.utils.parametrizations.spectral_norm(model[4])
    loss_of(model, x).backward()
    return model(x)


def pruned(model: Any, x: Tensor) -> Any:
    from torch.nn.utils import prune

    prune.l1_unstructured(model[0], "weight", amount=0.5)
    loss_of(model, x).backward()
    return model(x)


# -- kinds of modules


def recurrent(model: Any, x: Tensor) -> list[Any]:
    rows = x.view(4, 1, WIDTH)
    layers = [nn.LSTM(WIDTH, 4, 2, dropout=0.2), nn.GRU(WIDTH, 4, bidirectional=True), nn.RNN(WIDTH, 4)]
    results = [layer(rows)[0] for layer in layers]
    torch.stack([item.sum() for item in results]).sum().backward()
    return [*results, nn.LSTMCell(WIDTH, 4)(x)[0]]


def packed_sequence(model: Any, x: Tensor) -> Any:
    packed = nn.utils.rnn.pack_padded_sequence(x.view(2, 2, WIDTH), torch.tensor([2, 1]))
    output, _ = nn.GRU(WIDTH, 4)(packed)
    return nn.utils.rnn.pad_packed_sequence(output)


def attention(model: Any, x: Tensor) -> list[Any]:
    rows = x.view(1, 4, WIDTH)
    layer = nn.TransformerEncoderLayer(WIDTH, 2, 8, batch_first=True)
    trained = layer(rows)
    layer.eval()
    with torch.no_grad():
        fast = layer(rows)
    return [trained, fast, *nn.MultiheadAttention(WIDTH, 2)(rows, rows, rows)]


def normalized(model: Any, x: Tensor) -> list[Tensor]:
    image = x.view(2, 3, 2, 2)
    layers = [nn.BatchNorm2d(3), nn.InstanceNorm2d(3, track_running_stats=True), nn.GroupNorm(3, 3), nn.BatchNorm2d(3)]
    results = [layer(image) for layer in layers]
    torch.stack([item.sum() for item in results]).sum().backward()
    return [*results, *(layer.eval()(image) for layer in layers)]


def late_modules(model: Any, x: Tensor) -> Any:
    return nn.Sequential(nn.LazyLinear(3), nn.LazyBatchNorm1d())(x)


def embedded(model: Any, x: Tensor) -> list[Tensor]:
    words = torch.tensor([1, 2, 4, 1])
    table = nn.Embedding(9, WIDTH, max_norm=1.0, padding_idx=1)
    bag = nn.EmbeddingBag(9, WIDTH, mode="max")
    results = [table(words), bag(words, torch.tensor([0, 2]))]
    torch.stack([item.sum() for item in results]).sum().backward()
    return results


def losses(model: Any, x: Tensor) -> list[Tensor]:
    targets = torch.tensor([0, 5, 2, 1])
    logits = model(x)
    found = [
        functional.cross_entropy(logits, targets, label_smoothing=0.1),
        functional.nll_loss(logits.log_softmax(1), targets, ignore_index=2),
        functional.binary_cross_entropy_with_logits(logits, x.sigmoid()),
        functional.kl_div(logits.log_softmax(1), x.softmax(1), reduction="batchmean"),
        functional.huber_loss(logits, x),
        functional.triplet_margin_loss(logits, x, x.flip(0)),
        functional.ctc_loss(
            logits.log_softmax(1)[:, None], torch.tensor([[1, 2]]), torch.tensor([4]), torch.tensor([2])
        ),
        functional.cosine_embedding_loss(logits, x, torch.tensor([1, -1, 1, -1])),
    ]
    torch.stack(found).sum().backward()
    return found


BLOCKS: dict[str, Block] = {
    **{
        f"steps of {name}": steps(make)
        for name, make in {
            "SGD with momentum": lambda items: torch.optim.SGD(items, lr=0.1, momentum=0.9, nesterov=True),
            "Adam, one by one": lambda items: torch.optim.Adam(items, foreach=False),
            "Adam, foreach": lambda items: torch.optim.Adam(items, foreach=True),
            "Adam, fused": lambda items: torch.optim.Adam(items, fused=True),
            "Adam, capturable lr": lambda items: torch.optim.Adam(items, lr=torch.tensor(0.01)),
            "RMSprop": lambda items: torch.optim.RMSprop(items, centered=True, momentum=0.5),
            "Adagrad": torch.optim.Adagrad,
            "Adafactor": torch.optim.Adafactor,
            "NAdam": torch.optim.NAdam,
        }.items()
    },
    "LBFGS with a closure": with_a_closure,
    "a schedule, clipping and an average": scheduled,
    "accumulated gradients": accumulated,
    "sparse gradients": sparse_gradients,
    "module hooks": module_hooks,
    "tensor hooks": tensor_hooks,
    "saved tensors that are packed": packed_tensors,
    "mixed precision and a scaler": mixed,
    "inference mode and no_grad": without_gradients,
    "parametrizations": reparametrized,
    "pruning": pruned,
    "recurrent layers": recurrent,
    "a packed sequence": packed_sequence,
    "attention and its fast path": attention,
    "normalizations": normalized,
    "lazy modules": late_modules,
    "embeddings that renormalize": embedded,
    "losses": losses,
}
ENTRIES = tuple(Entry(name, "training", partial(program, block)) for name, block in BLOCKS.items())
