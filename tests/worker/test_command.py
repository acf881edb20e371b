"""``tensorviz capture`` as a person uses it: what it writes, what it says, and how it ends."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tensorviz.contracts.validate import parse_capture

from .reading import lines, path
from .running import ROOT

GOOD = """
import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x):
        return x + 1


example_inputs = (torch.ones(2),)
"""


def tensorviz(*arguments: object, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command, run in ``folder``. It never shows a traceback of its own."""
    path = os.pathsep.join([str(ROOT / "backend"), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    done = subprocess.run(
        [sys.executable, "-m", "tensorviz", *map(str, arguments)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "backend/tensorviz/" not in done.stderr, done.stderr
    return done


def test_a_complete_capture_is_written_and_ends_with_0(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(GOOD)
    done = tensorviz("capture", "net.py", "--python", sys.executable, folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, "")
    assert "complete" in done.stderr
    snapshot = parse_capture((tmp_path / "net.capture.json").read_bytes())
    assert lines(snapshot) == ["aten.add.Tensor(float32[2]) -> float32[2]"]


def test_the_capture_on_standard_output_is_all_there_is_on_it(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(GOOD + "\nprint('noise')\n")
    done = tensorviz("capture", "net.py:Net", "--python", sys.executable, "--out", "-", folder=tmp_path)
    assert done.returncode == 0
    assert parse_capture(done.stdout.encode()).status == "complete"
    assert [file.name for file in tmp_path.glob("*.json")] == []


def test_the_failing_example_ends_with_3_and_its_capture_names_the_failure(tmp_path: Path) -> None:
    file = ROOT / "examples" / "shape_error.py"
    done = tensorviz("capture", file, "--python", sys.executable, "--out", tmp_path / "c.json", folder=ROOT)
    assert done.returncode == 3
    for words in ("aten.addmm.default", "[4, 64]", "[128, 10]", "layers.4", "shape_error.py:31", "run_failed"):
        assert words in done.stderr
    snapshot = parse_capture((tmp_path / "c.json").read_bytes())
    failed = snapshot.operations[-1]
    assert (failed.status, path(snapshot, failed.invocation)) == ("failed", "layers.4")


def test_a_deadline_ends_with_3_and_keeps_the_prefix(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(GOOD.replace("return x + 1", "x = x + 1\n        while True: pass"))
    done = tensorviz("capture", "net.py", "--python", sys.executable, "--timeout", 6, folder=tmp_path)
    assert done.returncode == 3
    assert "timed_out" in done.stderr
    snapshot = parse_capture((tmp_path / "net.capture.json").read_bytes())
    assert lines(snapshot) == ["aten.add.Tensor(float32[2]) -> float32[2]"]


REFUSED = {
    "a file that is not there": (["missing.py"], "file_not_found"),
    "a file that is no Python": (["notes.txt"], "file_not_found"),
    "a file outside of the workspace it names": (["net.py", "--inputs", "/etc/hosts.py:f"], "file_"),
    "an interpreter that is not there": (["net.py", "--python", "/no/such/python"], "interpreter_not_found"),
    "an interpreter without torch": (["net.py", "--python", "bare"], "torch_missing"),
    "a program that is no Python": (["net.py", "--python", "/bin/true"], "interpreter_unusable"),
    "an unknown option": (["net.py", "--colour"], "--colour"),
    "an unknown mode": (["net.py", "--mode", "fast"], "--mode"),
    "a deadline that is no time": (["net.py", "--timeout", "-1"], "timeout"),
    "inputs without a function": (["net.py", "--inputs", "net.py"], "--inputs"),
}
NO_CAPTURE = {
    "an unknown target": ("net.py:Nett", GOOD, "target_not_found"),
    "missing inputs": ("net.py", GOOD.replace("example_inputs", "unrelated"), "inputs_missing"),
    "a syntax error": ("net.py", "def f(:\n", "syntax_error"),
    "an import that fails": ("net.py", "import no_such_module\n", "import_failed"),
    "an exit at import": ("net.py", "raise SystemExit(0)\n", "import_exited"),
    "a crash at import": ("net.py", "import ctypes\nctypes.string_at(0)\n", "worker_failed"),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "net.py").write_text(GOOD)
    (tmp_path / "notes.txt").write_text("no Python\n")
    bare = tmp_path / "bare"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S -I "$@"\n')  # no site-packages, so no torch
    bare.chmod(0o755)
    return tmp_path


@pytest.mark.parametrize("case", REFUSED)
def test_refused_with_2_before_anything_ran_is(case: str, folder: Path) -> None:
    arguments, word = REFUSED[case]
    done = tensorviz("capture", *arguments, folder=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert word in done.stderr
    assert "Traceback" not in done.stderr
    assert [file.name for file in folder.glob("*.json")] == []


@pytest.mark.parametrize("case", NO_CAPTURE)
def test_no_capture_and_4_are_the_end_of(case: str, folder: Path) -> None:
    argument, text, code = NO_CAPTURE[case]
    (folder / "net.py").write_text(text)
    done = tensorviz("capture", argument, "--python", sys.executable, folder=folder)
    assert (done.returncode, done.stdout) == (4, "")
    assert code in done.stderr
    assert [file.name for file in folder.glob("*.json")] == []


def test_json_tells_attempt_summary_and_problem_to_a_program(folder: Path) -> None:
    good = tensorviz("capture", "net.py", "--python", sys.executable, "--json", folder=folder)
    told = json.loads(good.stdout)
    assert good.returncode == 0
    assert told["attempt"]["outcome"] == "complete"
    bad = tensorviz("capture", "net.py:Nett", "--python", sys.executable, "--json", folder=folder)
    assert bad.returncode == 4
    assert "target_not_found" in bad.stdout


def test_show_and_validate_read_what_capture_wrote(folder: Path) -> None:
    tensorviz("capture", "net.py", "--python", sys.executable, folder=folder)
    shown = tensorviz("show", "net.capture.json", folder=folder)
    assert shown.returncode == 0
    assert "Net" in shown.stdout
    assert "[2]" in shown.stdout
    assert tensorviz("validate", "net.capture.json", folder=folder).returncode == 0
    capture = folder / "net.capture.json"
    capture.write_bytes(capture.read_bytes().replace(b'"status":"complete"', b'"status":"partial"'))
    broken = tensorviz("validate", "net.capture.json", folder=folder)
    assert broken.returncode != 0
    assert "reasons" in broken.stderr + broken.stdout
