"""The exceptions of a run, by type and place: each told once, with the recorded one that it was raised in place of."""

import builtins
from typing import Any

from tensorviz_worker import tensors
from tensorviz_worker.budget import PER_DIAGNOSTIC, Budget
from tensorviz_worker.journal import to_json
from tensorviz_worker.sources import SourceMap

hooks: "set[Any]" = set()
"""The code objects of the recorder's hooks, through which every recorded exception passes."""


class Diagnostics:
    def __init__(self, budget: Budget, sources: SourceMap) -> None:
        self._budget = budget
        self._sources = sources
        self._count = 0
        self._failures: dict[int, tuple[str, type]] = {}

    def record(self, error: BaseException, operation: "str | None", invocation: "str | None") -> str:
        """The record of an exception: a new one, or that of the operation it came from.

        An operation that failed because one inside it did has a new one, whose cause is the other's.
        """
        below = error.__traceback__ and error.__traceback__.tb_next
        known = self._known(error, below)
        if known is not None and operation is None:
            return known
        name = f"x{self._count}"
        self._count += 1
        self._failures[id(error)] = (name, type(error))
        self._budget.left -= PER_DIAGNOSTIC
        record = {
            "id": name,
            "exception": tensors.type_name(type(error)),
            "operation": operation,
            "invocation": invocation,
            "location": self._sources.here() if operation else self._sources.raised(error),
            "cause": known or self._cause(error),
        }
        self._budget.write(f'{{"diagnostic":{to_json(record)}}}')
        return name

    def _known(self, error: BaseException, trace: Any) -> "str | None":
        """The record of an exception that came through one of our hooks before: an ``id()`` can be used again."""
        name, kind = self._failures.get(id(error), (None, None))
        return name if kind is type(error) and _passed_a_hook(trace) else None

    def _cause(self, error: BaseException) -> "str | None":
        """The record of the exception in whose place this one was raised, however many of them lie between."""
        seen = {id(error)}
        at = _replaced(error)
        while at is not None and id(at) not in seen:
            known = self._known(at, at.__traceback__)
            if known is not None:
                return known
            seen.add(id(at))
            at = _replaced(at)
        return None


_GROUP: Any = getattr(builtins, "BaseExceptionGroup", ())  # since Python 3.11


def _replaced(error: BaseException) -> "BaseException | None":
    """What Python links to an exception: ``from``, or what was handled when it was raised, or the first of a group."""
    if error.__cause__ is not None or error.__suppress_context__:
        return error.__cause__
    if isinstance(error, _GROUP):
        return error.exceptions[0]  # pyright: ignore[reportAttributeAccessIssue]
    return error.__context__


def _passed_a_hook(trace: Any) -> bool:
    while trace is not None:
        if trace.tb_frame.f_code in hooks:
            return True
        trace = trace.tb_next
    return False
