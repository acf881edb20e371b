"""The facts behind the ids: which values exist, what each call and operation carried, what was written.

Every method is one event. It first settles the values of the event before: autograd and the version counter complete a
tensor after the dispatch that made it has returned.
"""

import weakref
from typing import Any, NamedTuple

from torch import Tensor

from tensorviz_worker import modules, tensors
from tensorviz_worker.arguments import ArgumentEncoder, opaque
from tensorviz_worker.effects import Recipe, recipe_of, written_arguments
from tensorviz_worker.identity import Identities, TensorRef
from tensorviz_worker.journal import quote, to_json
from tensorviz_worker.sources import SourceMap

_RESERVE = 64 * 1024
_PER_CALL_RESERVE = 512
_PER_EVENT = 16
_FIRST_USE = '{"kind":"external","reason":"first_use"}'
hooks: "set[Any]" = set()
"""The code objects of the recorder's hooks, through which every recorded exception passes."""
_UNOBSERVED_WRITE = '{"kind":"external","reason":"unobserved_write"}'


class Limits(NamedTuple):
    """The budgets of one capture; the names are the contract's."""

    bytes: int = 16 * 2**20
    operations: int = 50_000
    invocations: int = 20_000
    values: int = 200_000
    argumentDepth: int = 32
    argumentItems: int = 10_000
    text: int = 4096
    parameterReads: int = 100_000


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
    def __init__(self, journal: Any, limits: Limits, sources: SourceMap) -> None:
        self._journal = journal
        self._write = journal.write
        self._limits = limits
        self._sources = sources
        self._identities = Identities()
        self._tensors = self._identities.tensors
        self._encoder = ArgumentEncoder(self._reference, limits.argumentDepth, limits.argumentItems, limits.text)
        self._counter = modules.ParameterCounter(limits.parameterReads)
        self._recipes: dict[Any, Recipe] = {}
        self._modules: dict[int, tuple[weakref.ref[Any], str]] = {}
        self._definitions: dict[int, tuple[type, str]] = {}
        self._roots: set[str] = set()
        self._calls: list[str] = []
        self._unsettled: list[TensorRef] = []
        self._origin = _FIRST_USE
        self._origin_tail = False
        self._sequence = self._operations = self._invocations = self._values = self._diagnostics = 0
        self._module_count = 0
        self._omitted = {"operations": 0, "invocations": 0, "values": 0}
        self._stopped: str | None = None
        self._gaps: set[str] = set()
        self._last_failure: tuple[int, str] | None = None
        self._fake = False

    # -- operations

    def begin(self, func: Any, args: Any, kwargs: Any) -> "OpenOperation | None":
        recipe = self._recipes.get(func) or self._learn(func)
        if not recipe.recorded:
            return None
        self._settle()
        if self._is_over("operation_limit", self._operations, self._limits.operations):
            return self._omit("operations")
        self._begin_origin(_FIRST_USE)
        arguments = self._arguments(args, kwargs)
        if self._is_over_bytes(len(arguments)):
            return self._omit("operations")
        name = f"o{self._operations}"
        self._operations += 1
        self._write(
            f'{{"begin":{{"id":"{name}","sequence":{self._next()},"target":{quote(recipe.target)},'
            f'"invocation":{self._current_call()},"location":{_text(self._sources.here())},{arguments}}}}}'
        )
        return OpenOperation(name, self._writes(recipe, args, kwargs) if recipe.writes else [])

    def end(self, operation: OpenOperation, output: Any) -> None:
        self._settle()
        returned: dict[int, tuple[str | int, ...]] = {}
        if operation.writes:
            _paths_of(output, (), returned)
        effects = self._effects(operation, returned)
        self._begin_origin(f'{{"kind":"output","operation":"{operation.name}","path":', tail=True)
        self._write(f'{{"end":{{"id":"{operation.name}","output":{self._result(output)},"effects":[{effects}]}}}}')

    def fail(self, operation: OpenOperation, error: BaseException) -> None:
        self._settle()
        effects = ",".join(
            _effect(write, opaque(_type_of(write.ref), "failed_write")) for write in operation.writes
        )
        diagnostic = self._diagnose(error, operation.name)
        self._write(f'{{"end":{{"id":"{operation.name}","diagnostic":"{diagnostic}","effects":[{effects}]}}}}')

    def _learn(self, func: Any) -> Recipe:
        recipe = self._recipes[func] = recipe_of(func)
        if recipe.recorded:
            self._write(f'{{"operator":{to_json({"target": recipe.target, "operatorSchema": recipe.schema})}}}')
        return recipe

    # -- module calls

    def enter(self, module: Any, args: Any, kwargs: Any) -> "OpenCall | None":
        self._settle()
        if self._is_over("invocation_limit", self._invocations, self._limits.invocations):
            return self._omit("invocations")
        name = f"c{self._invocations}"
        if not self._calls:
            self.register_root(module)
            self._begin_origin(f'{{"kind":"input","invocation":"{name}","path":', tail=True)
        else:
            self._begin_origin(_FIRST_USE)
        arguments = self._arguments(args, kwargs)
        if self._is_over_bytes(len(arguments)):
            return self._omit("invocations")
        self._invocations += 1
        module_name, entry = self._module(module), self._next()
        self._write(
            f'{{"enter":{{"id":"{name}","module":"{module_name}","parent":{self._current_call()},"entry":{entry},'
            f'"location":{_text(self._sources.here())},{arguments}{self._parameter_count(module)}}}}}'
        )
        self._calls.append(name)
        return OpenCall(name)

    def leave(self, call: OpenCall, output: Any) -> None:
        self._settle()
        self._close(call)
        self._begin_origin(_FIRST_USE)
        self._write(f'{{"exit":{{"id":"{call.name}","exit":{self._next()},"output":{self._result(output)}}}}}')

    def leave_failed(self, call: OpenCall, error: BaseException) -> None:
        self._settle()
        diagnostic = self._diagnose(error, None)
        self._close(call)
        self._write(f'{{"exit":{{"id":"{call.name}","exit":{self._next()},"diagnostic":"{diagnostic}"}}}}')

    def _close(self, call: OpenCall) -> None:
        if self._calls and self._calls[-1] == call.name:
            self._calls.pop()

    def _current_call(self) -> str:
        return f'"{self._calls[-1]}"' if self._calls else "null"

    def _parameter_count(self, module: Any) -> str:
        count, unavailable = self._counter.count(module)
        return f',"parameterCount":{count}' if unavailable is None else f',"parameterCountUnavailable":"{unavailable}"'

    # -- modules and state

    def register_root(self, root: Any) -> None:
        """Tells every module, parameter and buffer that ``root`` registers, under each of its paths, once."""
        root_name = self._module(root)
        if root_name in self._roots:
            return
        self._roots.add(root_name)
        paths: dict[int, tuple[Any, list[str]]] = {}
        state: dict[int, tuple[str, Tensor, list[str]]] = {}
        for count, (path, module) in enumerate(modules.walk(root), 1):
            if count == modules.MAX_PATHS:
                self.gap("path_limit")
            paths.setdefault(id(module), (module, []))[1].append(path)
            _collect_state(module, path, state)
        for module, found in paths.values():
            self._write(f'{{"paths":{{"id":"{self._module(module)}","paths":{_registered(root_name, found)}}}}}')
        for kind, tensor, found in state.values():
            self._write(self._state(kind, tensor, _registered(root_name, found)))

    def _module(self, module: Any) -> str:
        known = self._modules.get(id(module))
        if known is not None and known[0]() is module:
            return known[1]
        name = f"m{self._module_count}"
        self._module_count += 1
        self._modules[id(module)] = (weakref.ref(module), name)
        training = "true" if getattr(module, "training", False) is True else "false"
        definition = self._definition(type(module))
        self._write(f'{{"module":{{"id":"{name}","definition":"{definition}","training":{training}}}}}')
        return name

    def _definition(self, kind: type) -> str:
        known = self._definitions.get(id(kind))
        if known is not None:
            return known[1]
        name = f"d{len(self._definitions)}"
        self._definitions[id(kind)] = (kind, name)  # kept, so that the id() stays its own
        location = _text(self._sources.function(modules.forward_code(kind)))
        self._write(f'{{"definition":{{"id":"{name}","type":{quote(tensors.type_name(kind))},"location":{location}}}}}')
        return name

    def _state(self, kind: str, tensor: Tensor, paths: str) -> str:
        reason, obj, value = "", "null", "null"
        if modules.is_uninitialized(tensor):
            reason = ',"unavailable":"uninitialized"'
        else:
            self._begin_origin('{"kind":"state","state":null}')
            reference = self._reference(tensor, ())
            ref = self._identities.find(tensor)
            if ref is not None:
                obj, value = f'"{ref.object}"', f'"{ref.value}"'
            else:
                code = "value_limit" if "value_limit" in reference else "unsupported_tensor"
                reason = f',"unavailable":"{code}"'
        return f'{{"state":{{"object":{obj},"kind":"{kind}","value":{value},"paths":{paths}{reason}}}}}'

    # -- values

    def _begin_origin(self, origin: str, tail: bool = False) -> None:
        """Sets the producer of the tensors that are first seen from now on; with ``tail``, their path completes it."""
        self._origin, self._origin_tail = origin, tail

    def _arguments(self, args: Any, kwargs: Any) -> str:
        encode, known = self._encoder.encode, self._known
        positional = ",".join(
            [known(value) or encode(value, ("args", index)) for index, value in enumerate(args)]
        )
        if not kwargs:
            return f'"args":[{positional}],"kwargs":[]'
        keyword = ",".join(
            [
                f'{{"name":{quote(name)},"value":{known(value) or encode(value, ("kwargs", index, "value"))}}}'
                for index, (name, value) in enumerate(kwargs.items())
            ]
        )
        return f'"args":[{positional}],"kwargs":[{keyword}]'

    def _known(self, value: Any) -> "str | None":
        """The encoded reference of a plain tensor that is still at its recorded version: the hot path."""
        ref = self._tensors.get(id(value))
        if ref is None or not ref.plain or ref() is not value or not self._is_current(ref, value):
            return None
        return ref.text

    def _is_current(self, ref: TensorRef, tensor: Tensor) -> bool:
        """Whether a plain tensor is as it was recorded. Setting ``.data`` moves it to other memory without a version."""
        return (
            tensor._version == ref.version
            and tensor.shape == ref.shape
            and (ref.storage is None or ref.storage() is tensors.storage(tensor))
        )

    def _reference(self, tensor: Tensor, path: Any) -> str:
        ref = self._identities.find(tensor)
        if ref is not None:
            if not ref.plain and tensors.counters(tensor)[0] == ref.version:
                return ref.text
            if ref.plain and self._is_current(ref, tensor):
                return ref.text
            if self._stopped:
                return opaque(type(tensor), "value_limit")
            return self._next_version(ref, tensor, _UNOBSERVED_WRITE) or opaque(type(tensor), "value_limit")
        try:
            facts = tensors.read(tensor)
        except tensors.Unreadable:
            return opaque(type(tensor), "unsupported_tensor")
        if self._no_value_left():
            return opaque(type(tensor), "value_limit")
        ref = self._identities.add(tensor)
        origin = f"{self._origin}{to_json(path)}}}" if self._origin_tail else self._origin
        self._record(ref, facts, origin, 0, "null")
        return ref.text

    def _no_value_left(self) -> bool:
        if not self._stopped and self._values < self._limits.values:
            return False
        if not self._stopped:
            self.gap("value_limit")
        self._omitted["values"] += 1
        return True

    def _next_version(self, ref: TensorRef, tensor: Tensor, producer: str) -> "str | None":
        """Gives a known tensor its next value; None when there is no budget or nothing can be read."""
        if self._no_value_left():
            return None
        try:
            facts = tensors.read(tensor)
        except tensors.Unreadable:
            return None
        self._record(ref, facts, producer, ref.logical + 1, f'"{ref.value}"')
        return ref.text

    def _record(self, ref: TensorRef, facts: tensors.Facts, producer: str, logical: int, previous: str) -> None:
        self._identities.place(ref, facts.storage)
        ref.value = f"v{self._values}"
        ref.text = f'{{"kind":"tensor","value":"{ref.value}"}}'
        ref.version, ref.logical, ref.requires_grad = facts.version, logical, facts.requires_grad
        ref.plain, ref.shape = facts.plain, facts.shape
        self._values += 1
        self._unsettled.append(ref)
        if facts.fake and not self._fake:
            self._fake = True
            self._write('{"fake":true}')
        storage = f'"{ref.storage.name}"' if ref.storage is not None else "null"
        self._write(
            f'{{"value":{{"id":"{ref.value}","object":"{ref.object}","storage":{storage},'
            f'"version":{_number(facts.version)},"logicalVersion":{logical},"previousVersion":{previous},'
            f'"producer":{producer},{facts.text},"requiresGrad":{"true" if facts.requires_grad else "false"}}}}}'
        )

    def _settle(self) -> None:
        """Completes the values of the event before with what autograd and the version counter have told since."""
        if not self._unsettled:
            return
        changed = []
        for ref in self._unsettled:
            tensor = ref()
            if tensor is None:
                continue
            version, requires_grad = (
                (tensor._version, tensor.requires_grad) if ref.plain else tensors.counters(tensor)
            )
            if version != ref.version or requires_grad != ref.requires_grad:
                ref.version, ref.requires_grad = version, requires_grad
                changed.append(f'["{ref.value}",{_number(version)},{"true" if requires_grad else "false"}]')
        self._unsettled.clear()
        if changed:
            self._write(f'{{"settle":[{",".join(changed)}]}}')

    # -- effects

    def _writes(self, recipe: Recipe, args: Any, kwargs: Any) -> "list[Write]":
        """The written operands and, after each, the live observed tensors that share its storage."""
        found: list[Write] = []
        for path, tensor in written_arguments(recipe, args, kwargs):
            ref = self._identities.find(tensor)
            if ref is None:
                continue
            found.append(Write(path, "operand", ref, ref.value))
            if ref.storage is not None:
                found.extend(
                    Write(path, "alias", alias, alias.value)
                    for alias in list(ref.storage.aliases.values())
                    if alias is not ref and alias() is not None
                )
        return _without_repeated_aliases(found)

    def _effects(self, operation: OpenOperation, returned: "dict[int, tuple[str | int, ...]]") -> str:
        texts = []
        written: dict[str, str] = {}
        for write in operation.writes:
            tensor = write.ref()
            after = written.get(write.ref.object)
            if after is None and tensor is not None:
                producer = _producer(operation.name, len(texts), returned.get(id(tensor)))
                after = self._next_version(write.ref, tensor, producer) or opaque(type(tensor), "value_limit")
                written[write.ref.object] = after
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

    def gap(self, code: str) -> None:
        """Something happened that is not among the facts; the code is the contract's reason."""
        if code not in self._gaps:
            self._gaps.add(code)
            self._write(f'{{"gap":{{"code":"{code}"}}}}')

    def finish(self, error: "BaseException | None") -> None:
        self._settle()
        diagnostic = self._diagnose(error, None) if error is not None else None
        self._write(f'{{"finish":{to_json({"diagnostic": diagnostic, "omitted": self._omitted})}}}')

    def finish_broken(self, kind: type) -> None:
        """Our own failure ended the recording: what follows it is missing and was not counted."""
        self._write(f'{{"broken":{to_json({"type": tensors.type_name(kind)})}}}')

    # -- budgets

    def _is_over(self, code: str, used: int, limit: int) -> bool:
        """Whether a budget is spent. The first time, everything stops: later events would cite what is not there."""
        if self._stopped is None and used >= limit:
            self._stop(code)
        return self._is_over_bytes(0)

    def _is_over_bytes(self, size: int) -> bool:
        reserve = _RESERVE + _PER_CALL_RESERVE * len(self._calls)
        if self._stopped is None and self._size() + size + reserve > self._limits.bytes:
            self._stop("byte_limit")
        return self._stopped is not None

    def _size(self) -> int:
        """What the capture takes so far: an event's record has some words more than its lines in the journal."""
        return self._journal.size + _PER_EVENT * self._sequence

    def _stop(self, code: str) -> None:
        self._stopped = code
        self.gap(code)

    def _omit(self, kind: str) -> None:
        self._omitted[kind] += 1

    def _result(self, output: Any) -> str:
        """A result is kept even when the budget is spent, but not one that is larger than what was reserved."""
        text = self._encoder.encode(output, ())
        fits = len(text) < _PER_CALL_RESERVE or self._size() + len(text) + _RESERVE < self._limits.bytes
        return text if fits else opaque(type(output), "value_limit")

    def _next(self) -> int:
        self._sequence += 1
        return self._sequence - 1


def _text(value: "str | None") -> str:
    return "null" if value is None else f'"{value}"'


def _number(value: "int | None") -> str:
    return "null" if value is None else str(value)


def _type_of(ref: TensorRef) -> type:
    tensor = ref()
    return Tensor if tensor is None else type(tensor)


def _registered(root: str, paths: "list[str]") -> str:
    return "[" + ",".join(f'{{"root":"{root}","path":{quote(path[:4096])}}}' for path in paths) + "]"


def _collect_state(module: Any, path: str, state: "dict[int, tuple[str, Tensor, list[str]]]") -> None:
    for kind, entries in (("parameter", modules.parameters(module)), ("buffer", modules.buffers(module))):
        for name, tensor in entries:
            state.setdefault(id(tensor), (kind, tensor, []))[2].append(f"{path}.{name}" if path else name)


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
        f'{{"argument":{to_json(write.path)},"relation":"{write.relation}",'
        f'"before":"{write.before}","after":{after}}}'
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
    """Whether the exception came through one of our hooks below this one. Its ``id()`` alone could be an earlier one's."""
    trace = error.__traceback__ and error.__traceback__.tb_next
    while trace is not None:
        if trace.tb_frame.f_code in hooks:
            return True
        trace = trace.tb_next
    return False
