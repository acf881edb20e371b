"""One model of the zoo as data, and how it becomes a program to record. Small configurations, random weights."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import torch
from torch import nn

Inputs = Callable[[], dict[str, Any]]
Way = Literal["eval", "train", "generate"]


@dataclass(frozen=True)
class Program:
    """What is recorded: one call of a model, or a block that does more."""

    model: nn.Module | None
    inputs: Mapping[str, Any] = field(default_factory=dict)
    args: tuple[Any, ...] = ()
    block: Callable[[], Any] | None = None


@dataclass(frozen=True)
class Entry:
    """A row of the zoo. ``make`` is called in a process that has seeded torch."""

    name: str
    family: str
    make: Callable[[], Program]


@dataclass(frozen=True)
class Architecture:
    """A transformers class by name, with what its configuration says differently from the default.

    eval: one forward. train: forward, backward and a step of SGD. generate: three tokens, with its cache.
    """

    model: str
    config: Mapping[str, Any]
    inputs: Inputs
    way: Way = "eval"
    attention: str | None = None

    @property
    def name(self) -> str:
        words = [self.model, *([self.way] if self.way != "eval" else []), *([self.attention] if self.attention else [])]
        return ", ".join(words)

    def make(self) -> Program:
        import transformers

        kind = getattr(transformers, self.model)
        chosen = {"attn_implementation": self.attention} if self.attention else {}
        model = kind._from_config(kind.config_class(**self.config), **chosen)
        model.train(self.way == "train")
        inputs = self.inputs()
        if self.way == "train":
            return Program(model, inputs, block=lambda: _train(model, inputs))
        if self.way == "generate":
            generate = partial(model.generate, **inputs, max_new_tokens=3, do_sample=False)
            return Program(model, inputs, block=generate)
        return Program(model, inputs)


def _train(model: nn.Module, inputs: Mapping[str, Any]) -> torch.Tensor:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    loss = model(**inputs).loss
    loss.backward()
    optimizer.step()
    return loss.detach()


def entries(family: str, architectures: "tuple[Architecture, ...]") -> tuple[Entry, ...]:
    return tuple(Entry(item.name, family, item.make) for item in architectures)


def tokens(length: int = 7, batch: int = 2, vocabulary: int = 90) -> torch.Tensor:
    return torch.arange(3, 3 + batch * length).view(batch, length) % vocabulary
