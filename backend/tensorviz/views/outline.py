"""The call tree of a capture with shapes: as rows for any renderer, as plain text, and as HTML for a notebook."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

from tensorviz.contracts.arguments import Argument, TensorArgument
from tensorviz.contracts.capture import CaptureSnapshot, Invocation, Value

_SHORT = {
    "float": "f",
    "int": "i",
    "uint": "u",
    "bfloat": "bf",
    "complex": "c",
}
_MAX_TENSORS = 4
_MAX_TEXT_ROWS = 60


@dataclass(frozen=True)
class Row:
    """One module call. ``operations`` counts those of the call and of everything below it."""

    invocation: Invocation
    depth: int
    label: str
    type: str
    outputs: tuple[str, ...]
    operations: int


def rows(capture: CaptureSnapshot) -> Iterator[Row]:
    """Every call, in the order of entry, parents before children."""
    counts = _operations_below(capture)
    depths: dict[str | None, int] = {None: -1}
    for call in capture.invocations:
        depths[call.id] = depths[call.parent] + 1
        module = capture.modules[_index(call.module)]
        path = module.paths[0].path if module.paths else ""
        kind = capture.definitions[_index(module.definition)].type.rpartition(".")[2]
        label = path if depths[call.id] <= 0 else path.rpartition(".")[2]
        yield Row(call, depths[call.id], label, kind, shapes(capture, call.output), counts[call.id])


def shapes(capture: CaptureSnapshot, tree: Argument | None) -> tuple[str, ...]:
    """The tensors of an argument or result, as ``f32[2, 3]``, in order."""
    return tuple(shape(capture.values[_index(name)]) for name in tensor_ids(tree))


def shape(value: Value) -> str:
    name = value.dtype.removeprefix("torch.")
    letters = name.rstrip("0123456789")
    short = _SHORT.get(letters, letters) + name[len(letters) :] if letters != name else name
    return f"{short}[{', '.join(map(str, value.shape))}]"


def tensor_ids(tree: Argument | None) -> Iterator[str]:
    """The values that an argument tree refers to, in order, repeated ones as often as they stand there."""
    if isinstance(tree, TensorArgument):
        yield tree.value
        return
    for name in ("items", "entries", "fields"):
        for item in getattr(tree, name, ()):
            if not isinstance(item, str):
                yield from tensor_ids(getattr(item, "value", None) if name != "items" else item)


def place(capture: CaptureSnapshot, location: str | None) -> str | None:
    """``path:line`` of a location."""
    if location is None:
        return None
    found = capture.locations[_index(location)]
    return f"{capture.source.files[_index(found.file)].path}:{found.line}"


def title(capture: CaptureSnapshot) -> str:
    """One line: what was run, how it went, and how much was recorded."""
    counts = f"{len(capture.operations)} operations, {len(capture.invocations)} calls, {len(capture.values)} values"
    reasons = "".join(f", {reason.code}" for reason in capture.reasons)
    return f"{capture.execution.target}: {capture.status}{reasons} ({counts})"


def to_text(capture: CaptureSnapshot) -> str:
    """The title and the first calls of the tree."""
    lines = [title(capture)]
    for row in rows(capture):
        if len(lines) > _MAX_TEXT_ROWS:
            lines.append(f"  ... {len(capture.invocations) - _MAX_TEXT_ROWS} more calls; see .snapshot")
            break
        lines.append("  " * (row.depth + 1) + " ".join(_cells(row)))
    return "\n".join(lines)


def to_html(capture: CaptureSnapshot) -> str:
    """A table that needs no script and takes its colours from the page around it."""
    head = "<tr>" + "".join(f"<th style='text-align:left'>{name}</th>" for name in _COLUMNS) + "</tr>"
    body = "".join(_html_row(row) for row in rows(capture))
    return (
        f"<details open><summary><b>{escape(title(capture))}</b></summary>"
        f"<div style='max-height:32em;overflow:auto'><table>{head}{body}</table></div></details>"
    )


_COLUMNS = ("call", "module", "output", "operations", "parameters")


def _html_row(row: Row) -> str:
    name = f"<td style='text-align:left;padding-left:{row.depth + 0.5}em'>{escape(row.label) or '·'}{_mark(row)}</td>"
    count = row.invocation.parameterCount
    cells = (row.type, _outputs(row), str(row.operations), "" if count is None else f"{count:,}")
    return f"<tr>{name}" + "".join(f"<td style='text-align:left'>{escape(cell)}</td>" for cell in cells) + "</tr>"


def _cells(row: Row) -> list[str]:
    cells = [row.label, row.type, _outputs(row), f"({row.operations} ops)", _mark(row).strip()]
    return [cell for cell in cells if cell]


def _outputs(row: Row) -> str:
    more = len(row.outputs) - _MAX_TENSORS
    return " ".join(row.outputs[:_MAX_TENSORS]) + (f" +{more}" if more > 0 else "")


def _mark(row: Row) -> str:
    return {"failed": " ✗ failed", "in_flight": " … in flight"}.get(row.invocation.status, "")


def _operations_below(capture: CaptureSnapshot) -> Counter[str]:
    counts: Counter[str] = Counter()
    for operation in capture.operations:
        if operation.invocation is not None:
            counts[operation.invocation] += 1
    for call in reversed(capture.invocations):
        if call.parent is not None:
            counts[call.parent] += counts[call.id]
    return counts


def _index(name: str) -> int:
    return int(name[1:])
