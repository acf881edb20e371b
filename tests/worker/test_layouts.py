"""Files as they lie in real projects, and everything that can go wrong before there is anything to record."""

from pathlib import Path
from textwrap import dedent

import pytest

from .reading import lines
from .running import Outcome, capture

MODEL = """
import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x):
        return x + 1


example_inputs = (torch.ones(2),)
"""
ADDITION = ["aten.add.Tensor(float32[2]) -> float32[2]"]


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(dedent(text))


def recorded(outcome: Outcome) -> list[str]:
    assert outcome.snapshot.status == "complete", outcome.snapshot.reasons
    return lines(outcome.snapshot)


LAYOUTS = {
    "a file alone": ({"net.py": MODEL}, "net.py"),
    "a file with spaces and a dash in its name": ({"my net-v2.py": MODEL}, "my net-v2.py"),
    "a neighbour imported by its plain name": (
        {"net.py": "from parts import one\n" + MODEL.replace("x + 1", "x + one()"), "parts.py": "one = lambda: 1\n"},
        "net.py",
    ),
    "a src layout": (
        {
            "pyproject.toml": "[project]\nname = 'thing'\n",
            "src/thing/__init__.py": "",
            "src/thing/parts.py": "ONE = 1\n",
            "src/thing/net.py": "from thing.parts import ONE\n" + MODEL.replace("x + 1", "x + ONE"),
        },
        "src/thing/net.py",
    ),
    "relative imports in nested packages": (
        {
            "pkg/__init__.py": "",
            "pkg/parts.py": "ONE = 1\n",
            "pkg/models/__init__.py": "from .net import Net\n",
            "pkg/models/net.py": "from ..parts import ONE\n" + MODEL.replace("x + 1", "x + ONE"),
        },
        "pkg/models/net.py",
    ),
    "a namespace package": (
        {
            "space/parts/one.py": "ONE = 1\n",
            "space/models/net.py": "from ..parts.one import ONE\n" + MODEL.replace("x + 1", "x + ONE"),
        },
        "space/models/net.py",
    ),
    "a package's own __init__.py": ({"pkg/__init__.py": MODEL}, "pkg/__init__.py"),
    "a file named types.py": ({"types.py": MODEL}, "types.py"),
    "a file named random.py": ({"random.py": MODEL}, "random.py"),
    "a file named torch_.py beside files named as the standard library's": (
        {
            "torch_.py": MODEL,
            "json.py": "raise RuntimeError('not the json that you want')\n",
            "subprocess.py": "raise RuntimeError\n",
            "queue.py": "raise RuntimeError\n",
        },
        "torch_.py",
    ),
    "a file with a byte order mark and Windows line ends": (
        {"net.py": "\ufeff" + MODEL.replace("\n", "\r\n")},
        "net.py",
    ),
    "a file that starts with a coding line": (
        {"net.py": "# -*- coding: utf-8 -*-\nname = 'Größe'\n" + MODEL},
        "net.py",
    ),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_model_is_found_in(layout: str, tmp_path: Path) -> None:
    files, file = LAYOUTS[layout]
    write(tmp_path, files)
    assert recorded(capture(tmp_path / file, workspace=tmp_path)) == ADDITION


def test_a_relative_path_inside_the_workspace_names_the_file_in_the_capture(tmp_path: Path) -> None:
    write(tmp_path, {"deep/net.py": MODEL})
    outcome = capture(tmp_path / "deep" / "net.py", workspace=tmp_path)
    files = [(file.root, file.path) for file in outcome.snapshot.source.files]
    assert ("workspace", "deep/net.py") in files


def test_a_main_guard_stays_closed_for_a_model_and_open_for_a_script(tmp_path: Path) -> None:
    write(tmp_path, {"net.py": MODEL + "\nif __name__ == '__main__':\n    print(Net()(torch.zeros(3)))\n"})
    assert recorded(capture(tmp_path / "net.py")) == ADDITION
    script = capture(tmp_path / "net.py", "__main__")
    assert "aten.add.Tensor(float32[3]) -> float32[3]" in recorded(script)
    assert "tensor([1., 1., 1.])" in script.log


# -- what the program prints


def test_what_the_program_prints_is_kept_and_touches_nothing(tmp_path: Path) -> None:
    noisy = MODEL.replace("return x + 1", "print('in forward'); os.write(1, b'\\xff\\x00raw'); return x + 1")
    write(tmp_path, {"net.py": "import os, sys\nprint('at import')\nos.write(2, b'to two\\n')\n" + noisy})
    outcome = capture(tmp_path / "net.py")
    assert recorded(outcome) == ADDITION
    assert {word for word in ("at import", "to two", "in forward", "raw") if word in outcome.log} == {
        "at import",
        "to two",
        "in forward",
        "raw",
    }


def test_a_flood_of_output_is_cut_and_does_not_stop_the_run(tmp_path: Path) -> None:
    write(tmp_path, {"net.py": "print('x' * 3_000_000, flush=True)\n" + MODEL + "\nprint('the end')\n"})
    outcome = capture(tmp_path / "net.py")
    assert recorded(outcome) == ADDITION
    assert 0 < len(outcome.log) <= 300_000


def test_a_program_that_closes_its_own_output_is_recorded_all_the_same(tmp_path: Path) -> None:
    write(tmp_path, {"net.py": "import os, sys\nos.close(1); os.close(2); sys.stdout = None\n" + MODEL})
    assert recorded(capture(tmp_path / "net.py")) == ADDITION


def test_a_program_that_reads_its_input_finds_the_end_of_it(tmp_path: Path) -> None:
    write(tmp_path, {"net.py": "import sys\nassert sys.stdin.read() == ''\n" + MODEL})
    assert recorded(capture(tmp_path / "net.py")) == ADDITION


# -- what goes wrong before there is anything to record

PROBLEMS = {
    "a syntax error": ("class Net(:\n    pass\n", None, "syntax_error", "net.py:1"),
    "a syntax error in a neighbour": ("import broken\n", None, "syntax_error", "broken.py"),
    "an import that raises": ("raise RuntimeError('no such luck')\n", None, "import_failed", "no such luck"),
    "an import that is missing": ("import no_such_module\n", None, "import_failed", "no_such_module"),
    "sys.exit at import": ("import sys\nsys.exit(3)\n", None, "import_exited", "sys.exit"),
    "a KeyboardInterrupt at import": ("raise KeyboardInterrupt\n", None, "import_failed", "KeyboardInterrupt"),
    "no model in the file": ("x = 1\n", None, "target_not_found", "nn.Module"),
    "an unknown target": (MODEL, "Nett", "target_not_found", "Nett"),
    "an unknown attribute of a target": (MODEL, "Net.inner", "target_not_found", "Net.inner"),
    "several models and no target": (
        MODEL + "\nclass Other(nn.Module):\n    pass\n",
        None,
        "target_ambiguous",
        "several models",
    ),
    "a target that is no module": (MODEL, "example_inputs", "target_unsupported", "tuple"),
    "a class that is no module": (MODEL + "\nclass Plain:\n    pass\n", "Plain", "target_unsupported", "Plain"),
    "a factory that returns no module": (MODEL + "\ndef make():\n    return 3\n", "make", "target_unsupported", "int"),
    "a factory that raises": (MODEL + "\ndef make():\n    raise OSError('disk')\n", "make", "target_failed", "disk"),
    "a factory that exits": (MODEL + "\ndef make():\n    raise SystemExit(1)\n", "make", "target_failed", "exit"),
    "a factory that wants arguments": (
        MODEL + "\ndef make(size):\n    return Net()\n",
        "make",
        "target_failed",
        "size",
    ),
    "a constructor that wants arguments": (
        MODEL.replace("class Net(nn.Module):", "class Net(nn.Module):\n    def __init__(self, width):\n        pass\n"),
        None,
        "target_failed",
        "width",
    ),
    "a constructor that raises": (
        MODEL.replace("class Net(nn.Module):", "class Net(nn.Module):\n    def __init__(self):\n        1 / 0\n"),
        None,
        "target_failed",
        "division by zero",
    ),
    "missing inputs": (MODEL.replace("example_inputs =", "unrelated ="), None, "inputs_missing", "x"),
    "inputs that raise": (
        MODEL.replace("example_inputs =", "def example_inputs():\n    raise ValueError('no data')\nunrelated ="),
        None,
        "inputs_failed",
        "no data",
    ),
    "a worker that dies at import": ("import os\nos._exit(9)\n", None, "worker_failed", "9"),
    "a worker that is killed at import": ("import os\nos.kill(os.getpid(), 9)\n", None, "worker_failed", "KILL"),
    "a script that does nothing": ("x = 1\n", "__main__", "nothing_recorded", "no torch operation"),
}


@pytest.mark.parametrize("case", PROBLEMS)
def test_nothing_is_recorded_and_the_problem_says_what_to_do_with(case: str, tmp_path: Path) -> None:
    text, target, code, word = PROBLEMS[case]
    write(tmp_path, {"net.py": text, "broken.py": "def f(:\n"})
    outcome = capture(tmp_path / "net.py", target)
    problem = outcome.refusal
    assert problem.code == code
    assert word in problem.detail + (problem.hint or "")
    assert problem.hint, "every problem says what to do next"
    assert "Traceback" not in problem.detail


def test_the_log_keeps_the_traceback_of_an_import_without_our_own_frames(tmp_path: Path) -> None:
    write(tmp_path, {"net.py": "def deep():\n    raise RuntimeError('no such luck')\n\n\ndeep()\n"})
    log = capture(tmp_path / "net.py").log
    assert "no such luck" in log
    assert 'net.py", line 2, in deep' in log
    assert "tensorviz_worker" not in log


def test_an_ambiguous_target_offers_the_names_to_choose_from(tmp_path: Path) -> None:
    write(tmp_path, {"net.py": MODEL + "\nclass Other(nn.Module):\n    pass\n"})
    problem = capture(tmp_path / "net.py").refusal
    assert {"net.py:Net", "net.py:Other"} <= set((problem.hint or "").replace(",", " ").split())


def test_an_installed_copy_that_shadows_the_file_is_told_apart_from_it(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "work/pkg/__init__.py": "",
            "work/pkg/net.py": MODEL,
            "other/pkg/__init__.py": "",
            "other/pkg/net.py": MODEL,
            "work/sitecustomize.py": "",
        },
    )
    write(
        tmp_path,
        {"work/pkg/__init__.py": f"__path__ = [{str(tmp_path / 'other' / 'pkg')!r}]\n"},
    )
    problem = capture(tmp_path / "work" / "pkg" / "net.py", workspace=tmp_path / "work").refusal
    assert problem.code == "import_shadowed"
    assert str(tmp_path / "other" / "pkg" / "net.py") in problem.detail


# -- refused before anything runs


def test_a_file_that_is_not_there_is_refused_before_anything_runs(tmp_path: Path) -> None:
    problem = capture(tmp_path / "net.py").refusal
    assert problem.code == "file_not_found"


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "net.py").mkdir()
    problem = capture(tmp_path / "net.py").refusal
    assert problem.code == "file_not_found"


def test_a_file_outside_the_workspace_is_refused(tmp_path: Path) -> None:
    write(tmp_path, {"inside/net.py": MODEL, "outside.py": MODEL})
    problem = capture(tmp_path / "outside.py", workspace=tmp_path / "inside").refusal
    assert problem.code == "file_outside_workspace"


def test_an_interpreter_that_is_not_there_is_refused(tmp_path: Path) -> None:
    write(tmp_path, {"net.py": MODEL})
    problem = capture(tmp_path / "net.py", python=str(tmp_path / "python")).refusal
    assert problem.code == "interpreter_not_found"


def test_a_program_that_is_no_python_is_refused(tmp_path: Path) -> None:
    write(tmp_path, {"net.py": MODEL, "python": "#!/bin/sh\necho hello\n"})
    (tmp_path / "python").chmod(0o755)
    problem = capture(tmp_path / "net.py", python=str(tmp_path / "python")).refusal
    assert problem.code in ("interpreter_unusable", "worker_failed")
    assert problem.hint


# -- where the inputs come from

INPUTS = {
    "a value": ("example_inputs = torch.ones(2)", "example_inputs"),
    "a list": ("example_inputs = [torch.ones(2)]", "example_inputs"),
    "a dict of keywords": ("example_inputs = {'x': torch.ones(2)}", "example_inputs"),
    "args and kwargs": ("example_inputs = ((), {'x': torch.ones(2)})", "example_inputs"),
    "a function": ("def example_inputs():\n    return torch.ones(2)", "example_inputs"),
    "get_inputs": ("def get_inputs():\n    return [torch.ones(2)]", "get_inputs"),
    "an attribute of the model": ("Net.example_input_array = torch.ones(2)", "Net.example_input_array"),
    "a property of the model": ("Net.dummy_inputs = property(lambda _: {'x': torch.ones(2)})", "Net.dummy_inputs"),
}


@pytest.mark.parametrize("case", INPUTS)
def test_inputs_come_from(case: str, tmp_path: Path) -> None:
    text, name = INPUTS[case]
    write(tmp_path, {"net.py": MODEL.replace("example_inputs = (torch.ones(2),)", text)})
    outcome = capture(tmp_path / "net.py")
    assert recorded(outcome) == ADDITION
    assert (outcome.snapshot.execution.inputs.kind, outcome.snapshot.execution.inputs.name) == ("convention", name)


def test_a_named_function_in_another_file_comes_before_every_convention(tmp_path: Path) -> None:
    write(tmp_path, {"net.py": MODEL, "data.py": "import torch\n\ndef batch():\n    return (torch.ones(5),)\n"})
    outcome = capture(tmp_path / "net.py", inputs=(tmp_path / "data.py", "batch"))
    assert recorded(outcome) == ["aten.add.Tensor(float32[5]) -> float32[5]"]
    assert (outcome.snapshot.execution.inputs.kind, outcome.snapshot.execution.inputs.name) == ("function", "batch")


def test_a_forward_without_arguments_needs_no_inputs(tmp_path: Path) -> None:
    text = MODEL.replace("def forward(self, x):", "def forward(self, x=torch.ones(2)):")
    write(tmp_path, {"net.py": text.replace("example_inputs =", "unrelated =")})
    outcome = capture(tmp_path / "net.py")
    assert recorded(outcome) == ADDITION
    assert outcome.snapshot.execution.inputs.kind == "none"
