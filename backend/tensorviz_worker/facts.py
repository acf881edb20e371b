"""One method for each event of a run: what it carried, what it wrote, how it ended, as journal lines.

    begin -> end | fail           an operation             enter -> leave | leave_failed      a module call

Every event first settles the values of the one before.
"""

import contextlib
import weakref
from typing import Any, NamedTuple

from torch import Tensor
from torch._ops import HigherOrderOperator

from tensorviz_worker import tensors
from tensorviz_worker.arguments import ArgumentEncoder, opaque
from tensorviz_worker.budget import PER_EVENT, Budget
from tensorviz_worker.diagnostics import Diagnostics
from tensorviz_worker.effects import Recipe, recipe_of, written_arguments
from tensorviz_worker.identity import TensorRef
from tensorviz_worker.journal import quote, to_json
from tensorviz_worker.modules import ParameterCounter
from tensorviz_worker.registry import Registry
from tensorviz_worker.sources import SourceMap
from tensorviz_worker.tensors import untyped_storage
from tensorviz_worker.values import Values
from tensorviz_worker.ways import Way, way_of

_DISPATCH_FRAMES, _CALL_FRAMES = 3, 4
"""Frames of ours between the recorded program and the look for its place, that of the hook itself among them."""
_NO_WRITES: "list[Write]" = []


class Write(NamedTuple):
    """A tensor that an operation may write, where its operand stands, and its value before."""

    path: str
    relation: str
    ref: TensorRef
    before: str


OpenOperation = tuple[str, "list[Write]", "Way | None"]
"""The id of an operation whose kernel runs, what it may write, and how to call it if not as it is. A bare tuple: one
is made for every operation."""


class Facts:
    def __init__(self, budget: Budget, sources: SourceMap) -> None:
        limits = budget.limits
        self._budget = budget
        self._write = budget.write
        self._here = sources.here
        self._values = Values(budget)
        self._live = self._values.live
        self._registry = Registry(budget, self._values, sources)
        self._encoder = ArgumentEncoder(self._values.reference, limits.argumentDepth, limits.argumentItems, limits.text)
        self._encode, self._scalars = self._encoder.encode, self._encoder.scalars
        self._counter = ParameterCounter(limits.parameterReads)
        self._recipes: dict[int, Recipe] = {}
        self._kept: list[Any] = []  # operators, so that the id() above stays theirs
        self._names: dict[str, str] = {}
        self._calls: list[tuple[str, str, str | None]] = []  # open ones: id, then what the next two were before it
        self._call = "null"  # the innermost open call, encoded
        self._place: str | None = None  # and where it is made
        self._max_operations, self._max_invocations = limits.operations, limits.invocations
        self._operations = self._invocations = self._events = 0
        self._diagnostics = Diagnostics(budget, sources)
        self.register = self._registry.register
        self.gap = budget.gap

    # -- operations

    def begin(self, func: Any, args: Any, kwargs: Any, given: "str | None" = None) -> "OpenOperation | None":
        """None when it is not recorded, or not yet. ``given`` are its arguments, of one that has run."""
        recipe = self._recipes.get(id(func)) or self._learn(func)
        if not recipe.recorded and given is None:
            return None
        values, budget, number = self._values, self._budget, self._operations
        if values.unsettled:
            values.settle()
        if budget.stopped or budget.left < 0 or number >= self._max_operations:
            return budget.omit("operations", "operation_limit" if number >= self._max_operations else "byte_limit")
        values.origin = ""
        if recipe.writes and recipe.custom:
            values.accept_version(tensor for _, tensor in written_arguments(recipe, args, kwargs))
        arguments = self._arguments(args, kwargs) if given is None else given
        if len(arguments) > budget.left:
            return budget.omit("operations", "byte_limit")
        name = f"o{number}"
        self._operations = number + 1
        self._events = (sequence := self._events) + 1
        budget.left -= PER_EVENT
        location = self._here(_DISPATCH_FRAMES, self._place)
        place = "null" if location is None else f'"{location}"'
        self._write(
            f'{{"begin":{{"id":"{name}","sequence":{sequence},"target":{recipe.target},"invocation":{self._call},'
            f'"location":{place},{arguments}}}}}'
        )
        return name, self._writes(recipe, args, kwargs) if recipe.writes else _NO_WRITES, recipe.way

    def end(self, operation: OpenOperation, output: Any) -> None:
        name, writes, _ = operation
        values = self._values
        if values.unsettled:
            values.settle()
        effects = self._effects(operation, output) if writes else ""
        known = self._live.get(id(output))
        if type(output) is Tensor and (known is None or known() is not output):
            result = values.first(output, f'{{"kind":"output","operation":"{name}","path":[]}}')
        else:
            values.origin = f'{{"kind":"output","operation":"{name}","path":['
            result = self._result(output)
        self._write(f'{{"end":{{"id":"{name}","output":{result},"effects":[{effects}]}}}}')

    def fail(self, operation: OpenOperation, error: BaseException) -> None:
        self._values.settle()
        name, writes, _ = operation
        effects = ",".join(_effect(write, opaque(_type_of(write.ref), "failed_write")) for write in writes)
        diagnostic = self._diagnostics.record(error, name, self._open_call())
        self._write(f'{{"end":{{"id":"{name}","diagnostic":"{diagnostic}","effects":[{effects}]}}}}')

    def given(self, args: Any, kwargs: Any) -> str:
        """The arguments of a higher-order operator before it runs."""
        self._values.settle()
        self._values.origin = ""
        is_over = self._budget.stopped or self._budget.left < 0
        return "" if is_over else self._arguments(args, kwargs)

    def told(self, func: Any, given: str, output: Any) -> None:
        operation = self.begin(func, (), {}, given)
        if operation is not None:
            self.end(operation, output)

    def told_failed(self, func: Any, given: str, error: BaseException) -> None:
        operation = self.begin(func, (), {}, given)
        if operation is not None:
            self.fail(operation, error)

    def _learn(self, func: Any) -> Recipe:
        recipe = self._recipes[id(func)] = recipe_of(func)._replace(way=way_of(func))
        self._kept.append(func)
        if recipe.recorded or isinstance(func, HigherOrderOperator):
            self._write(f'{{"operator":{{"target":{recipe.target},"operatorSchema":{to_json(recipe.schema)}}}}}')
        return recipe

    # -- module calls

    def enter(self, module: Any, args: Any, kwargs: Any) -> "str | None":
        """The id of the call, or None when it is left out."""
        values, budget, number = self._values, self._budget, self._invocations
        if values.unsettled:
            values.settle()
        if budget.stopped or budget.left < 0 or number >= self._max_invocations:
            return budget.omit("invocations", "invocation_limit" if number >= self._max_invocations else "byte_limit")
        name = f"c{number}"
        is_root = not self._calls
        if is_root:
            self.register(module)
        values.origin = f'{{"kind":"input","invocation":"{name}","path":[' if is_root else ""
        arguments = self._arguments(args, kwargs)
        if len(arguments) > budget.left:
            return budget.omit("invocations", "byte_limit")
        self._invocations = number + 1
        module_name = self._registry.module(module)
        self._registry.unseen_calls.discard(module_name)
        self._events = (entry := self._events) + 1
        budget.left -= PER_EVENT
        budget.open_call()
        location = self._here(_CALL_FRAMES, self._place)
        place = "null" if location is None else f'"{location}"'
        self._write(
            f'{{"enter":{{"id":"{name}","module":"{module_name}","parent":{self._call},"entry":{entry},'
            f'"location":{place},{arguments}{self._counter.count(module)}}}}}'
        )
        self._calls.append((name, self._call, self._place))
        self._call, self._place = f'"{name}"', location
        return name

    def leave(self, name: str, output: Any) -> None:
        values = self._values
        if values.unsettled:
            values.settle()
        values.origin = ""
        result = values.reference(output, "") if type(output) is Tensor else self._result(output)
        self._write(f'{{"exit":{{"id":"{name}","exit":{self._close(name)},"output":{result}}}}}')

    def leave_failed(self, name: str, error: BaseException) -> None:
        self._values.settle()
        diagnostic = self._diagnostics.record(error, None, self._open_call())
        self._write(f'{{"exit":{{"id":"{name}","exit":{self._close(name)},"diagnostic":"{diagnostic}"}}}}')

    def _close(self, name: str) -> int:
        """The sequence number of the end of a call."""
        calls = self._calls
        if calls and calls[-1][0] == name:
            _, self._call, self._place = calls.pop()
            self._budget.close_call()
        self._budget.left -= PER_EVENT
        self._events += 1
        return self._events - 1

    def _open_call(self) -> "str | None":
        return self._calls[-1][0] if self._calls else None

    # -- what an event carries

    def _arguments(self, args: Any, kwargs: Any) -> str:
        """The hot path: plain tensors that are still as they were recorded, and scalars."""
        live, scalars, texts = self._live, self._scalars, []
        for value in args:
            ref = live.get(id(value))
            if (
                ref is not None
                and ref.plain
                and ref() is value
                and value._version == ref.version
                and value.shape == ref.shape
                and (ref.storage is None or ref.storage() is untyped_storage(value))
            ):  # ``values.is_current``, in line
                texts.append(ref.text)
            else:
                scalar = scalars.get(id(type(value)))
                texts.append(self._encode(value, f'"args",{len(texts)}') if scalar is None else scalar(value))
        if not kwargs:
            return f'"args":[{",".join(texts)}],"kwargs":[]'
        named, names = [], self._names
        for name, value in kwargs.items():
            scalar = scalars.get(id(type(value)))
            text = self._encode(value, f'"kwargs",{len(named)},"value"') if scalar is None else scalar(value)
            named.append(f'{{"name":{names.get(name) or self._quoted(name)},"value":{text}}}')
        return f'"args":[{",".join(texts)}],"kwargs":[{",".join(named)}]'

    def _quoted(self, name: str) -> str:
        text = self._names[name] = quote(name[:1024])
        return text

    def _result(self, output: Any) -> str:
        """A result is kept even when the budget is spent, but not one that is larger than what was reserved."""
        text = self._encode(output, "")
        return text if self._budget.fits_reserve(text) else opaque(type(output), "value_limit")

    # -- effects

    def _writes(self, recipe: Recipe, args: Any, kwargs: Any) -> "list[Write]":
        """The written operands and, after each, the live observed tensors that share its storage."""
        found: list[Write] = []
        for path, tensor in written_arguments(recipe, args, kwargs):
            ref = self._values.find(tensor)
            if ref is None:
                continue
            base = tensor._base
            ref.base = weakref.ref(base) if base is not None else None
            found.append(Write(path, "operand", ref, ref.value))
            if ref.storage is not None and len(ref.storage.aliases) > 1:
                found.extend(Write(path, "alias", alias, alias.value) for alias in ref.storage.others(ref))
        return found if len(found) < 2 else _without_repeated_aliases(found)

    def _effects(self, operation: OpenOperation, output: Any) -> str:
        name, writes, _ = operation
        returned: dict[int, str] = {}
        _paths_of(output, "", returned)
        texts: list[str] = []
        written: dict[int, str] = {}
        for write in writes:
            tensor = write.ref()
            after = written.get(write.ref.object)
            if after is None and tensor is not None:
                producer = _producer(name, len(texts), returned.get(id(tensor)))
                after = written[write.ref.object] = self._values.next_version(write.ref, tensor, producer)
            if after is not None:  # an alias that died during the operation has no value after it
                texts.append(_effect(write, after))
        return ",".join(texts)

    # -- the end

    def finish(self, error: "BaseException | None") -> None:
        self._values.settle()
        if self._registry.unseen_calls:
            self.gap("unobserved_call")
        self._tell_end(error)

    def _tell_end(self, error: "BaseException | None") -> None:
        diagnostic = self._diagnostics.record(error, None, self._open_call()) if error is not None else None
        self._write(f'{{"finish":{to_json({"diagnostic": diagnostic, "omitted": self._budget.omitted})}}}')

    def forget(self, *swapped: Any) -> None:
        """These tensors change behind our back: what they become is seen at their next use."""
        self.gap("unobserved_write")
        for tensor in swapped:
            self._values.forget(tensor)

    def forget_all(self) -> None:
        self._values.forget_all()

    def finish_broken(self, kind: type, error: "BaseException | None") -> None:
        """Our own failure ended the recording: what follows it is missing and was not counted."""
        self._budget.pending.clear()  # of an event that was not finished
        with contextlib.suppress(Exception):
            self._tell_end(error)
        self._write(f'{{"broken":{to_json({"type": tensors.type_name(kind)})}}}')


def _type_of(ref: TensorRef) -> type:
    tensor = ref()
    return Tensor if tensor is None else type(tensor)


def _paths_of(value: Any, path: str, found: "dict[int, str]") -> None:
    """Where in an operation's output each tensor stands first. Dispatcher results nest in plain sequences alone."""
    if isinstance(value, Tensor):
        found.setdefault(id(value), path)
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            _paths_of(item, f'{path},"items",{index}' if path else f'"items",{index}', found)


def _producer(operation: str, effect: int, path: "str | None") -> str:
    if path is not None:
        return f'{{"kind":"output","operation":"{operation}","path":[{path}]}}'
    return f'{{"kind":"effect","operation":"{operation}","path":[{effect},"after"]}}'


def _effect(write: Write, after: str) -> str:
    return f'{{"argument":[{write.path}],"relation":"{write.relation}","before":"{write.before}","after":{after}}}'


def _without_repeated_aliases(writes: "list[Write]") -> "list[Write]":
    """Operands stay, each with its own path; an alias is told once, and not at all when it is an operand itself."""
    seen = {write.ref.object for write in writes if write.relation == "operand"}
    kept = []
    for write in writes:
        if write.relation == "operand" or write.ref.object not in seen:
            kept.append(write)
            seen.add(write.ref.object)
    return kept
