"""Every program of docs/coverage.md runs again from its capture, where that is complete."""

import pytest
import torch

from worker import test_effects, test_escapes, test_hard_programs, test_modules
from worker.witness import Row, example

from .oracle import examine_call

ROWS: dict[str, Row] = {
    **test_effects.ROWS,
    **test_modules.ROWS,
    **test_escapes.ROWS,
    **test_hard_programs.ROWS,
}


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if not row.reasons])
@pytest.mark.filterwarnings("ignore")
def test_the_same_bits_are_reached_again_by(name: str) -> None:
    row = ROWS[name]
    row.make(row.program)(example())  # what torch compiles or warns of once is behind it then
    torch.manual_seed(1)
    verdict = examine_call(row.make(row.program), example())
    assert (verdict.snapshot.status, verdict.difference) == ("complete", None)
