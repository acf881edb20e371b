"""What every contract model shares.

Fields carry their wire names (camelCase), so Python, TypeScript and JSON speak one vocabulary. A field without a
default must be present. A field whose default is ``absent`` may be left out, and is then left out of the encoding too:
write a model with ``encode``, which keeps exactly the fields that were set.
"""

import hashlib
import json
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

T = TypeVar("T")

MAX_SAFE = 2**53 - 1
"""The largest integer that JavaScript reads exactly; larger literals travel as decimal strings."""

absent: Any = None
"""Default of a field that may be left out of the document. Writing ``null`` there is an error."""


class Model(BaseModel):
    """A frozen, closed record: unknown fields are refused, numbers and strings are never converted into each other."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


def encode(model: Model) -> bytes:
    """UTF-8 JSON of the model with exactly the fields that were set."""
    return model.model_dump_json(exclude_unset=True).encode()


def _only_an_integer(value: Any) -> Any:
    """``Literal[1]`` alone would take ``True`` and ``1.0``, which are equal to 1."""
    if type(value) is not int:
        raise ValueError("not an integer")
    return value


Version1 = Annotated[Literal[1], BeforeValidator(_only_an_integer)]
Many = Annotated[tuple[T, ...], Field(fail_fast=True, strict=False)]
"""A JSON array. The first wrong item ends the reading, so that a million wrong ones cost no more than one."""


def digest(model: Model, without: frozenset[str] = frozenset()) -> str:
    """SHA-256 of the model's canonical JSON: sorted keys, no spaces. ``without`` names fields that do not count."""
    document = model.model_dump(mode="json", exclude=set(without))
    return hashlib.sha256(json.dumps(document, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


Count = Annotated[int, Field(ge=0, le=MAX_SAFE)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Name = Annotated[str, Field(min_length=1, max_length=1024)]
Text = Annotated[str, Field(max_length=4096)]
Step = Count | Annotated[str, Field(max_length=64)]
Path = Annotated[tuple[Step, ...], Field(max_length=128, fail_fast=True, strict=False)]
"""Addresses a node of a serialized JSON tree, for example ``['args', 0, 'items', 1]``."""
