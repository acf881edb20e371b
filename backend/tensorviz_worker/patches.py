"""What stands in for attributes of torch and threading while a recording runs, and is put back exactly.

Calls of modules are recorded. Threads, memory that is handed out (``numpy()``) and compiled kernels are noticed, never
prevented: what happens there is not seen, and the capture has to say so.
"""

import _thread
import functools
import multiprocessing.process
import os
import sys
import threading
import types
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from torch.jit import _trace
from torch.utils import _mode_utils, _python_dispatch, dlpack

_is_compiling = torch.compiler.is_dynamo_compiling
_HANDS_OUT_MEMORY = (
    (torch.Tensor, "numpy"),
    (torch.Tensor, "__dlpack__"),
    (torch, "to_dlpack"),
    (dlpack, "to_dlpack"),
)
_WRITES_MEMORY = tuple((torch.Tensor, name) for name in ("apply_", "map_", "map2_"))
_HANDS_OUT_MEMORY_IF_CALLED_DIRECTLY = tuple(
    (torch.Tensor, name) for name in ("data_ptr", "untyped_storage", "storage", "__setstate__")
)
_IS_NOT_DISPATCHED = (
    (torch.Tensor, "tolist"),
    (torch._C, "_DisableTorchDispatch"),
    (_python_dispatch, "_disable_current_modes"),
    (_python_dispatch, "_pop_mode"),
    (_python_dispatch, "_pop_mode_temporarily"),
    (_mode_utils, "no_dispatch"),
    (torch._ops.OpOverload, "redispatch"),
)
"""torch uses these two kinds itself; only a call from other code than torch's counts."""
_TRACES = (
    *((torch._C, name) for name in vars(torch._C) if name.startswith("_create_") and "_trac" in name),
    *((_trace, name) for name in ("_trace_impl", "trace_module") if hasattr(_trace, name)),
    (torch._C.ScriptModule, "_create_method_from_trace"),
)
"""What torch.jit.trace calls, in newer and in older torch, to run the program and to check what it made of it."""
_ABSENT = object()
_OTHER_THREADS = ((threading.Thread, "start"), (ThreadPoolExecutor, "submit"), (_thread, "start_new_thread"))
_OTHER_PROCESSES = ((os, "fork"), (multiprocessing.process.BaseProcess, "start"))
_COMPILED_CODE = ("torch._inductor.output_code", "torch._inductor.codecache")
"""Where ``CompiledFxGraph`` is, in newer and in older torch. It is loaded by the first compilation."""


def _always(_: Any) -> bool:
    return True


class Patches:
    """Replaced attributes, with what was there: an inherited attribute is uncovered again, not copied."""

    def __init__(self) -> None:
        self._saved: list[tuple[Any, str, Any, Any]] = []
        self._on_first_compilation: Callable[[], None] | None = None

    def install(
        self,
        recording: "Callable[[Any], Any]",
        notice: "Callable[[str], None]",
        on_swap: "Callable[[Any, Any], None]",
        unwatched: "Callable[..., Any]",
        is_citable: "Callable[[Any], bool]",
    ) -> None:
        """``recording(original)`` stands in for ``nn.Module.__call__``; ``is_citable`` tells code not of torch.

        ``notice(reason)`` is told what happens where it cannot be seen, with the contract's reason code.
        """

        self._on_replaced = lambda: notice("unobserved_call")

        def watch(owner: Any, name: str, reason: str, counts: "Callable[[Any], bool]" = _always) -> None:
            self._replace(owner, name, _Noticed(getattr(owner, name), lambda: notice(reason), counts))

        self._replace(torch.nn.Module, "__call__", recording(torch.nn.Module.__call__))
        self._replace(torch.utils, "swap_tensors", _before(torch.utils.swap_tensors, on_swap))
        for owner, name in _TRACES:
            self._replace(owner, name, _around(getattr(owner, name), unwatched))
        for owner, name in _OTHER_THREADS:
            watch(owner, name, "unobserved_thread")
        for owner, name in _OTHER_PROCESSES:
            if hasattr(owner, name):
                watch(owner, name, "unobserved_process")
        for owner, name in _HANDS_OUT_MEMORY:
            watch(owner, name, "escaped_storage")
        for owner, name in _WRITES_MEMORY:
            watch(owner, name, "unobserved_write")
        for owner, name in _HANDS_OUT_MEMORY_IF_CALLED_DIRECTLY:
            watch(owner, name, "escaped_storage", is_citable)
        for owner, name in _IS_NOT_DISPATCHED:
            watch(owner, name, "unobserved_operation", is_citable)
        graph = _compiled_graph()
        self._on_first_compilation = None if graph is not None else lambda: notice("compiled_region")
        if graph is not None:
            watch(graph, "__call__", "compiled_region")

    def remove(self) -> None:
        """What the program has put in the place of ours meanwhile stays there."""
        if self._on_first_compilation is not None and _has_compiled():
            self._on_first_compilation()  # it was during the recording
        while self._saved:
            owner, name, before, ours = self._saved.pop()
            if owner.__dict__.get(name) is not ours:
                self._on_replaced()
            elif before is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, before)

    def _replace(self, owner: Any, name: str, value: Any) -> None:
        self._saved.append((owner, name, owner.__dict__.get(name, _ABSENT), value))
        setattr(owner, name, value)


def _compiled_graph() -> Any:
    """The class of graphs that inductor compiled, whose kernels the dispatcher does not show; None without one."""
    for name in _COMPILED_CODE:
        found = getattr(sys.modules.get(name), "CompiledFxGraph", None)
        if found is not None:
            return found
    return None


def _has_compiled() -> bool:
    """Whether inductor, which is loaded by any use of torch.compile, has made or found a graph in this process."""
    metrics, counted = sys.modules.get("torch._inductor.metrics"), sys.modules.get("torch._dynamo.utils")
    made = getattr(metrics, "generated_kernel_count", 0)
    return _compiled_graph() is not None and bool(made or getattr(counted, "counters", {}).get("inductor"))


def leave_uncompiled(code: Any, below: bool = False) -> None:
    """Has torch.compile pass over a function of ours that it meets while it follows the program, and all it calls.

    Without ``below``, what the function calls is the program's again.
    """
    try:
        from torch._C._dynamo.eval_frame import _FrameAction, _FrameExecStrategy, set_code_exec_strategy
    except ImportError:  # an older torch, which looks at our frames and gives up on them by itself
        return
    inner = _FrameAction.SKIP if below else _FrameAction.DEFAULT
    set_code_exec_strategy(code, _FrameExecStrategy(_FrameAction.SKIP, inner))


class _Noticed:
    """Stands in for a function: where a program looks functions up in a table of its own, it is that function."""

    def __init__(self, original: Any, notice: "Callable[[], None]", counts: "Callable[[Any], bool]") -> None:
        functools.update_wrapper(self, original)
        self._original, self._notice, self._counts = original, notice, counts

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not _is_compiling() and self._counts(sys._getframe(1).f_code):
            self._notice()
        return self._original(*args, **kwargs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __eq__(self, other: object) -> bool:
        return self is other or self._original == other

    def __hash__(self) -> int:
        return hash(self._original)


leave_uncompiled(_Noticed.__call__.__code__)


def _around(original: Any, call: "Callable[..., Any]") -> Any:
    def around(*args: Any, **kwargs: Any) -> Any:
        return call(original, args, kwargs)

    return functools.update_wrapper(around, original)


def _before(original: Any, step: "Callable[[Any, Any], None]") -> Any:
    def after_step(first: Any, second: Any) -> Any:
        step(first, second)
        return original(first, second)

    return after_step
