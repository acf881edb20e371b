"""The zoo's table, as a terminal and as docs/zoo.md have it. Nothing in it changes from run to run."""

import re
from collections.abc import Iterable
from pathlib import Path

from zoo.examination import Row

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs/zoo.md"
_PACKAGES = ("torch", "transformers", "timm", "torchvision")
_HEAD = """# The zoo

Written by `make zoo`. Every program below was recorded, and its capture run again by an interpreter that shares no code
with the recorder (`tests/replay`): each operation by its target and schema, each argument from the capture's tree, on
the inputs, the state and the random numbers of the first run. *Replayed* says whether every result and every write had
the same bits, and whether shapes, strides, dtypes, identities and aliases were the recorded ones. A complete capture
that does not replay is a defect; a partial one says why it is partial, and is replayed as far as it goes. *train* is a
forward and a backward pass, with a step of an optimizer for the text, image and sound models; *generate* makes three
tokens with a cache. Small configurations, random weights, one thread.

"""


def line(row: Row) -> str:
    status = f"{row.status}: {row.why}" if row.why else row.status
    replayed = f"failed: {row.failure}" if row.failure else f"replayed: {row.replayed}"
    return f"{row.family:20} {row.name:55} {row.operations:5}  {status}; {replayed}"


def summary(rows: Iterable[Row]) -> str:
    found = list(rows)
    complete = [row for row in found if row.status == "complete"]
    partial = [row for row in found if row.status == "partial"]
    text = f"{len(found)} programs: {len(complete)} complete, {count(complete)} of them replayed; "
    text += f"{len(partial)} partial, {count(partial)} of them replayed as far as recorded"
    failed = sum(row.failure is not None for row in found)
    return text + (f"; {failed} failed." if failed else ".")


def count(rows: Iterable[Row]) -> int:
    return sum(row.replayed == "yes" for row in rows)


def document(rows: Iterable[Row]) -> str:
    found = list(rows)
    text = _HEAD + f"With {versions()}. {summary(found)}\n"
    for family in dict.fromkeys(row.family for row in found):
        text += f"\n## {family}\n\n| program | operations | status | replayed |\n|---|---|---|---|\n"
        text += "".join(entry(row) for row in found if row.family == family)
    return text


def entry(row: Row) -> str:
    """One line of the document's tables."""
    status = f"{row.status}: {row.why}" if row.why else row.status
    replayed = row.replayed if not row.failure else f"{row.replayed or 'no'} (**{row.failure}**)"
    cells = (row.name, str(row.operations), status, replayed)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def versions() -> str:
    pins = (ROOT / "constraints.txt").read_text()
    found = {name: re.search(rf"^{name}==(.+)$", pins, re.MULTILINE) for name in _PACKAGES}
    return ", ".join(f"{name} {pin[1]}" for name, pin in found.items() if pin)
