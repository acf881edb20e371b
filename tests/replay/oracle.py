"""Records a program under a witness, runs the capture again, and says what came of it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

import tensorviz
from tensorviz.contracts.capture import CaptureSnapshot
from tensorviz.edges.inprocess import Recording

from .interpreter import Interpreter, Known
from .trees import Differs
from .witness import Seen, Step, Witness, leaves

Names = tuple[str, ...]


@dataclass(frozen=True)
class Watched:
    """A recorded run and what a witness kept of it. ``returned`` are the tensors of the result, by ``id()``."""

    snapshot: CaptureSnapshot
    steps: list[Step]
    known: Known
    error: BaseException | None
    result: Any
    returned: dict[int, Seen] | None

    def difference(self, snapshot: CaptureSnapshot | None = None) -> str | None:
        """The first difference between the run and a replay of its capture; None when every bit was reached."""
        interpreter = Interpreter(snapshot or self.snapshot, self.steps, self.known)
        try:
            with torch.random.fork_rng(devices=[]):
                interpreter.run()
                if self.returned is not None:
                    interpreter.compare_result(self.result, self.returned)
        except Differs as difference:
            return str(difference)
        return None


@dataclass(frozen=True)
class Verdict:
    """What a capture says of itself, and how its replay differed."""

    snapshot: CaptureSnapshot
    difference: str | None
    error: BaseException | None

    @property
    def is_sound(self) -> bool:
        """A complete capture replays; a partial one has its reasons."""
        if self.snapshot.status == "complete":
            return self.difference is None
        return bool(self.snapshot.reasons)

    def __str__(self) -> str:
        reasons = ", ".join(reason.code for reason in self.snapshot.reasons)
        status = self.snapshot.status + (f": {reasons}" if reasons else "")
        return f"{status}; {len(self.snapshot.operations)} operations; {self.difference or 'replayed'}"


def examine_call(model: nn.Module, *args: Any, **kwargs: Any) -> Verdict:
    """One recorded call of a model, replayed."""
    return judge(watch_call(model, *args, **kwargs))


def examine_block(block: Callable[[], Any], model: nn.Module | None = None) -> Verdict:
    """Anything, recorded and replayed."""
    return judge(watch(block, model))


def judge(watched: Watched) -> Verdict:
    return Verdict(watched.snapshot, watched.difference(), watched.error)


def watch_call(model: nn.Module, *args: Any, **kwargs: Any) -> Watched:
    """One call of a model: its result is compared too."""
    return watch(lambda: model(*args, **kwargs), model, (args, kwargs))


def watch(block: Callable[[], Any], model: nn.Module | None = None, call: tuple[Any, Any] | None = None) -> Watched:
    """``call`` are the arguments of a block that is one call of the model."""
    witness = Witness()
    states = {path: witness.keep(tensor) for path, tensor in named_state(model)} if model is not None else {}
    inputs = {path: witness.keep(tensor) for path, tensor in leaves(*(call or ((), {})), Tensor)}
    error, result = None, None
    run = Recording()
    with witness:
        try:
            with tensorviz.record(model, into=run):
                result = block()
        except Exception as raised:
            error = raised
    returned = None
    if call is not None and error is None:
        returned = {id(tensor): witness.see(tensor) for _, tensor in leaves((result,), {}, Tensor)}
    return Watched(run.snapshot, witness.steps, Known(witness.kept, states, inputs), error, result, returned)


def named_state(module: nn.Module, path: Names = (), above: tuple[int, ...] = ()) -> Iterator[tuple[str, Tensor]]:
    """Parameters and buffers under every path that registers them; a module that contains itself is entered once."""
    for own in (module._parameters, module._buffers):
        yield from ((".".join((*path, name)), tensor) for name, tensor in own.items() if tensor is not None)
    for name, child in module._modules.items():
        if child is not None and id(child) not in above:
            yield from named_state(child, (*path, name), (*above, id(module)))
