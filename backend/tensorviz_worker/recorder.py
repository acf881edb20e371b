"""The recorder: one dispatch mode and one module-call hook that turn what happens into journal lines at once.

    Recorder            the user's handle: start, stop, and what went wrong with us
      _Mode             sees every dispatched operation        begin -> kernel -> end
      _recording        stands in for nn.Module.__call__       enter -> forward -> exit
      _notice           what happens where we do not see it    gap
      Facts             values, versions, effects, modules: the state behind the ids

No tensor is kept: what a later event needs is held through weak references. Our own mistakes never reach the program:
the first one ends the recording with a reason, and the program goes on.
"""

import functools
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

import torch
from torch._ops import HigherOrderOperator
from torch._subclasses import FakeTensor
from torch.nested._internal.nested_tensor import NestedTensor
from torch.utils._python_dispatch import (
    TorchDispatchMode,
    _get_current_dispatch_mode_stack,
    _pop_mode,
    _push_mode,
)

from tensorviz_worker import diagnostics
from tensorviz_worker.bodies import bodies_under, body_code
from tensorviz_worker.budget import Budget, Limits
from tensorviz_worker.facts import Facts
from tensorviz_worker.patches import Patches, leave_uncompiled
from tensorviz_worker.sources import SourceMap
from tensorviz_worker.ways import call

_get_ident = threading.get_ident
_is_compiling = torch.compiler.is_dynamo_compiling
_function_modes = torch._C._len_torch_function_stack
_FRAMES_OF_CALL, _FRAMES_OF_EVENT = 4, 32
"""A recorded module call takes four Python frames, one of them ours; what an event needs comes once, at the end."""
_patches = Patches()
_recorders: "dict[int, Recorder]" = {}


class _Mode(TorchDispatchMode):
    supports_higher_order_operators = True  # else torch refuses them while we record

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Without this, torch wraps every dispatch in a guard against compiling it, at a microsecond each."""
        return False

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Lets torch.compile compile while we record; else a compiled region that may not run eagerly fails."""
        return True

    def __init__(self, recorder: "Recorder") -> None:
        super().__init__()
        self._recorder = recorder

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """The way of nearly every operation: what ``_guarded`` does, without its calls in between."""
        if kwargs is None:
            kwargs = {}
        recorder = self._recorder
        if types and any(map(_works_unseen, types)):
            recorder.guarded(recorder.facts.gap, "unobserved_operation")
        if recorder.idle or _get_ident() != recorder.thread or _function_modes():
            return self._guarded(func, args, kwargs)
        try:
            operation = recorder.begin(func, args, kwargs)
        except BaseException as error:
            operation = recorder.break_off(error)
        if operation is None:
            return self._unbegun(func, args, kwargs)
        way = operation[2]
        try:
            output = func(*args, **kwargs) if way is None else way(func, args, kwargs)
        except BaseException as error:
            recorder.guarded(recorder.facts.fail, operation, error)
            raise
        if not recorder.idle:
            try:
                recorder.end(operation, output)
            except BaseException as error:
                recorder.break_off(error)
        return output

    def _guarded(self, func: Any, args: Any, kwargs: Any) -> Any:
        guarded = self._recorder.guarded
        operation = guarded(self._recorder.begin, func, args, kwargs)
        if operation is None:
            return self._unbegun(func, args, kwargs)
        way = operation[2]
        try:
            output = func(*args, **kwargs) if way is None else way(func, args, kwargs)
        except BaseException as error:
            guarded(self._recorder.facts.fail, operation, error)
            raise
        guarded(self._recorder.end, operation, output)
        return output

    def _unbegun(self, func: Any, args: Any, kwargs: Any) -> Any:
        """What is no operation, what is left out, and what is told later, as it may return what ran inside it."""
        guarded, facts = self._recorder.guarded, self._recorder.facts
        given = guarded(facts.given, args, kwargs) if isinstance(func, HigherOrderOperator) else None
        if given is None:
            return call(func, args, kwargs)
        inside, named = bodies_under(self, args, kwargs)
        try:
            output = func(*inside, **named)
        except BaseException as error:
            guarded(facts.told_failed, func, given, error)
            raise
        guarded(facts.told, func, given, output)
        return output


def _works_unseen(kind: Any) -> bool:
    """Whether a tensor subclass computes with tensors inside it while our mode is off.

    FakeTensor computes nothing, and a jagged tensor's inside is reached by recorded operations alone.
    """
    computes = kind.__torch_dispatch__ is not torch._C._disabled_torch_dispatch_impl
    return computes and not issubclass(kind, (FakeTensor, NestedTensor))


def _recording(original: Any) -> Any:
    """``nn.Module.__call__`` with its calls recorded. One frame: what nests deeply has to fit as it did without us."""

    def call(module: Any, *args: Any, **kwargs: Any) -> Any:
        if _is_compiling():  # torch.compile follows the call, and must find nothing of ours there
            return original(module, *args, **kwargs)
        recorder = _recorders.get(_get_ident())
        token = recorder.guarded(recorder.facts.enter, module, args, kwargs) if recorder is not None else None
        if recorder is None or token is None:
            return original(module, *args, **kwargs)
        try:
            output = original(module, *args, **kwargs)
        except BaseException as error:
            recorder.guarded(recorder.facts.leave_failed, token, error)
            raise
        recorder.guarded(recorder.facts.leave, token, output)
        return output

    return functools.update_wrapper(call, original)


_CALL = _recording(_get_ident).__code__
"""The code of every such call: the frames of module calls."""


def _unwatched(original: Any, args: Any, kwargs: Any) -> Any:
    """torch cannot trace (torch.jit.trace) under a mode: a number would be taken for a tensor, and end the program."""
    recorder = _recorders.get(_get_ident())
    return original(*args, **kwargs) if recorder is None else recorder.unwatched(original, args, kwargs)


def _take_off(mode: _Mode) -> "list[TorchDispatchMode] | None":
    """Takes our mode off, wherever it lies among the program's. Those above it, or None when it was not there."""
    stack = _get_current_dispatch_mode_stack()
    if not any(found is mode for found in stack):
        return None
    above = stack[stack.index(mode) + 1 :]
    _under(above, lambda: mode.__exit__(None, None, None))
    return above


def _under(above: "list[TorchDispatchMode]", step: "Callable[[], Any]") -> None:
    for _ in above:
        _pop_mode()
    step()
    for mode in above:
        _push_mode(mode)


def _forget(*swapped: Any) -> None:
    """torch swaps two tensors only when nobody has a weak reference to either."""
    recorder = _recorders.get(_get_ident())
    if recorder is not None:
        recorder.guarded(recorder.facts.forget, *swapped)


def _notice(reason: str) -> None:
    recorder = _recorders.get(_get_ident())
    if recorder is not None:
        recorder.guarded(recorder.facts.gap, reason)


diagnostics.hooks.update((_Mode.__torch_dispatch__.__code__, _CALL))


class Recorder:
    """Records everything that this thread runs between ``start`` and ``stop``."""

    def __init__(self, journal: Any, limits: Limits, workspace: str) -> None:
        budget = Budget(journal, limits)
        self.sources = SourceMap(
            budget.note, workspace, limits.bytes // 4, lambda: budget.gap("location_limit"), (_CALL,)
        )
        self.facts = Facts(budget, self.sources)
        self.begin, self.end = self.facts.begin, self.facts.end
        self._mode = _Mode(self)
        self.idle = False
        self.thread = _get_ident()
        self._other_threads = False
        self._depth = self._deeper = 0  # the program's limit of recursion, and ours
        self.failure: BaseException | None = None

    def start(self) -> None:
        """Raises RuntimeError when this thread is being recorded already."""
        self.thread = _get_ident()
        if self.thread in _recorders:
            raise RuntimeError("this thread is being recorded already; one recording at a time")
        if not _recorders:
            _patches.install(_recording, _notice, _forget, _unwatched, self.sources.is_citable)
        _recorders[self.thread] = self
        self._depth = sys.getrecursionlimit()
        self._deeper = self._depth * _FRAMES_OF_CALL // (_FRAMES_OF_CALL - 1) + _FRAMES_OF_EVENT
        sys.setrecursionlimit(self._deeper)
        self._mode.__enter__()

    def stop(self, error: "BaseException | None" = None) -> None:
        """Ends the recording; ``error`` is the exception that ended the program, if one did."""
        was_on = _take_off(self._mode) is not None
        if sys.getrecursionlimit() == self._deeper:
            sys.setrecursionlimit(self._depth)
        if len(_recorders) == 1:
            _patches.remove()
        del _recorders[self.thread]
        if not was_on:
            self.guarded(self.facts.gap, "unobserved_operation")
        if self._other_threads:
            self.guarded(self.facts.gap, "unobserved_thread")
        self.guarded(self.facts.finish, error)
        if self.failure is not None:
            self.facts.finish_broken(type(self.failure), error)
        self.facts.forget_all()

    def unwatched(self, original: Any, args: Any, kwargs: Any) -> Any:
        self.guarded(self.facts.gap, "unobserved_operation")
        above, self.idle = _take_off(self._mode), True
        try:
            return original(*args, **kwargs)
        finally:
            if above is not None:
                _under(above, self._mode.__enter__)
            self.idle = self.failure is not None

    def describe(self, root: Any) -> None:
        """Registers a module and all below it before it is first called."""
        self.guarded(self.facts.register, root)

    def guarded(self, step: Any, *arguments: Any) -> Any:
        """One step of the recording. None when there is nothing to record, or nothing more."""
        if _get_ident() != self.thread:  # torch takes our mode to some of its own threads
            self._other_threads = True
            return None
        if self.idle:
            return None
        self.idle = True  # what we read may come back to us, as the attributes of some tensor subclasses do
        try:
            if _function_modes():  # a mode of the program's, such as a default device, must not see what we read
                with torch._C.DisableTorchFunction():
                    return step(*arguments)
            return step(*arguments)
        except BaseException as error:
            self.break_off(error)
        finally:
            self.idle = self.failure is not None

    def break_off(self, error: BaseException) -> None:
        """What is raised while we record ends the recording: a part of an event is none.

        A mistake of ours goes no further. What a signal brought, such as a time limit, is the program's.
        """
        self.failure, self.idle = error, True
        if not isinstance(error, Exception) or _is_from_a_signal(error):
            raise error


def _is_from_a_signal(error: BaseException) -> bool:
    handlers = map(signal.getsignal, signal.valid_signals())
    codes = {getattr(getattr(handler, "__func__", handler), "__code__", None) for handler in handlers}
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code in codes:
            return True
        trace = trace.tb_next
    return False


leave_uncompiled(_Mode.__torch_dispatch__.__code__)
leave_uncompiled(_CALL)
leave_uncompiled(body_code)
for _step in (Recorder.guarded, Facts.begin, Facts.end):
    leave_uncompiled(_step.__code__, below=True)
