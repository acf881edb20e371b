"""docs/coverage.md says what the tests show: each row of a table is a test, and each test is a row."""

import re

import pytest

from . import test_arguments, test_effects, test_escapes, test_hard_programs, test_modules
from .running import ROOT

PAGE = (ROOT / "docs" / "coverage.md").read_text()
COMPLETE = "complete"


def rows(heading: str) -> dict[str, set[str]]:
    """What each row of the table under a heading says of the capture: the reasons, or ``complete``."""
    section = PAGE.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    lines = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")]
    assert lines, heading
    return {name: set(re.findall(r"\w+", said)) for name, _, said in lines[1:]}


def of_programs(table: "dict[str, test_effects.Row]") -> dict[str, set[str]]:
    return {name: set(row.reasons) or {COMPLETE} for name, row in table.items()}


TABLES = {
    "Values and writes": of_programs(test_effects.ROWS),
    "Modules": of_programs(test_modules.ROWS),
    "Escapes and the unseen": of_programs(test_escapes.ROWS),
    "Hard programs": of_programs(test_hard_programs.ROWS),
    "Arguments": {name: {COMPLETE} for name in test_arguments.READ}
    | {name: {reason} for name, (_, _, reason) in test_arguments.NAMED_ONLY.items()},
}


@pytest.mark.parametrize("heading", TABLES)
def test_every_row_is_a_test_and_every_test_is_a_row(heading: str) -> None:
    assert rows(heading) == TABLES[heading]


def test_every_table_of_the_page_is_compared() -> None:
    tabled = [part.partition("\n")[0] for part in PAGE.split("\n## ")[1:] if "\n| " in part]
    assert set(tabled) == set(TABLES)
