"""One method for each event of a run: what it carried, what it wrote, how it ended, as journal lines.

    begin -> end | fail           an operation             enter -> leave | leave_failed      a module call

Every event first settles the values of the one before.
"""

import weakref
from typing import Any, NamedTuple

from torch import Tensor

from tensorviz_worker import tensors
from tensorviz_worker.arguments import ArgumentEncoder, opaque
from tensorviz_worker.budget import Budget
from tensorviz_worker.effects import Recipe, recipe_of, written_arguments
from tensorviz_worker.identity import TensorRef
from tensorviz_worker.journal import quote, to_json
from tensorviz_worker.modules import ParameterCounter
from tensorviz_worker.registry import Registry
from tensorviz_worker.sources import SourceMap
from tensorviz_worker.values import Values

hooks: "set[Any]" = set()
"""The code objects of the recorder's hooks, through which every recorded exception passes."""


class Write(NamedTuple):
    """A tensor that an operation may write, where its operand stands, and its value before."""

    path: "tuple[str | int, ...]"
    relation: str
    ref: TensorRef
    before: str


class OpenOperation(NamedTuple):
    name: str
    writes: "list[Write]"


class OpenCall(NamedTuple):
    name: str


class Facts:
    def __init__(self, budget: Budget, sources: SourceMap) -> None:
        limits = budget.limits
        self._budget = budget
        self._write = budget.write
        self._limits = limits
        self._sources = sources
        self._values = Values(budget)
        self._registry = Registry(budget, self._values, sources)
        self._encoder = ArgumentEncoder(self._values.reference, limits.argumentDepth, limits.argumentItems, limits.text)
        self._counter = ParameterCounter(limits.parameterReads)
        self._recipes: dict[Any, Recipe] = {}
        self._calls: list[str] = []
        self._operations = self._invocations = self._diagnostics = 0
        self._last_failure: tuple[int, str] | None = None
        self.register = self._registry.register
        self.gap = budget.gap

    # -- operations

    def begin(self, func: Any, args: Any, kwargs: Any) -> "OpenOperation | None":
        recipe = self._recipes.get(func) or self._learn(func)
        if not recipe.recorded:
            return None
        self._values.settle()
        if self._budget.omits("operations", "operation_limit", self._operations, self._limits.operations):
            return None
        self._values.come_from(None)
        if recipe.writes and not recipe.target.startswith("aten."):
            self._values.accept_version(tensor for _, tensor in written_arguments(recipe, args, kwargs))
        arguments = self._arguments(args, kwargs)
        if self._budget.omits_bytes("operations", len(arguments)):
            return None
        name = f"o{self._operations}"
        self._operations += 1
        self._write(
            f'{{"begin":{{"id":"{name}","sequence":{self._next()},"target":{quote(recipe.target)},'
            f'"invocation":{self._current_call()},"location":{self._here()},{arguments}}}}}'
        )
        return OpenOperation(name, self._writes(recipe, args, kwargs) if recipe.writes else [])

    def end(self, operation: OpenOperation, output: Any) -> None:
        self._values.settle()
        effects = self._effects(operation, output) if operation.writes else ""
        self._values.come_from(f'"kind":"output","operation":"{operation.name}"')
        self._write(f'{{"end":{{"id":"{operation.name}","output":{self._result(output)},"effects":[{effects}]}}}}')

    def fail(self, operation: OpenOperation, error: BaseException) -> None:
        self._values.settle()
        effects = ",".join(_effect(write, opaque(_type_of(write.ref), "failed_write")) for write in operation.writes)
        diagnostic = self._diagnose(error, operation.name)
        self._write(f'{{"end":{{"id":"{operation.name}","diagnostic":"{diagnostic}","effects":[{effects}]}}}}')

    def _learn(self, func: Any) -> Recipe:
        recipe = self._recipes[func] = recipe_of(func)
        if recipe.recorded:
            self._write(f'{{"operator":{to_json({"target": recipe.target, "operatorSchema": recipe.schema})}}}')
        return recipe

    # -- module calls

    def enter(self, module: Any, args: Any, kwargs: Any) -> "OpenCall | None":
        self._values.settle()
        if self._budget.omits("invocations", "invocation_limit", self._invocations, self._limits.invocations):
            return None
        name = f"c{self._invocations}"
        is_root = not self._calls
        if is_root:
            self.register(module)
        self._values.come_from(f'"kind":"input","invocation":"{name}"' if is_root else None)
        arguments = self._arguments(args, kwargs)
        if self._budget.omits_bytes("invocations", len(arguments)):
            return None
        self._invocations += 1
        module_name, entry = self._registry.module(module), self._next()
        self._write(
            f'{{"enter":{{"id":"{name}","module":"{module_name}","parent":{self._current_call()},"entry":{entry},'
            f'"location":{self._here()},{arguments}{self._parameter_count(module)}}}}}'
        )
        self._calls.append(name)
        self._budget.open_calls += 1
        return OpenCall(name)

    def leave(self, call: OpenCall, output: Any) -> None:
        self._values.settle()
        self._close(call)
        self._values.come_from(None)
        self._write(f'{{"exit":{{"id":"{call.name}","exit":{self._next()},"output":{self._result(output)}}}}}')

    def leave_failed(self, call: OpenCall, error: BaseException) -> None:
        self._values.settle()
        diagnostic = self._diagnose(error, None)
        self._close(call)
        self._write(f'{{"exit":{{"id":"{call.name}","exit":{self._next()},"diagnostic":"{diagnostic}"}}}}')

    def _close(self, call: OpenCall) -> None:
        if self._calls and self._calls[-1] == call.name:
            self._calls.pop()
            self._budget.open_calls -= 1

    def _current_call(self) -> str:
        return f'"{self._calls[-1]}"' if self._calls else "null"

    def _parameter_count(self, module: Any) -> str:
        count, unavailable = self._counter.count(module)
        return f',"parameterCount":{count}' if unavailable is None else f',"parameterCountUnavailable":"{unavailable}"'

    # -- what an event carries

    def _arguments(self, args: Any, kwargs: Any) -> str:
        encode, known = self._encoder.encode, self._values.known
        positional = ",".join([known(value) or encode(value, ("args", index)) for index, value in enumerate(args)])
        if not kwargs:
            return f'"args":[{positional}],"kwargs":[]'
        keyword = ",".join(
            [
                f'{{"name":{quote(name)},"value":{known(value) or encode(value, ("kwargs", index, "value"))}}}'
                for index, (name, value) in enumerate(kwargs.items())
            ]
        )
        return f'"args":[{positional}],"kwargs":[{keyword}]'

    def _result(self, output: Any) -> str:
        """A result is kept even when the budget is spent, but not one that is larger than what was reserved."""
        text = self._encoder.encode(output, ())
        return text if self._budget.fits_reserve(text) else opaque(type(output), "value_limit")

    def _here(self) -> str:
        location = self._sources.here()
        return "null" if location is None else f'"{location}"'

    def _next(self) -> int:
        self._budget.events += 1
        return self._budget.events - 1

    # -- effects

    def _writes(self, recipe: Recipe, args: Any, kwargs: Any) -> "list[Write]":
        """The written operands and, after each, the live observed tensors that share its storage."""
        found: list[Write] = []
        for path, tensor in written_arguments(recipe, args, kwargs):
            ref = self._values.find(tensor)
            if ref is None:
                continue
            ref.base = weakref.ref(tensor._base) if tensor._base is not None else None
            found.append(Write(path, "operand", ref, ref.value))
            if ref.storage is not None:
                found.extend(
                    Write(path, "alias", alias, alias.value)
                    for alias in list(ref.storage.aliases.values())
                    if alias is not ref and alias() is not None
                )
        return _without_repeated_aliases(found)

    def _effects(self, operation: OpenOperation, output: Any) -> str:
        returned: dict[int, tuple[str | int, ...]] = {}
        _paths_of(output, (), returned)
        texts: list[str] = []
        written: dict[str, str] = {}
        for write in operation.writes:
            tensor = write.ref()
            after = written.get(write.ref.object)
            if after is None and tensor is not None:
                producer = _producer(operation.name, len(texts), returned.get(id(tensor)))
                after = written[write.ref.object] = self._values.next_version(write.ref, tensor, producer)
            if after is not None:  # an alias that died during the operation has no value after it
                texts.append(_effect(write, after))
        return ",".join(texts)

    # -- failures and the end

    def _diagnose(self, error: BaseException, operation: "str | None") -> str:
        """The record of an exception: a new one, or that of the operation it came from."""
        last = self._last_failure
        if operation is None and last is not None and last[0] == id(error) and _was_seen_below(error):
            return last[1]
        name = f"x{self._diagnostics}"
        self._diagnostics += 1
        self._last_failure = (id(error), name)
        record = {
            "id": name,
            "exception": tensors.type_name(type(error)),
            "operation": operation,
            "invocation": self._calls[-1] if self._calls else None,
            "location": self._sources.here() if operation else self._sources.raised(error),
        }
        self._write(f'{{"diagnostic":{to_json(record)}}}')
        return name

    def finish(self, error: "BaseException | None") -> None:
        self._values.settle()
        diagnostic = self._diagnose(error, None) if error is not None else None
        self._write(f'{{"finish":{to_json({"diagnostic": diagnostic, "omitted": self._budget.omitted})}}}')

    def forget(self, *swapped: Any) -> None:
        """These tensors change behind our back: what they become is seen at their next use."""
        self.gap("unobserved_write")
        for tensor in swapped:
            self._values.forget(tensor)

    def forget_all(self) -> None:
        self._values.forget_all()

    def finish_broken(self, kind: type) -> None:
        """Our own failure ended the recording: what follows it is missing and was not counted."""
        self._write(f'{{"broken":{to_json({"type": tensors.type_name(kind)})}}}')


def _type_of(ref: TensorRef) -> type:
    tensor = ref()
    return Tensor if tensor is None else type(tensor)


def _paths_of(value: Any, path: "tuple[str | int, ...]", found: "dict[int, tuple[str | int, ...]]") -> None:
    """Where in an operation's output each tensor stands first. Dispatcher results nest in plain sequences alone."""
    if isinstance(value, Tensor):
        found.setdefault(id(value), path)
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            _paths_of(item, (*path, "items", index), found)


def _producer(operation: str, effect: int, path: "tuple[str | int, ...] | None") -> str:
    if path is not None:
        return f'{{"kind":"output","operation":"{operation}","path":{to_json(path)}}}'
    return f'{{"kind":"effect","operation":"{operation}","path":[{effect},"after"]}}'


def _effect(write: Write, after: str) -> str:
    return (
        f'{{"argument":{to_json(write.path)},"relation":"{write.relation}","before":"{write.before}","after":{after}}}'
    )


def _without_repeated_aliases(writes: "list[Write]") -> "list[Write]":
    """Operands stay, each with its own path; an alias is told once, and not at all when it is an operand itself."""
    seen = {write.ref.object for write in writes if write.relation == "operand"}
    kept = []
    for write in writes:
        if write.relation == "operand" or write.ref.object not in seen:
            kept.append(write)
            seen.add(write.ref.object)
    return kept


def _was_seen_below(error: BaseException) -> bool:
    """Whether the exception came through one of our hooks below this one. An ``id()`` can be used again."""
    trace = error.__traceback__ and error.__traceback__.tb_next
    while trace is not None:
        if trace.tb_frame.f_code in hooks:
            return True
        trace = trace.tb_next
    return False
