"""Runs without values: under PyTorch's FakeTensor mode, tensors have shapes and dtypes and no memory.

What was made before the mode, by importing the file, is real. Its registered state and the inputs are replaced by fake
twins; other real tensors are let in and come out fake.
"""

import contextlib
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._pytree import tree_map_only

from tensorviz_worker import modules


def mode(wanted: bool) -> "contextlib.AbstractContextManager[FakeTensorMode | None]":
    return FakeTensorMode(allow_non_fake_inputs=True) if wanted else contextlib.nullcontext()


def fake_state(mode: FakeTensorMode, model: Any) -> None:
    """Replaces every registered parameter and buffer below the model. One that is shared stays shared."""
    for _, module in modules.walk(model):
        for table in (module._parameters, module._buffers):
            for name, tensor in table.items():
                if isinstance(tensor, torch.Tensor) and not modules.is_uninitialized(tensor):
                    table[name] = _twin(mode, tensor)


def fake_values(mode: FakeTensorMode, tree: Any) -> Any:
    return tree_map_only(torch.Tensor, lambda tensor: _twin(mode, tensor), tree)


def _twin(mode: FakeTensorMode, tensor: torch.Tensor) -> torch.Tensor:
    return tensor if isinstance(tensor, FakeTensor) else mode.from_tensor(tensor)
