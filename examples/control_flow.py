"""A model whose path depends on its data: what it executes cannot be read from its source alone.

    tensorviz capture examples/control_flow.py

What to look for in the capture:

- ``.item()`` appears as ``aten._local_scalar_dense.default``: the places where Python looks at the data.
- The loop in ``FixedPoint`` runs until it converges, so the capture says how often that was.
- ``Router`` sends every row to one of four experts: ``index_select`` gathers its rows and ``index_put_`` scatters the
  results. The second expert never gets a row, so the capture reports it as not observed.
- The gate lets this batch leave early: ``refine`` is not called at all.
"""

import torch
from torch import nn

torch.manual_seed(0)  # the same weights, and so the same path, every time


class FixedPoint(nn.Module):
    """Iterates ``h = tanh(x + W h)`` until it stands still. An orthogonal W of gain 0.5 makes sure that it does."""

    def __init__(self, width: int, tolerance: float = 1e-3):
        super().__init__()
        self.cell = nn.Linear(width, width)
        self.tolerance = tolerance
        nn.init.orthogonal_(self.cell.weight, gain=0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = torch.zeros_like(x)
        change = float("inf")
        while change > self.tolerance:
            previous, h = h, torch.tanh(x + self.cell(h))
            change = (h - previous).abs().max().item()
        return h


class Router(nn.Module):
    def __init__(self, width: int = 8, experts: int = 4, confidence: float = 0.5):
        super().__init__()
        self.settle = FixedPoint(width)
        self.experts = nn.ModuleList(nn.Linear(width, width) for _ in range(experts))
        self.gate = nn.Linear(width, 1)
        self.refine = nn.Linear(width, width)
        self.confidence = confidence
        nn.init.zeros_(self.gate.weight)
        nn.init.constant_(self.gate.bias, 2.0)

    def forward(self, x: torch.Tensor, choice: torch.Tensor) -> torch.Tensor:
        """``choice`` holds the number of the expert for each row of ``x``."""
        h = self.settle(x)
        out = torch.zeros_like(h)
        for number, expert in enumerate(self.experts):
            rows = (choice == number).nonzero().flatten()
            if rows.numel() == 0:
                continue
            out.index_put_((rows,), expert(h.index_select(0, rows)))
        if torch.sigmoid(self.gate(out)).mean().item() > self.confidence:
            return out
        return self.refine(out)


example_inputs = (torch.linspace(-1, 1, 48).view(6, 8), torch.tensor([0, 2, 3, 0, 2, 0]))


if __name__ == "__main__":
    print("Result:", Router()(*example_inputs).detach())
