"""The zoo's table, as a terminal and as docs/zoo.md have it. Nothing in it changes from run to run."""

import re
from collections.abc import Iterable
from pathlib import Path

from zoo.examination import Row

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs/zoo.md"
Tables = dict[str, list[str]]
"""The lines of each family, as the document has them."""
_PACKAGES = ("torch", "transformers", "timm", "torchvision")
_COLUMNS = "| program | operations | status | replayed |\n|---|---|---|---|\n"
_HEAD = """# The zoo

Written by `make zoo`. Every program below was recorded, and its capture run again by an interpreter that shares no code
with the recorder (`tests/replay`): each operation by its target and schema, each argument from the capture's tree, on
the inputs, the state and the random numbers of the first run. *Replayed* says whether every result and every write had
the same bits, and whether shapes, strides, dtypes, identities and aliases were the recorded ones. A complete capture
that does not replay is a defect; a partial one says why it is partial, and is replayed as far as it goes. *train* is a
forward and a backward pass, with a step of an optimizer for the models of transformers; *generate* makes three tokens
with a cache. Small configurations, random weights, one thread.

"""


def line(row: Row) -> str:
    """As a terminal shows it."""
    replayed = f"failed: {row.failure}" if row.failure else f"replayed: {row.replayed}"
    return f"{row.family:20} {row.name:55} {row.operations:5}  {_status(row)}; {replayed}"


def entry(row: Row) -> str:
    """As the document has it."""
    replayed = row.replayed if not row.failure else f"**{row.failure}**"
    cells = (row.name, str(row.operations), _status(row), replayed)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def _status(row: Row) -> str:
    return f"{row.status}: {row.why}" if row.why else row.status


def tables(rows: Iterable[Row]) -> Tables:
    found: Tables = {}
    for row in rows:
        found.setdefault(row.family, []).append(entry(row))
    return found


def written() -> Tables:
    """What the document says now."""
    sections = DOCUMENT.read_text().split("\n## ")[1:] if DOCUMENT.exists() else []
    found = {section.partition("\n")[0]: section.partition(_COLUMNS)[2] for section in sections}
    return {family: text.splitlines(keepends=True) for family, text in found.items()}


def document(found: Tables) -> str:
    text = _HEAD + f"With {_versions()}. {summary(found)}\n"
    return text + "".join(f"\n## {family}\n\n{_COLUMNS}{''.join(lines)}" for family, lines in found.items())


def summary(found: Tables) -> str:
    cells = [text.strip("| \n").split(" | ") for lines in found.values() for text in lines]
    complete = [replayed for *_, status, replayed in cells if status == "complete"]
    partial = [replayed for *_, status, replayed in cells if status.startswith("partial")]
    text = f"{len(cells)} programs: {len(complete)} complete, {complete.count('yes')} of them replayed; "
    text += f"{len(partial)} partial, {partial.count('yes')} of them replayed as far as recorded"
    failed = sum(replayed.startswith("**") for *_, replayed in cells)
    return text + (f"; {failed} failed." if failed else ".")


def _versions() -> str:
    pins = (ROOT / "constraints.txt").read_text()
    found = {name: re.search(rf"^{name}==(.+)$", pins, re.MULTILINE) for name in _PACKAGES}
    return ", ".join(f"{name} {pin[1]}" for name, pin in found.items() if pin)
