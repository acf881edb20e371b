"""A small translation model: an encoder and a decoder that share most of what they have.

    tensorviz capture examples/encoder_decoder.py

What to look for in the capture:

- One parameter under four names: the embedding of the source, of the target, the embedding itself and the output head.
- One encoder layer that runs twice (``encoder`` loops over the same module): one instance, two calls, different inputs.
- In-place operations: scaling (``mul_``), masking (``masked_fill_``), residuals (``add_``) and ``relu_``. Each makes a
  new version of the same tensor object.
- Cross attention: the encoder's output enters every decoder layer as keys and values.
"""

import math

import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.out = nn.Linear(width, width)

    def split(self, x: torch.Tensor) -> torch.Tensor:
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def forward(self, x: torch.Tensor, memory: torch.Tensor, hidden: torch.Tensor | None = None) -> torch.Tensor:
        """``hidden`` is true at the pairs of positions that may not look at each other."""
        q, k, v = self.split(self.query(x)), self.split(self.key(memory)), self.split(self.value(memory))
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        if hidden is not None:
            scores.masked_fill_(hidden, -math.inf)
        return self.out((scores.softmax(dim=-1) @ v).transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(self.up(x).relu_())


class EncoderLayer(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.attention_norm = nn.LayerNorm(width)
        self.attention = MultiHeadAttention(width, heads)
        self.feed_forward_norm = nn.LayerNorm(width)
        self.feed_forward = FeedForward(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.attention_norm(x)
        x = self.attention(y, y).add_(x)
        return self.feed_forward(self.feed_forward_norm(x)).add_(x)


class DecoderLayer(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.attention_norm = nn.LayerNorm(width)
        self.attention = MultiHeadAttention(width, heads)
        self.cross_norm = nn.LayerNorm(width)
        self.cross_attention = MultiHeadAttention(width, heads)
        self.feed_forward_norm = nn.LayerNorm(width)
        self.feed_forward = FeedForward(width)

    def forward(self, x: torch.Tensor, memory: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
        y = self.attention_norm(x)
        x = self.attention(y, y, hidden).add_(x)
        x = self.cross_attention(self.cross_norm(x), memory).add_(x)
        return self.feed_forward(self.feed_forward_norm(x)).add_(x)


class Encoder(nn.Module):
    """Applies one layer ``depth`` times, so its weights do not grow with the depth."""

    def __init__(self, embedding: nn.Embedding, heads: int, depth: int):
        super().__init__()
        self.embedding = embedding
        self.layer = EncoderLayer(embedding.embedding_dim, heads)
        self.depth = depth

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embedding(tokens).mul_(math.sqrt(self.embedding.embedding_dim))
        for _ in range(self.depth):
            x = self.layer(x)
        return x


class Decoder(nn.Module):
    def __init__(self, embedding: nn.Embedding, heads: int, depth: int):
        super().__init__()
        self.embedding = embedding
        self.layers = nn.ModuleList(DecoderLayer(embedding.embedding_dim, heads) for _ in range(depth))

    def forward(self, tokens: torch.Tensor, memory: torch.Tensor) -> torch.Tensor:
        length = tokens.shape[1]
        future = torch.ones(length, length, dtype=torch.bool, device=tokens.device).triu_(1)
        x = self.embedding(tokens).mul_(math.sqrt(self.embedding.embedding_dim))
        for layer in self.layers:
            x = layer(x, memory, future)
        return x


class EncoderDecoder(nn.Module):
    def __init__(self, vocabulary: int = 100, width: int = 32, heads: int = 4, depth: int = 2):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.encoder = Encoder(self.embedding, heads, depth)
        self.decoder = Decoder(self.embedding, heads, depth)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.embedding.weight

    @property
    def dummy_inputs(self) -> dict[str, torch.Tensor]:
        return {"source": torch.arange(2 * 9).view(2, 9), "target": torch.arange(2 * 5).view(2, 5)}

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return self.head(self.decoder(target, self.encoder(source)))


if __name__ == "__main__":
    translator = EncoderDecoder()
    logits = translator(**translator.dummy_inputs)
    logits.logsumexp(dim=-1).sum().backward()
    print("Logits:", tuple(logits.shape))
    print("Gradient norm of the shared embedding:", translator.embedding.weight.grad.norm().item())
