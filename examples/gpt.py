"""A small GPT that writes text the way a deployed one does: one prefill, then one token at a time from a KV cache.

    tensorviz capture examples/gpt.py

What to look for in the capture:

- ``Generator`` calls the same ``gpt`` four times: once over the whole prompt, then once for each new token. Compare the
  shapes of the two kinds of calls: ``[1, 6, 64]`` against ``[1, 1, 64]``.
- The key and value caches are buffers. Every call writes into a slice of them with ``copy_``: an effect on the buffer,
  not an output, and the later calls read what the earlier ones wrote.
- The output head and the token embedding are one parameter under two names.
"""

import torch
from torch import nn
from torch.nn import functional as F


class Attention(nn.Module):
    """Causal self-attention that remembers the keys and values of every position it has seen."""

    def __init__(self, width: int, heads: int, context: int):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
        self.register_buffer("keys", torch.zeros(1, heads, context, width // heads), persistent=False)
        self.register_buffer("values", torch.zeros(1, heads, context, width // heads), persistent=False)

    def forward(self, x: torch.Tensor, start: int) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = (
            part.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for part in self.qkv(x).split(width, dim=2)
        )
        end = start + length
        self.keys[:, :, start:end].copy_(k)
        self.values[:, :, start:end].copy_(v)
        y = F.scaled_dot_product_attention(
            q, self.keys[:, :, :end], self.values[:, :, :end], is_causal=length > 1
        )  # a single new token may look at everything before it, so it needs no mask
        return self.proj(y.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, width: int, heads: int, context: int):
        super().__init__()
        self.ln_1 = nn.LayerNorm(width)
        self.attn = Attention(width, heads, context)
        self.ln_2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor, start: int) -> torch.Tensor:
        x = x + self.attn(self.ln_1(x), start)
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    """Logits for the tokens at positions ``start``, ``start + 1``, ..., given the cache of those before."""

    def __init__(self, vocabulary: int = 96, context: int = 32, width: int = 64, heads: int = 4, layers: int = 2):
        super().__init__()
        self.wte = nn.Embedding(vocabulary, width)
        self.wpe = nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads, context) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.wte.weight

    def forward(self, tokens: torch.Tensor, start: int = 0) -> torch.Tensor:
        positions = torch.arange(start, start + tokens.shape[1], device=tokens.device)
        x = self.wte(tokens) + self.wpe(positions)
        for block in self.blocks:
            x = block(x, start)
        return self.head(self.ln_f(x))


class Generator(nn.Module):
    """Greedy decoding: the prompt in one call, then every new token in a call of its own."""

    def __init__(self, gpt: GPT, new_tokens: int = 4):
        super().__init__()
        self.gpt = gpt
        self.new_tokens = new_tokens

    @torch.no_grad()
    def forward(self, prompt: torch.Tensor) -> torch.Tensor:
        tokens, fresh = prompt, prompt
        for _ in range(self.new_tokens):
            logits = self.gpt(fresh, start=tokens.shape[1] - fresh.shape[1])
            fresh = logits[:, -1:].argmax(dim=-1)
            tokens = torch.cat([tokens, fresh], dim=1)
        return tokens


def encode(text: str) -> torch.Tensor:
    """Printable ASCII, one token a character."""
    return torch.tensor([[ord(character) - 32 for character in text]])


def decode(tokens: torch.Tensor) -> str:
    return "".join(chr(token + 32) for token in tokens[0].tolist())


model = Generator(GPT())


def example_inputs() -> tuple[torch.Tensor]:
    return (encode("tensor"),)


if __name__ == "__main__":
    print("The untrained model continues:", repr(decode(model.eval()(*example_inputs()))))
