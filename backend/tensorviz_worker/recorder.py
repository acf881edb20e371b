"""The recorder: one dispatch mode and one module-call hook that turn what happens into journal lines at once.

    Recorder            the user's handle: start, stop, and what went wrong with us
      _Mode             sees every dispatched operation        begin -> kernel -> end
      _call             stands in for nn.Module.__call__       enter -> forward -> exit
      _notice           what happens where we do not see it    gap
      Facts             values, versions, effects, modules: the state behind the ids

No tensor is kept: what a later event needs is held through weak references. Our own mistakes never reach the program:
the first one ends the recording with a reason, and the program goes on.
"""

import threading
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tensorviz_worker import facts
from tensorviz_worker.budget import Budget, Limits
from tensorviz_worker.facts import Facts
from tensorviz_worker.patches import Patches, leave_uncompiled
from tensorviz_worker.sources import SourceMap

_function_modes = torch._C._len_torch_function_stack
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
        if recorder.idle or _function_modes():
            return self._guarded(func, args, kwargs)
        try:
            operation = recorder.begin(func, args, kwargs)
        except Exception as error:
            operation = recorder.break_off(error)
        if operation is None:
            return func(*args, **kwargs)
        try:
            output = func(*args, **kwargs)
        except BaseException as error:
            recorder.guarded(recorder.facts.fail, operation, error)
            raise
        if not recorder.idle:
            try:
                recorder.end(operation, output)
            except Exception as error:
                recorder.break_off(error)
        return output

    def _guarded(self, func: Any, args: Any, kwargs: Any) -> Any:
        guarded = self._recorder.guarded
        operation = guarded(self._recorder.begin, func, args, kwargs)
        if operation is None:
            return func(*args, **kwargs)
        try:
            output = func(*args, **kwargs)
        except BaseException as error:
            guarded(self._recorder.facts.fail, operation, error)
            raise
        guarded(self._recorder.end, operation, output)
        return output


def _call(original: Any, module: Any, args: Any, kwargs: Any) -> Any:
    recorder = _recorders.get(threading.get_ident())
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


def _forget(*swapped: Any) -> None:
    """torch swaps two tensors only when nobody has a weak reference to either."""
    recorder = _recorders.get(threading.get_ident())
    if recorder is not None:
        recorder.guarded(recorder.facts.forget, *swapped)


def _notice(reason: str) -> None:
    recorder = _recorders.get(threading.get_ident())
    if recorder is not None:
        recorder.guarded(recorder.facts.gap, reason)


facts.hooks.update((_Mode.__torch_dispatch__.__code__, _call.__code__))


class Recorder:
    """Records everything that this thread runs between ``start`` and ``stop``."""

    def __init__(self, journal: Any, limits: Limits, workspace: str) -> None:
        budget = Budget(journal, limits)
        self.sources = SourceMap(
            budget.note, workspace, limits.bytes // 4, lambda: budget.gap("location_limit"), (_call.__code__,)
        )
        self.facts = Facts(budget, self.sources)
        self.begin, self.end = self.facts.begin, self.facts.end
        self._mode = _Mode(self)
        self.idle = False
        self._thread = 0
        self.failure: BaseException | None = None

    def start(self) -> None:
        """Raises RuntimeError when this thread is being recorded already."""
        self._thread = threading.get_ident()
        if self._thread in _recorders:
            raise RuntimeError("this thread is being recorded already; one recording at a time")
        if not _recorders:
            _patches.install(_call, _notice, _forget, self.sources.is_citable)
        _recorders[self._thread] = self
        self._mode.__enter__()

    def stop(self, error: "BaseException | None" = None) -> None:
        """Ends the recording; ``error`` is the exception that ended the program, if one did."""
        self._mode.__exit__(None, None, None)
        if len(_recorders) == 1:
            _patches.remove()
        del _recorders[self._thread]
        self.guarded(self.facts.finish, error)
        if self.failure is not None:
            self.facts.finish_broken(type(self.failure))
        self.facts.forget_all()

    def describe(self, root: Any) -> None:
        """Registers a module and all below it before it is first called."""
        self.guarded(self.facts.register, root)

    def guarded(self, step: Any, *arguments: Any) -> Any:
        """One step of the recording. None when there is nothing to record, or nothing more."""
        if self.idle:
            return None
        self.idle = True  # what we read may come back to us, as the attributes of some tensor subclasses do
        try:
            if _function_modes():  # a mode of the program's, such as a default device, must not see what we read
                with torch._C.DisableTorchFunction():
                    return step(*arguments)
            return step(*arguments)
        except Exception as error:
            self.failure = error
            return None
        finally:
            self.idle = self.failure is not None

    def break_off(self, error: Exception) -> None:
        """A mistake of ours ends the recording, and nothing else."""
        self.failure, self.idle = error, True


leave_uncompiled(_Mode.__torch_dispatch__.__code__)
leave_uncompiled(_call.__code__)
for _step in (Recorder.guarded, Facts.begin, Facts.end):
    leave_uncompiled(_step.__code__, below=True)
