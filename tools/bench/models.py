"""The models that are measured, from configurations with random weights: nothing is downloaded.

Each has two sizes with the same operations: in ``tiny`` the tensors are so small that what is left is the cost of
running an operation at all.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import nn

Size = Literal["full", "tiny"]


@dataclass(frozen=True)
class Case:
    """A model and the arguments that it is called with."""

    model: nn.Module
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)

    def forward(self) -> Any:
        return self.model(*self.args, **self.kwargs)


class Mlp(nn.Module):
    """Three operations a layer: the transposed weight, the product, the activation."""

    def __init__(self, layers: int, width: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x


class Bottleneck(nn.Module):
    def __init__(self, inner: int, width: int, stride: int) -> None:
        super().__init__()
        outer = 4 * width
        self.reduce = nn.Sequential(nn.Conv2d(inner, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(True))
        self.mix = nn.Sequential(
            nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(True)
        )
        self.expand = nn.Sequential(nn.Conv2d(width, outer, 1, bias=False), nn.BatchNorm2d(outer))
        self.shortcut = nn.Sequential()
        if inner != outer or stride != 1:
            self.shortcut = nn.Sequential(nn.Conv2d(inner, outer, 1, stride, bias=False), nn.BatchNorm2d(outer))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.expand(self.mix(self.reduce(x)))
        y += self.shortcut(x)
        return torch.relu_(y)


class ResNet50(nn.Module):
    """The published shape; ``width`` is 64 there."""

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU(True), nn.MaxPool2d(3, 2, 1)
        )
        blocks, inner = [], width
        for stage, count in enumerate((3, 4, 6, 3)):
            for place in range(count):
                blocks.append(Bottleneck(inner, width << stage, 2 if stage and not place else 1))
                inner = 4 * width << stage
        self.blocks = nn.Sequential(*blocks)
        self.classify = nn.Linear(inner, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.blocks(self.stem(x))
        return self.classify(torch.flatten(nn.functional.adaptive_avg_pool2d(x, 1), 1))


def mlp(size: Size) -> Case:
    width, batch = (256, 64) if size == "full" else (8, 1)
    return Case(Mlp(200, width), (torch.randn(batch, width),))


def resnet50(size: Size) -> Case:
    width, classes, pixels = (64, 1000, 224) if size == "full" else (2, 10, 32)
    return Case(ResNet50(width, classes), (torch.randn(1, 3, pixels, pixels),))


def gpt2(size: Size) -> Case:
    from transformers import GPT2Config, GPT2LMHeadModel

    small = {"n_embd": 24, "vocab_size": 64, "n_positions": 32, "bos_token_id": 0, "eos_token_id": 0}
    config = GPT2Config(use_cache=False, **_when_tiny(size, small))
    return Case(GPT2LMHeadModel(config), kwargs={"input_ids": _tokens(size, config.vocab_size)})


def bert(size: Size) -> Case:
    from transformers import BertConfig, BertModel

    small = {"hidden_size": 24, "intermediate_size": 48, "vocab_size": 64}
    config = BertConfig(**_when_tiny(size, small))
    return Case(BertModel(config), kwargs={"input_ids": _tokens(size, config.vocab_size)})


def t5(size: Size) -> Case:
    from transformers import T5Config, T5ForConditionalGeneration

    small = {"d_model": 16, "d_kv": 2, "d_ff": 32, "vocab_size": 64}
    config = T5Config(use_cache=False, **_when_tiny(size, small))
    tokens = _tokens(size, config.vocab_size)
    return Case(T5ForConditionalGeneration(config), kwargs={"input_ids": tokens, "decoder_input_ids": tokens.flip(1)})


def whisper(size: Size) -> Case:
    """The published `whisper-tiny` shape."""
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    shape: dict[str, Any] = {"encoder_layers": 4, "decoder_layers": 4}
    heads = {"encoder_attention_heads": 6, "decoder_attention_heads": 6}
    width = {"d_model": 384, "encoder_ffn_dim": 1536, "decoder_ffn_dim": 1536}
    small = {"d_model": 24, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32, "max_source_positions": 8, "num_mel_bins": 8}
    names = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1, "vocab_size": 64}
    shape = shape | heads | width | _when_tiny(size, small | names)
    config = WhisperConfig(use_cache=False, **shape)
    sound = torch.randn(1, config.num_mel_bins, 2 * config.max_source_positions)
    tokens = _tokens(size, config.vocab_size)[:, :32]
    return Case(WhisperForConditionalGeneration(config), kwargs={"input_features": sound, "decoder_input_ids": tokens})


def _when_tiny(size: Size, changes: dict[str, Any]) -> dict[str, Any]:
    return changes if size == "tiny" else {}


def _tokens(size: Size, vocabulary: int) -> torch.Tensor:
    return torch.randint(3, vocabulary, (1, 128 if size == "full" else 4))


MODELS: dict[str, Callable[[Size], Case]] = {
    "mlp": mlp,
    "resnet50": resnet50,
    "gpt2": gpt2,
    "bert": bert,
    "t5": t5,
    "whisper": whisper,
}


def build(name: str, size: Size) -> Case:
    torch.manual_seed(0)
    case = MODELS[name](size)
    case.model.eval()
    return case


def rehearsal() -> Case:
    """The smallest model there is: running it loads what a peer loads at its first use."""
    return Case(nn.Linear(2, 2), (torch.ones(1, 2),))
