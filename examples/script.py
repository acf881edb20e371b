"""A short training script: everything between its first and its last line can be captured, gradients and updates too.

    tensorviz capture examples/script.py:__main__

What to look for in the capture:

- Two steps of forward, backward and update. The operations of the backward pass belong to no module call.
- The optimizer writes to the parameters in place, so the second forward reads their second version.
- The script's own ``print`` ends up in the attempt's log.
"""

import torch
from torch import nn


class Regression(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(2, 8)
        self.out = nn.Linear(8, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(torch.tanh(self.hidden(x)))


def main() -> None:
    torch.manual_seed(0)
    model = Regression()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    points = torch.randn(32, 2)
    wanted = points.prod(dim=1, keepdim=True)
    for step in range(2):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(points), wanted)
        loss.backward()
        optimizer.step()
        print(f"step {step}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
