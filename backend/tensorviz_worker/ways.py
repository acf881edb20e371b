"""How to call an operator from a dispatch mode so that it computes what it would compute without one.

By the time that torch asks a mode, autograd, version counting and autocast have had their turn, and torch keeps them
off for whatever the mode calls. An operator with kernels of its own for them needs them no more. One without would have
left them on for the operators that it calls itself: called plainly from a mode, it gives no gradient, counts no write
and casts nothing. It has to be called in the state in which torch found it.
"""

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import _C

Way = Callable[[Any, Any, Any], Any]

_AUTOGRAD = ("Autograd", "AutogradCPU", "AutogradCUDA", "AutogradOther", "AutogradNestedTensor", "ADInplaceOrView")
_AUTOCAST = ("AutocastCPU", "AutocastCUDA")
_COUNT_INSIDE = "aten::_foreach_"
"""Written lists: below their autograd kernel, each tensor's own operator counts the write."""
_CASTS_INSIDE = "aten::_trilinear"
"""Of torch's own without an autocast kernel, the one that calls operators with one, for ``bilinear``."""


def way_of(func: Any) -> "Way | None":
    """None for nearly every operator, which is called as it is."""
    if not isinstance(func, torch._ops.OpOverload) or not _computes_tensors(func._schema):
        return None
    name = func.name()
    if name.startswith(_COUNT_INSIDE):
        return _below_autograd if func._schema.is_mutable else None
    if name == _CASTS_INSIDE:
        return _below_autograd
    has_own = functools.partial(_C._dispatch_has_kernel_for_dispatch_key, name)
    if any(map(has_own, _AUTOGRAD)) or all(map(has_own, _AUTOCAST)):
        return None
    return _whole if func.namespace == "aten" else _as_found


def _computes_tensors(schema: Any) -> bool:
    """Not so the questions about sizes and devices, which subclasses answer, and which torch asks in another state."""
    return schema.is_mutable or any("Tensor" in str(returned.type) for returned in schema.returns)


def call(func: Any, args: Any, kwargs: Any) -> Any:
    way = way_of(func)
    return func(*args, **kwargs) if way is None else way(func, args, kwargs)


def _as_found(func: Any, args: Any, kwargs: Any) -> Any:
    include = _C._dispatch_tls_local_include_set()  # without this mode, and with the program's own below it
    with _C._RestorePythonTLSSnapshot():  # pyright: ignore[reportAttributeAccessIssue]
        exclude = _C._dispatch_tls_local_exclude_set()
    with _C._ForceDispatchKeyGuard(include, exclude):
        return func(*args, **kwargs)


def _whole(func: Any, args: Any, kwargs: Any) -> Any:
    """torch's own operators that are composed of others reach a mode whole in inference mode, or below autograd."""
    with _C._RestorePythonTLSSnapshot():  # pyright: ignore[reportAttributeAccessIssue]
        is_below = _C._dispatch_tls_is_dispatch_key_excluded(_C.DispatchKey.AutogradFunctionality)
    return _as_found(func, args, kwargs) if is_below or torch.is_inference_mode_enabled() else func(*args, **kwargs)


def _below_autograd(func: Any, args: Any, kwargs: Any) -> Any:
    def below(*args: Any, **kwargs: Any) -> Any:
        with _C._AutoDispatchBelowAutograd():
            return func(*args, **kwargs)

    return _as_found(below, args, kwargs)
