"""The benchmark's own rules: what it measures, what it makes of it, and that its page tells about all of it."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from bench.case import Process, describe, serve
from bench.models import MODELS, Case, build
from bench.peers import PEERS, Counting
from bench.results import results
from bench.targets import targets

from bench import report

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/benchmarks.md").read_text()


def bench(*words: str) -> str:
    environment = os.environ | {"PYTHONPATH": str(ROOT / "tools")}
    done = subprocess.run(
        [sys.executable, "-m", "bench", *words],
        env=environment,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def measured(*turns: tuple[float, float, float], failure: str | None = None) -> dict[str, Any]:
    return {
        "failure": failure,
        "first": 0.5,
        "loading": 2**20,
        "peak": 2**21,
        "turns": list(turns),
        "register": None,
    }


def case(**peers: dict[str, Any]) -> dict[str, Any]:
    return {"model": "mlp", "size": "tiny", "operations": 100, "peers": peers, "held": None}


BASELINES = {"eager": measured((1.0, 2.0, 1.0)), "empty": measured((1.0, 2.0, 2.0))}


def verdicts(**peers: dict[str, Any]) -> dict[str, str]:
    return {target.what: target.verdict for target in targets([case(**BASELINES, **peers)], None)}


@pytest.mark.slow
def test_a_quick_run_measures_every_peer_that_was_named_beside_the_baselines(tmp_path: Path) -> None:
    file = tmp_path / "rows.json"
    bench("--quick", "--models", "mlp", "--peers", "ours,debug_mode", "--json", str(file), "--python", sys.executable)
    written = json.loads(file.read_text())
    rows = {row["peer"]: row for row in written["rows"]}
    assert list(rows) == ["eager", "empty", "ours", "debug_mode"]
    assert [row["failure"] for row in rows.values()] == [None] * 4
    assert all(row["rounds"] >= 3 and row["milliseconds"] > 0 for row in rows.values())
    assert rows["eager"]["over_eager"] == rows["empty"]["over_empty"] == 1.0
    assert rows["ours"]["register"] > 0
    assert written["cases"][0]["operations"] == 600
    held = written["cases"][0]["held"]
    assert 0 < held["python"] <= held["peak"]
    assert held["journal"] > 600 * 100, "a journal holds more than 100 bytes for each operation"


def test_a_ratio_is_the_median_over_turns_and_not_the_ratio_of_medians() -> None:
    turns = ((1.0, 2.0, 10.0), (10.0, 20.0, 40.0), (2.0, 4.0, 12.0))
    (row,) = [row for row in report.rows(case(**BASELINES, ours=measured(*turns))) if row.peer == "ours"]
    assert (row.over_eager, row.over_empty, row.milliseconds) == (6.0, 3.0, 12_000.0)
    assert row.microseconds == pytest.approx(10.0 / 100 * 1e6)


def test_a_target_is_reached_or_missed_by_what_was_measured() -> None:
    assert verdicts(ours=measured((1.0, 2.0, 4.0)))["ours, against an empty mode: mlp"] == "reached"
    assert verdicts(ours=measured((1.0, 2.0, 6.0)))["ours, against an empty mode: mlp"] == "missed"
    slow = verdicts(ours=measured((1.0, 2.0, 4.0)), debug_mode=measured((1.0, 2.0, 7.9)))
    assert slow["debug_mode, against ours: mlp"] == "missed"


def test_ours_misses_its_targets_where_it_fails_and_nobody_wins_against_a_peer_that_fails() -> None:
    failing = measured(failure="RuntimeError: no")
    assert verdicts(ours=failing)["ours, against an empty mode: mlp"] == "missed"
    against = verdicts(ours=measured((1.0, 2.0, 4.0)), torchlens=failing)
    assert against["torchlens, against ours: mlp"] == "torchlens fails"
    assert against["execution_trace, against ours: mlp"] == "not measured"


def test_a_failure_is_named_once_for_all_the_models_that_it_hits() -> None:
    failing = measured(failure="RuntimeError: no")
    cases = [case(**BASELINES, export=failing), case(**BASELINES, export=failing) | {"model": "gpt2"}]
    assert list(report.failures(cases)) == ["export fails on mlp (tiny), gpt2 (tiny): RuntimeError: no"]


def test_the_page_gets_a_table_of_peers_and_models_and_every_target() -> None:
    tiny = case(**BASELINES, ours=measured((1.0, 2.0, 6.0)), export=measured(failure="RuntimeError: no"))
    machine = {"processors": 2, "load": [0.5, 1.5]}
    text = results({"cases": [tiny | {"versions": {"torch": "2.13.0"}}], "host": None, "machine": machine})
    assert "torch 2.13.0, on 2 processors with a load of 0.5 at the start and 1.5 at the end" in text
    lines = ["| peer | mlp |", "|---|---|", "| `eager` | 0.50 |", "| `empty` | 1.00 |", "| `ours` | 3.00 |"]
    assert "\n".join([*lines, "| `export` | fails |"]) in text
    assert "export fails on mlp (tiny): RuntimeError: no" in text
    assert "| ours, against an empty mode: mlp | 3.00x | ≤ 2.5x | missed |" in text


class Refusing(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        raise ValueError("not today\nnor tomorrow")


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # fork, with threads of torch's around
def test_a_peer_that_raises_is_told_by_type_and_first_line() -> None:
    process = Process(serve, "eager", Case(Refusing(), (torch.ones(1),)))
    try:
        assert process.answer() == "ValueError: not today"
    finally:
        process.close()


class Dying(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        os._exit(3)


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_peer_that_takes_its_process_with_it_is_a_failure_too() -> None:
    process = Process(serve, "eager", Case(Dying(), (torch.ones(1),)))
    try:
        assert process.answer() == "ProcessDied: it ended without an answer"
    finally:
        process.close()


def test_an_error_without_words_still_has_its_type() -> None:
    assert describe(KeyError()) == "KeyError: "


@pytest.mark.parametrize("name", ["mlp", "resnet50"])
def test_both_sizes_of_a_model_run_the_same_operations(name: str) -> None:
    counted = []
    for size in ("tiny", "full"):
        built = build(name, size)
        with torch.no_grad(), Counting() as counting:
            built.forward()
        counted.append(counting.operations)
    assert counted[0] == counted[1]


def test_the_page_names_every_peer_model_option_and_column() -> None:
    options = re.findall(r"^  (--[a-z-]+)", bench("--help"), re.MULTILINE)
    assert len(options) > 8
    page = re.sub(r"`(--[a-z-]+) [^`]+`", r"`\1`", PAGE)
    columns = [title for title, _ in report.COLUMNS]
    missing = [word for word in (*PEERS, *MODELS, *options, *columns) if f"`{word}`" not in page]
    assert missing == []
