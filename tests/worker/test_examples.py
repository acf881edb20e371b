"""The examples are programs of their own: each runs as a newcomer would run it, and says what to look for."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from .running import ROOT

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 6


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_an_example_runs_by_itself(file: Path) -> None:
    done = subprocess.run([sys.executable, file], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_an_example_says_how_to_capture_it_and_what_to_look_for(file: Path) -> None:
    text = ast.get_docstring(ast.parse(file.read_text())) or ""
    assert f"tensorviz capture examples/{file.name}" in text
    assert "What to look for in the capture:" in text


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_an_example_needs_nothing_but_torch(file: Path) -> None:
    roots = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            roots |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            roots.add((node.module or "").partition(".")[0])
    assert roots <= {"torch", "math"}
