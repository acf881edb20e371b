"""Calls of torch operators, recorded, and what is claimed of each: of completed ones too, which ingest never asks."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import orjson
import torch

from tensorviz.constraints import violated
from tensorviz_worker.budget import Limits
from tensorviz_worker.journal import MemoryJournal
from tensorviz_worker.recorder import Recorder

Json = dict[str, Any]


class Claim(NamedTuple):
    target: str
    failed: bool
    constraints: list[Json]


def claims(call: Callable[[], Any]) -> list[Claim]:
    """What is claimed of every operation of a call, whatever became of it. The call's own exception is caught."""
    return _judged([next(iter(orjson.loads(line).items())) for line in recorded(call).splitlines()])


def recorded(call: Callable[[], Any]) -> bytes:
    """The journal of a call whose exception, if it raises one, the program survives."""
    journal = MemoryJournal()
    recorder = Recorder(journal, Limits(), "/nowhere")
    recorder.start()
    with suppress(Exception):
        call()
    recorder.stop()
    assert recorder.failure is None
    return journal.getvalue()


def _judged(lines: list[tuple[str, Any]]) -> list[Claim]:
    schemas = {body["target"]: body["operatorSchema"] for kind, body in lines if kind == "operator"}
    values = [body for kind, body in lines if kind == "value"]
    ends = {body["id"]: "diagnostic" in body for kind, body in lines if kind == "end"}
    begun = [body for kind, body in lines if kind == "begin"]
    return [Claim(body["target"], ends[body["id"]], violated(body, schemas[body["target"]], values)) for body in begun]


def overloads(names: tuple[str, ...]) -> list[Any]:
    """Every overload of these operators that takes a tensor, in place and not."""
    found = []
    for name in names:
        for form in (name, name + "_"):
            packet = getattr(torch.ops.aten, form, None)
            if packet is not None:
                found.extend(getattr(packet, overload) for overload in packet.overloads())
    return [op for op in found if any("Tensor" in str(argument.type) for argument in op._schema.arguments)]
