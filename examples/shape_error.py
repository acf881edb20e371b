"""A classifier that cannot run: its third layer expects 128 features and is given 64.

    tensorviz capture examples/shape_error.py

What to look for in the capture:

- It is partial, and it still holds everything up to the failure: the two layers before it, with their shapes.
- The failing operation is ``aten.addmm.default`` in the module ``layers.4``; its operands are ``[4, 64]`` and,
  transposed, ``[128, 10]``: the inner sizes do not agree.
- The failure went up through ``layers.4``, ``layers`` and the classifier; ``layers.5`` was never called.
"""

import torch
from torch import nn


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(16, 32),
            nn.ReLU(),
            nn.Linear(32, 64),
            nn.ReLU(),
            nn.Linear(128, 10),  # should be nn.Linear(64, 10)
            nn.LogSoftmax(dim=-1),
        )
        self.example_input_array = torch.randn(4, 16)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        return self.layers(features)


if __name__ == "__main__":
    classifier = Classifier()
    try:
        classifier(classifier.example_input_array)
    except RuntimeError as error:
        print("The third layer fails:", error)
