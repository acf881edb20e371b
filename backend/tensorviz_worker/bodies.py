"""What a higher-order operator is handed, so that what runs inside it is recorded: its functions under our mode.

torch takes a mode off while the mode handles an operator. An operator that calls functions of the program (``cond``,
``scan``, ``flex_attention``) would run them unseen.
"""

from contextlib import nullcontext
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack


class _Body:
    """Stands in for a function that an operator calls. To all else that is asked of it, it is that function."""

    def __init__(self, function: Any, mode: TorchDispatchMode) -> None:
        self._function, self._mode = function, mode

    @property
    def __class__(self) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        return type(self._function)  # some operators take graph modules alone

    def __getattr__(self, name: str) -> Any:
        return getattr(self._function, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        is_on = any(mode is self._mode for mode in _get_current_dispatch_mode_stack())  # one body called another
        with nullcontext() if is_on else self._mode:
            return self._function(*args, **kwargs)


def bodies_under(mode: TorchDispatchMode, args: Any, kwargs: Any) -> "tuple[Any, Any]":
    """The arguments with each function in them, in tuples too, put under a mode that torch has taken off.

    A mode below it that traces, or is the program's, might keep what it is handed: it gets the functions themselves.
    """
    if not all(isinstance(below, FakeTensorMode) for below in _get_current_dispatch_mode_stack()):
        return args, kwargs
    return _wrapped(tuple(args), mode), {name: _wrapped(value, mode) for name, value in kwargs.items()}


def _wrapped(value: Any, mode: TorchDispatchMode) -> Any:
    if type(value) is tuple:
        return tuple(_wrapped(item, mode) for item in value)
    is_data = isinstance(value, (type, torch.Tensor, torch.ScriptObject, torch._ops.OperatorBase))
    return value if is_data or not callable(value) else _Body(value, mode)


body_code = _Body.__call__.__code__
