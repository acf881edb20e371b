"""One entry of the zoo, recorded and replayed, as a row of its table."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from replay.oracle import Verdict, examine_block, examine_call
from tensorviz.contracts.capture import CaptureSnapshot
from zoo.architecture import Entry


@dataclass(frozen=True)
class Row:
    """``why`` says why a capture is partial, ``replayed`` is ``yes`` or the first difference.

    ``failure`` is what is wrong: with the model, or with a capture that calls itself complete.
    """

    name: str
    family: str
    status: str
    why: str
    operations: int
    replayed: str
    failure: str | None = None


def row_of(entry: Entry) -> Row:
    try:
        verdict = examined(entry)
    except Exception as error:
        return Row(entry.name, entry.family, "none", "", 0, "", f"raised {type(error).__name__}: {error}")
    snapshot = verdict.snapshot
    replayed = "yes" if verdict.difference is None else f"no: {verdict.difference}"
    row = Row(entry.name, entry.family, snapshot.status, why(snapshot), len(snapshot.operations), _line(replayed))
    return Row(**{**vars(row), "failure": _failure(verdict)})


def examined(entry: Entry) -> Verdict:
    torch.manual_seed(0)
    program = entry.make()
    if program.block is not None:
        return examine_block(program.block, program.model)
    assert program.model is not None
    return examine_call(program.model, *program.args, **program.inputs)


def _failure(verdict: Verdict) -> str | None:
    if verdict.error is not None:
        return _line(f"raised {type(verdict.error).__name__}: {verdict.error}")
    return None if verdict.is_sound else _line(f"is complete and does not replay: {verdict.difference}")


def _line(text: str) -> str:
    """Short enough for a table. Addresses and the like are never in a difference."""
    text = " ".join(text.split())
    return text if len(text) <= 160 else text[:159] + "…"


def why(snapshot: CaptureSnapshot) -> str:
    """The reasons, and the types that were not read."""
    opaque: dict[str, None] = {}
    for event in (*snapshot.invocations, *snapshot.operations):
        opaque.update((node["type"], None) for node in _opaque(event.model_dump(include={"args", "kwargs", "output"})))
    codes = ", ".join(reason.code for reason in snapshot.reasons)
    return f"{codes} ({', '.join(opaque)})" if opaque else codes


def _opaque(tree: Any) -> Iterator[dict[str, Any]]:
    if isinstance(tree, dict):
        if tree.get("kind") == "opaque":
            yield tree
        tree = tuple(tree.values())
    if isinstance(tree, (list, tuple)):
        for item in tree:
            yield from _opaque(item)
