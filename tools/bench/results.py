"""``python -m bench.results FILE``: puts what ``--json FILE`` wrote on the page, over what is there."""

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from . import report, targets
from .report import Json, Row

PAGE = Path(__file__).resolve().parents[2] / "docs/benchmarks.md"
HEADING = "## Results\n"

TABLES: tuple[tuple[str, str, Callable[[Row], float]], ...] = (
    ("Tiny: CPU time against the empty mode", "tiny", lambda row: row.over_empty),
    ("Tiny: microseconds for each operation, over eager", "tiny", lambda row: row.microseconds),
    ("Full size: CPU time against eager", "full", lambda row: row.over_eager),
    ("Full size: peak memory beyond eager's, MB, with the code that is loaded", "full", lambda row: row.peak),
)


def results(measured: Json) -> str:
    cases, host = measured["cases"], measured["host"]
    parts = [f"Taken with {report.versions(cases)}, on {_machine(measured['machine'])}."]
    parts += ["\n".join([f"### {title}", "", *table(cases, size, read)]) for title, size, read in TABLES]
    parts.append("\n".join(["### Failures", "", *(list(report.failures(cases)) or ["No peer failed on any model."])]))
    parts.append("\n".join(["### The host", "", *(f"- {line}" for line in report.host(host or {}))]))
    parts.append("\n".join(["### Targets", "", *checked(targets.targets(cases, host))]))
    return "\n\n".join(parts) + "\n"


def _machine(seen: Json) -> str:
    """How busy it was tells how far to trust what follows."""
    first, last = seen["load"]
    return f"{seen['processors']} processors with a load of {first:.1f} at the start and {last:.1f} at the end"


def table(cases: list[Json], size: str, read: Callable[[Row], float]) -> Iterator[str]:
    """Peers down, models across."""
    columns = {case["model"]: {row.peer: row for row in report.rows(case)} for case in cases if case["size"] == size}
    yield from _head(["peer", *columns])
    for peer in dict.fromkeys(peer for rows in columns.values() for peer in rows):
        yield _line([f"`{peer}`", *(_cell(rows.get(peer), read) for rows in columns.values())])


def checked(found: Iterable[targets.Target]) -> Iterator[str]:
    yield from _head(["what", "measured", "target", ""])
    for target in found:
        measured = "" if target.measured is None else f"{target.measured:.2f}{target.unit}"
        limit = f"{'≤' if target.at_most else '≥'} {target.limit:g}{target.unit}"
        yield _line([target.what, measured, limit, target.verdict])


def _cell(row: Row | None, read: Callable[[Row], float]) -> str:
    if row is None:
        return ""
    return "fails" if row.failure else f"{read(row):.2f}"


def _head(titles: list[str]) -> Iterator[str]:
    yield _line(titles)
    yield "|" + "---|" * len(titles)


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def main() -> None:
    measured = json.loads(Path(sys.argv[1]).read_text())
    before, heading, _ = PAGE.read_text().partition(HEADING)
    PAGE.write_text(f"{before}{heading}\n{results(measured)}")


if __name__ == "__main__":
    main()
