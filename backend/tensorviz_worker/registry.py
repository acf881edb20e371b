"""Tells each module class, module object, parameter and buffer once, and under which paths a root registers them."""

import weakref
from typing import Any

import torch
from torch import Tensor

from tensorviz_worker import modules, tensors
from tensorviz_worker.budget import PER_MODULE, Budget
from tensorviz_worker.journal import quote, to_json
from tensorviz_worker.sources import SourceMap
from tensorviz_worker.values import Values


class Registry:
    def __init__(self, budget: Budget, values: Values, sources: SourceMap) -> None:
        self._budget = budget
        self._values = values
        self._sources = sources
        self._modules: dict[int, tuple[weakref.ref[Any], str]] = {}
        self._definitions: dict[int, tuple[type, str]] = {}
        self._roots: set[str] = set()
        self._count = 0
        self.unseen_calls: set[str] = set()
        """Modules whose class brings a ``__call__`` of its own, until a call of theirs is seen."""

    def register(self, root: Any) -> None:
        """Every module, parameter and buffer below ``root``, under each of its paths. Once for each root."""
        root_name = self.module(root)
        if root_name in self._roots:
            return
        self._roots.add(root_name)
        paths: dict[int, tuple[Any, list[str]]] = {}
        state: dict[int, tuple[str, Tensor, list[str]]] = {}
        for count, (path, module) in enumerate(modules.walk(root), 1):
            if count == modules.MAX_PATHS:
                self._budget.gap("path_limit")
            paths.setdefault(id(module), (module, []))[1].append(path)
            _collect_state(module, path, state)
        for module, found in paths.values():
            name = self.module(module)
            self._budget.write(f'{{"paths":{{"id":"{name}","paths":{_registered(root_name, found)}}}}}')
        for kind, tensor, found in state.values():
            self._tell_state(kind, tensor, _registered(root_name, found))

    def module(self, module: Any) -> str:
        """The id of a module object, alive or not: an ``id()`` that is used again gives another one."""
        known = self._modules.get(id(module))
        if known is not None and known[0]() is module:
            return known[1]
        name = f"m{self._count}"
        self._count += 1
        self._modules[id(module)] = (weakref.ref(module), name)
        self._budget.left -= PER_MODULE
        training = "true" if _is_training(module) else "false"
        definition = self._definition(type(module))
        if modules.has_own_call(type(module)):
            self.unseen_calls.add(name)
        self._budget.write(f'{{"module":{{"id":"{name}","definition":"{definition}","training":{training}}}}}')
        return name

    def _definition(self, kind: type) -> str:
        known = self._definitions.get(id(kind))
        if known is not None:
            return known[1]
        name = f"d{len(self._definitions)}"
        self._definitions[id(kind)] = (kind, name)  # kept, so that the id() stays its own
        location = self._sources.function(modules.forward_code(kind))
        self._budget.write(
            f'{{"definition":{{"id":"{name}","type":{quote(tensors.type_name(kind))},"location":{to_json(location)}}}}}'
        )
        return name

    def _tell_state(self, kind: str, tensor: Tensor, paths: str) -> None:
        lazy = modules.is_uninitialized(tensor)
        ref, missing = (None, "uninitialized") if lazy else self._values.state_value(tensor)
        named = '"object":null,"value":null' if ref is None else f'"object":"t{ref.object}","value":"{ref.value}"'
        reason = "" if missing is None else f',"unavailable":"{missing}"'
        self._budget.write(f'{{"state":{{"kind":"{kind}",{named},"paths":{paths}{reason}}}}}')


def _is_training(module: Any) -> bool:
    """Read as stored: a model may make ``training`` a property. A scripted module stores it in C++."""
    if isinstance(module, torch.jit.ScriptModule):
        return getattr(module, "training", False) is True
    return object.__getattribute__(module, "__dict__").get("training") is True


def _registered(root: str, paths: "list[str]") -> str:
    return "[" + ",".join(f'{{"root":"{root}","path":{quote(path[:4096])}}}' for path in paths) + "]"


def _collect_state(module: Any, path: str, state: "dict[int, tuple[str, Tensor, list[str]]]") -> None:
    for kind, entries in (("parameter", modules.parameters(module)), ("buffer", modules.buffers(module))):
        for name, tensor in entries:
            state.setdefault(id(tensor), (kind, tensor, []))[2].append(modules.join(path, name))
