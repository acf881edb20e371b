"""Imports the user's file under its own name and finds what to run in it."""

import ast
import importlib
import importlib.util
import inspect
import os
import sys
import types
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from tensorviz_worker.refusal import Refusal

SCRIPT = "__main__"


class Target(NamedTuple):
    """``kind`` is the contract's; ``build`` gives the module to call."""

    name: str
    kind: str
    build: Callable[[], Any]


class ImportName(NamedTuple):
    name: str
    root: str
    in_package: bool


def import_name(path: str, roots: "list[str]") -> ImportName:
    """The dotted name of a file and the folder it starts from: up through ``__init__.py``, else a namespace package.

    A file without either is a module of its own. Only relative imports tell a namespace package from that.
    """
    folder, parts = os.path.dirname(path), [os.path.splitext(os.path.basename(path))[0]]
    while os.path.isfile(os.path.join(folder, "__init__.py")):
        folder, name = os.path.split(folder)
        parts.insert(0, name)
    if len(parts) == 1 and _has_relative_import(path):
        for root in sorted(roots, key=len, reverse=True):
            below = os.path.relpath(os.path.dirname(path), root).split(os.sep)
            if below != ["."] and below[0] != ".." and all(part.isidentifier() for part in below):
                return ImportName(".".join([*below, *parts]), root, True)
    return ImportName(".".join(parts), folder, len(parts) > 1)


def _has_relative_import(path: str) -> bool:
    with open(path, "rb") as stream:
        tree = ast.parse(stream.read(), path)
    return any(isinstance(node, ast.ImportFrom) and node.level for node in ast.walk(tree))


def add_import_roots(name: ImportName, roots: "list[str]") -> None:
    for entry in reversed([name.root, *roots]):
        if entry not in sys.path:
            sys.path.insert(0, entry)


def load(path: str, roots: "list[str]") -> types.ModuleType:
    """The imported module. Raises Refusal, whatever the file does while it is imported."""
    name = import_name(path, roots)
    add_import_roots(name, roots)
    sys.argv = [path]
    if not name.in_package:
        return _load_alone(name.name, path)
    module = importlib.import_module(name.name)
    found = getattr(module, "__file__", None)
    if found is None or os.path.realpath(found) != os.path.realpath(path):
        raise Refusal(
            "import_shadowed",
            f"importing {name.name} gave {found}, not {path}",
            "another copy of the package comes first on the import path; uninstall it or install this one editable",
        )
    return module


def _load_alone(name: str, path: str) -> types.ModuleType:
    if name in sys.modules or name in sys.stdlib_module_names or name == "__main__":
        name = f"_user_{name}"  # a file called types.py must not take the place of the standard library's
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise Refusal("import_failed", f"{path} is not a Python source file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def script(path: str, roots: "list[str]") -> Target:
    """The whole file, run as ``python FILE`` would run it."""
    add_import_roots(import_name(path, roots), roots)
    with open(path, "rb") as stream:
        code = compile(stream.read(), path, "exec", dont_inherit=True)

    def run() -> None:
        module = types.ModuleType(SCRIPT)
        module.__file__ = path
        sys.modules[SCRIPT] = module
        sys.argv = [path]
        exec(code, module.__dict__)

    return Target(SCRIPT, "script", run)


def resolve(module: types.ModuleType, name: "str | None", path: str) -> Target:
    """The named target, or the one module that the file is evidently about."""
    if name is None:
        name = _only_candidate(module, path)
    found: Any = module
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise Refusal(
                "target_not_found", f"{os.path.basename(path)} has no {name}", _offer(_candidates(module), path)
            ) from None
    return _as_target(module, name, found)


def _as_target(module: types.ModuleType, name: str, found: Any) -> Target:
    if isinstance(found, torch.nn.Module):
        return Target(name, "instance", lambda: found)
    if isinstance(found, type) and issubclass(found, torch.nn.Module):
        return Target(name, "class", lambda: _construct(module, name, found))
    if callable(found) and not isinstance(found, type):
        return Target(name, "factory", lambda: _made_by(name, found))
    raise Refusal(
        "target_unsupported",
        f"{name} is a {type(found).__name__}, not an nn.Module class, a module or a function that returns one",
        "name a class, a module instance or a factory function, or use FILE.py:__main__ for the whole script",
    )


def _construct(module: types.ModuleType, name: str, kind: type) -> Any:
    given = _init_inputs(module)
    missing = _missing_arguments(kind, given)
    if missing:
        raise Refusal(
            "target_failed",
            f"{name} needs arguments that nothing supplies: {', '.join(missing)}",
            f"add 'def get_init_inputs(): return [...]' to the file, or name a function that returns a {name}",
        )
    return kind(*given)


def _init_inputs(module: types.ModuleType) -> "tuple[Any, ...]":
    function = getattr(module, "get_init_inputs", None)
    given = function() if callable(function) else ()
    return tuple(given) if isinstance(given, (list, tuple)) else (given,)


def _missing_arguments(callee: Any, given: "tuple[Any, ...]") -> "list[str]":
    try:
        signature = inspect.signature(callee)
    except (TypeError, ValueError):
        return []
    needed = [
        parameter.name
        for parameter in signature.parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    return needed[len(given) :]


def _made_by(name: str, factory: Any) -> Any:
    missing = _missing_arguments(factory, ())
    if missing:
        raise Refusal(
            "target_failed",
            f"{name} needs arguments that nothing supplies: {', '.join(missing)}",
            "name a function that takes no arguments and returns the model",
        )
    made = factory()
    if isinstance(made, torch.nn.Module):
        return made
    raise Refusal(
        "target_unsupported", f"{name}() returned a {type(made).__name__}, not an nn.Module", "return the model from it"
    )


def _candidates(module: types.ModuleType) -> "dict[str, Any]":
    """The file's own module classes and the module objects it holds, by name."""
    return {
        name: value
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (
            isinstance(value, torch.nn.Module)
            or (isinstance(value, type) and issubclass(value, torch.nn.Module) and value.__module__ == module.__name__)
        )
    }


def _only_candidate(module: types.ModuleType, path: str) -> str:
    """A single instance, else the class ``Model``, else the one class that no other of the file uses or extends."""
    found = _candidates(module)
    instances = [name for name, value in found.items() if isinstance(value, torch.nn.Module)]
    classes = [name for name, value in found.items() if isinstance(value, type)]
    if len(instances) == 1:
        return instances[0]
    if not instances and "Model" in classes:
        return "Model"
    whole = [name for name in classes if name not in _used_by_others(path, classes)]
    if not instances and len(whole) == 1:
        return whole[0]
    if found:
        raise Refusal("target_ambiguous", f"{os.path.basename(path)} holds several models", _offer(found, path))
    raise Refusal(
        "target_not_found",
        f"{os.path.basename(path)} defines no nn.Module and holds none",
        f"name a factory function ({os.path.basename(path)}:FUNCTION), "
        f"or record the whole script with {os.path.basename(path)}:__main__",
    )


def _used_by_others(path: str, classes: "list[str]") -> "set[str]":
    """Names of classes that stand inside the definition of another class: its parts and its bases."""
    with open(path, "rb") as stream:
        tree = ast.parse(stream.read(), path)
    used: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name in classes:
            names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
            used |= (names & set(classes)) - {node.name}
    return used


def _offer(found: "dict[str, Any]", path: str) -> str:
    if not found:
        return f"record the whole script with {os.path.basename(path)}:__main__"
    return "name one of them: " + ", ".join(f"{os.path.basename(path)}:{name}" for name in list(found)[:20])
