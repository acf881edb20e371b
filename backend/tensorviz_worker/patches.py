"""What stands in for attributes of torch and threading while a recording runs, and is put back exactly.

Calls of modules are recorded. Threads, memory that is handed out (``numpy()``) and compiled kernels are noticed, never
prevented: what happens there is not seen, and the capture has to say so.
"""

import _thread
import multiprocessing.process
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch

_is_compiling = torch.compiler.is_dynamo_compiling
_HANDS_OUT_MEMORY = ("numpy", "__dlpack__")
_HANDS_OUT_MEMORY_IF_CALLED_DIRECTLY = ("data_ptr", "untyped_storage", "storage", "__setstate__")
"""torch uses these itself; only a call from other code than torch's counts."""
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
        self._saved: list[tuple[Any, str, Any]] = []
        self._on_first_compilation: Callable[[], None] | None = None

    def install(
        self,
        call: "Callable[..., Any]",
        notice: "Callable[[str], None]",
        on_swap: "Callable[[Any, Any], None]",
        is_citable: "Callable[[Any], bool]",
    ) -> None:
        """``call(original, module, args, kwargs)`` makes module calls; ``is_citable`` tells code not of torch.

        ``notice(reason)`` is told what happens where it cannot be seen, with the contract's reason code.
        """

        def watch(owner: Any, name: str, reason: str, counts: "Callable[[Any], bool]" = _always) -> None:
            self._replace(owner, name, _noticed(getattr(owner, name), lambda: notice(reason), counts))

        self._replace(torch.nn.Module, "__call__", _calling(torch.nn.Module.__call__, call))
        self._replace(torch.utils, "swap_tensors", _before(torch.utils.swap_tensors, on_swap))
        for owner, name in _OTHER_THREADS:
            watch(owner, name, "unobserved_thread")
        for owner, name in _OTHER_PROCESSES:
            if hasattr(owner, name):
                watch(owner, name, "unobserved_process")
        for name in _HANDS_OUT_MEMORY:
            watch(torch.Tensor, name, "escaped_storage")
        for name in _HANDS_OUT_MEMORY_IF_CALLED_DIRECTLY:
            watch(torch.Tensor, name, "escaped_storage", is_citable)
        graph = _compiled_graph()
        self._on_first_compilation = None if graph is not None else lambda: notice("compiled_region")
        if graph is not None:
            watch(graph, "__call__", "compiled_region")

    def remove(self) -> None:
        if self._on_first_compilation is not None and _compiled_graph() is not None:
            self._on_first_compilation()  # it was during the recording
        while self._saved:
            owner, name, before = self._saved.pop()
            if before is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, before)

    def _replace(self, owner: Any, name: str, value: Any) -> None:
        self._saved.append((owner, name, owner.__dict__.get(name, _ABSENT)))
        setattr(owner, name, value)


def _compiled_graph() -> Any:
    """The class of graphs that inductor compiled, whose kernels the dispatcher does not show; None without one."""
    for name in _COMPILED_CODE:
        found = getattr(sys.modules.get(name), "CompiledFxGraph", None)
        if found is not None:
            return found
    return None


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


def _calling(original: Any, call: "Callable[..., Any]") -> Any:
    def calling(module: Any, *args: Any, **kwargs: Any) -> Any:
        if _is_compiling():  # torch.compile follows the call, and must find nothing of ours there
            return original(module, *args, **kwargs)
        return call(original, module, args, kwargs)

    leave_uncompiled(calling.__code__)
    return calling


def _noticed(original: Any, notice: "Callable[[], None]", counts: "Callable[[Any], bool]") -> Any:
    def noticing(*args: Any, **kwargs: Any) -> Any:
        if not _is_compiling() and counts(sys._getframe(1).f_code):
            notice()
        return original(*args, **kwargs)

    leave_uncompiled(noticing.__code__)
    return noticing


def _before(original: Any, step: "Callable[[Any, Any], None]") -> Any:
    def after_step(first: Any, second: Any) -> Any:
        step(first, second)
        return original(first, second)

    return after_step
