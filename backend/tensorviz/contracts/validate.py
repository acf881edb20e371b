"""Bytes -> a contract document, or a ContractError that says where they are wrong. Nothing else comes out of here.

    bytes --size--> --JSON--> plain data --structure--> model --relations--> CaptureSnapshot

The JSON reader refuses more than 200 levels by itself, so no input overflows the stack. A fault's path addresses the
document; a name twice in one object counts as its last value, as it does in every JavaScript reader.
"""

import gc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_core import from_json

from tensorviz.contracts.base import Model
from tensorviz.contracts.capture import CaptureSnapshot
from tensorviz.contracts.relations import MAX_FAULTS, Fault, check, in_order
from tensorviz.contracts.trees import Path, Step

MAX_BYTES = 16 * 2**20
"""No encoded capture is larger, whatever its own limits say."""
_TOO_MANY = 10_000
_MAX_MESSAGE = 300

M = TypeVar("M", bound=Model)


class ContractError(Exception):
    """A document that does not satisfy the contract. ``faults`` has at least one fault, in the order of their paths."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = tuple(faults)
        first = self.faults[0]
        super().__init__(f"{'/'.join(map(str, first.path)) or 'document'}: {first.message}")


def parse_capture(data: bytes) -> CaptureSnapshot:
    """The capture that these bytes encode, checked in full. Raises ContractError, whatever the bytes are."""
    if len(data) > MAX_BYTES:
        raise ContractError([Fault((), "size", f"{len(data)} bytes; a capture has at most {MAX_BYTES}")])
    with _without_collector():
        capture = parse(CaptureSnapshot, data)
        faults = check(capture, size=len(data))
    if faults:
        raise ContractError(faults)
    return capture


def parse(model: type[M], data: bytes) -> M:
    """Any contract document, checked by structure alone. Raises ContractError."""
    try:
        document = from_json(data, allow_inf_nan=False, cache_strings="keys")
    except ValueError as error:
        raise ContractError([Fault((), "json", str(error)[:_MAX_MESSAGE])]) from None
    try:
        return model.model_validate(document)
    except ValidationError as error:
        raise ContractError(faults(model, error)) from None


def faults(model: type[Model], error: ValidationError) -> list[Fault]:
    """What pydantic found, with paths into the document: its own also name the branches of unions."""
    if error.error_count() > _TOO_MANY:
        return [Fault((), "type", f"{error.error_count()} places are wrong")]
    found: dict[Path, Fault] = {}
    for entry in error.errors(include_url=False, include_context=False, include_input=False):
        fault = _fault(model, entry["type"], entry["loc"], entry["msg"][:_MAX_MESSAGE])
        # Every branch of a union complains. One that had the right type knows best what is wrong.
        if fault.path not in found or found[fault.path].code == "type":
            found[fault.path] = fault
    return in_order(found.values())[:MAX_FAULTS]


def _fault(model: type[Model], kind: str, loc: tuple[Step, ...], message: str) -> Fault:
    path = _instance_path(model, loc)
    if kind == "union_tag_not_found":
        return Fault((*path, "kind"), "missing", message)
    if kind == "union_tag_invalid":
        return Fault((*path, "kind"), "value", message)
    if kind == "missing":
        return Fault(path, "missing", message)
    if kind == "extra_forbidden":
        return Fault(path, "unknown", message)
    return Fault(path, "type" if kind.endswith("_type") or kind == "int_from_float" else "value", message)


def _instance_path(model: type[Model], loc: tuple[Step, ...]) -> Path:
    """Follows the schema along pydantic's location and drops what names a branch, not a place in the document."""
    schema = _schema(model)
    definitions = schema.get("$defs", {})
    node, path = schema, []
    for step in loc:
        node = _resolve(node, definitions)
        if "discriminator" in node:
            node = {"$ref": node["discriminator"]["mapping"][step]}
        elif node.get("type") == "object":
            path.append(step)
            node = node["properties"].get(step, {})
        elif node.get("type") == "array":
            path.append(step)
            node = node["items"]
        else:
            break
    return tuple(path)


def _resolve(node: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """The schema behind references, and behind "or null"."""
    while True:
        if "$ref" in node:
            node = definitions[node["$ref"].rpartition("/")[2]]
        elif len(branches := [branch for branch in node.get("anyOf", ()) if branch.get("type") != "null"]) == 1:
            node = branches[0]
        else:
            return node


@cache
def _schema(model: type[Model]) -> dict[str, Any]:
    return model.model_json_schema()


@contextmanager
def _without_collector() -> Iterator[None]:
    """Reading makes a million objects and no garbage; the cyclic collector would walk all of them again and again."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
