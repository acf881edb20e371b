"""A request becomes a plan, or a refusal that says what to do, and nothing of the user's is run for it."""

import hashlib
import json
import os
import sys
from pathlib import Path

import pytest

from tensorviz import interpreters, planning
from tensorviz.contracts.attempt import CaptureRequest, ExecutionPlan, InputFunction, plan_digest
from tensorviz.contracts.capture import Limits
from tensorviz.errors import Refused
from tensorviz.interpreters import find_interpreter

ATTEMPT = "att-0123456789abcdef"


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace with a model and nothing in the environment that names an interpreter."""
    for name in ("TENSORVIZ_PYTHON", "VIRTUAL_ENV", "CONDA_PREFIX"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "workspace"
    folder.mkdir()
    (folder / "model.py").write_text("raise SystemExit('planning must not run this')\n")
    return folder


def python(folder: Path, name: str = "python", version: str = "3.12.1", torch: str | None = "2.6.0+cpu") -> Path:
    """An interpreter that answers the probe as told."""
    answer = json.dumps({"python": version, "found": torch is not None, "torch": torch})
    return script(folder / name, f"echo '{answer}'")


def script(path: Path, body: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def refused(request: CaptureRequest, workspace: Path) -> tuple[str, str, str | None]:
    with pytest.raises(Refused) as caught:
        planning.resolve(request, workspace, ATTEMPT)
    problem = caught.value.problem
    return problem.code, problem.detail, problem.hint


# -- the plan


def test_a_request_becomes_a_plan_with_absolute_paths_and_the_digest_of_the_saved_bytes(workspace: Path) -> None:
    (workspace / "src").mkdir()
    (workspace / "data.py").write_text("")
    exe = python(workspace / "env" / "bin")
    request = CaptureRequest(
        file="model.py", target="Net", inputs=InputFunction(file="data.py", function="batch"), python="env", fake=True
    )
    plan = planning.resolve(request, workspace, ATTEMPT)
    assert plan == ExecutionPlan(
        schemaVersion=1,
        attempt=ATTEMPT,
        workspace=str(workspace),
        roots=(str(workspace), str(workspace / "src")),
        file=str(workspace / "model.py"),
        fileDigest=hashlib.sha256((workspace / "model.py").read_bytes()).hexdigest(),
        target="Net",
        inputs=InputFunction(file=str(workspace / "data.py"), function="batch"),
        python=str(exe),
        mode="eval",
        fake=True,
        timeout=60.0,
        limits=Limits(),
    )


def test_the_digest_of_a_plan_follows_the_file_and_the_recipe_and_not_the_attempt(workspace: Path) -> None:
    exe = str(python(workspace))

    def digest(attempt: str = ATTEMPT, **fields: object) -> str:
        request = CaptureRequest.model_validate({"file": "model.py", "python": exe} | fields)
        return plan_digest(planning.resolve(request, workspace, attempt))

    first = digest()
    assert digest("att-" + "f" * 16) == first
    assert digest(mode="train") != first
    (workspace / "model.py").write_text("x = 1\n")
    assert digest() != first


def test_a_link_inside_the_workspace_is_the_file_that_it_points_to(workspace: Path) -> None:
    (workspace / "link.py").symlink_to(workspace / "model.py")
    request = CaptureRequest(file="link.py", python=str(python(workspace)))
    assert planning.resolve(request, workspace, ATTEMPT).file == str(workspace / "model.py")


# -- files


@pytest.mark.parametrize(
    ("name", "code", "says"),
    [
        ("nothing.py", "file_not_found", "No such file"),
        (".", "file_not_found", "not a Python source file"),
        ("notes.txt", "file_not_found", "not a Python source file"),
        ("folder.py", "file_not_found", "not a Python source file"),
        ("pipe.py", "file_not_found", "not a Python source file"),
        ("loop.py", "file_not_found", "loop.py"),
        ("x" * 1000 + ".py", "file_not_found", "File name too long"),
        ("nul\0.py", "file_not_found", "null"),
        ("huge.py", "file_not_found", "bytes"),
        ("../outside.py", "file_outside_workspace", "is not inside"),
        ("escape.py", "file_outside_workspace", "is not inside"),
        ("/etc/passwd", "file_outside_workspace", "is not inside"),
    ],
)
def test_a_file_that_cannot_be_run_is_refused(name: str, code: str, says: str, workspace: Path) -> None:
    (workspace / "notes.txt").write_text("")
    (workspace / "folder.py").mkdir()
    os.mkfifo(workspace / "pipe.py")
    (workspace / "loop.py").symlink_to(workspace / "loop.py")
    with (workspace / "huge.py").open("wb") as stream:
        stream.truncate(planning.MAX_SOURCE + 1)
    (workspace.parent / "outside.py").write_text("")
    (workspace / "escape.py").symlink_to(workspace.parent / "outside.py")
    found, detail, hint = refused(CaptureRequest(file=name), workspace)
    assert (found, says in detail, bool(hint)) == (code, True, True), detail


def test_an_inputs_file_that_is_not_there_is_refused(workspace: Path) -> None:
    request = CaptureRequest(file="model.py", inputs=InputFunction(file="data.py", function="f"))
    assert refused(request, workspace)[0] == "file_not_found"


# -- interpreters


@pytest.mark.parametrize(
    ("version", "torch", "code", "says"),
    [
        ("3.9.18", "2.6.0", "interpreter_unusable", "is Python 3.9.18; 3.10 or newer is needed"),
        ("3.12.1", None, "torch_missing", "(Python 3.12.1) has no torch"),
        ("3.12.1", "2.3.1+cu121", "torch_too_old", "has torch 2.3.1+cu121; 2.4 or newer is needed"),
    ],
)
def test_an_interpreter_that_was_named_and_is_not_good_enough_is_refused(
    version: str, torch: str | None, code: str, says: str, workspace: Path
) -> None:
    exe = python(workspace, version=version, torch=torch)
    found, detail, hint = refused(CaptureRequest(file="model.py", python=str(exe)), workspace)
    assert (found, detail, bool(hint)) == (code, f"{exe} {says}", True)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("echo hello", "does not behave like a Python interpreter"),
        ("echo '[]'", "does not behave like a Python interpreter"),
        ("exit 1", "does not behave like a Python interpreter"),
        ("sleep 60", "did not answer within"),
    ],
)
def test_something_that_is_no_python_is_refused(
    body: str, says: str, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interpreters, "_TIMEOUT", 0.5)
    exe = script(workspace / "odd", f"exec {body}" if body.startswith("sleep") else body)
    code, detail, _ = refused(CaptureRequest(file="model.py", python=str(exe)), workspace)
    assert (code, says in detail) == ("interpreter_unusable", True)


def test_a_file_that_is_not_executable_is_refused(workspace: Path) -> None:
    code, detail, _ = refused(CaptureRequest(file="model.py", python="model.py"), workspace)
    assert (code, "does not start: Permission denied" in detail) == ("interpreter_unusable", True)


@pytest.mark.parametrize(
    "name", ["no/such/python", "no-such-python-9", "~nobody-of-that-name/python", "nul\0", "x" * 1000]
)
def test_an_interpreter_that_does_not_exist_is_refused(name: str, workspace: Path) -> None:
    assert refused(CaptureRequest(file="model.py", python=name), workspace)[0] == "interpreter_not_found"


def test_the_first_usable_interpreter_of_the_documented_order_is_taken(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    named = python(tmp_path / "named")
    variable = python(tmp_path / "variable")
    places = {
        ".venv of the workspace": python(workspace / ".venv/bin"),
        "venv of the workspace": python(workspace / "venv/bin"),
        "VIRTUAL_ENV": python(tmp_path / "virtual/bin"),
        "CONDA_PREFIX": python(tmp_path / "conda/bin"),
        "the interpreter that runs tensorviz": python(tmp_path / "own"),
        "python3 on PATH": python(tmp_path / "path", "python3"),
        "python on PATH": python(tmp_path / "path", "python"),
    }
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "virtual"))
    monkeypatch.setenv("CONDA_PREFIX", str(tmp_path / "conda"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'path'}:/bin:/usr/bin")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "own" / "python"))
    monkeypatch.setenv("TENSORVIZ_PYTHON", str(variable))
    assert find_interpreter(str(named), workspace).how == "asked for"
    assert find_interpreter(None, workspace).executable == str(variable)
    monkeypatch.delenv("TENSORVIZ_PYTHON")
    for how, exe in places.items():
        found = find_interpreter(None, workspace)
        assert (found.how, found.executable) == (how, str(exe))
        python(exe.parent, exe.name, torch=None)  # now it is not usable any more
    with pytest.raises(Refused) as caught:
        find_interpreter(None, workspace)
    assert caught.value.problem.code == "torch_missing"
    for how, exe in places.items():
        assert f"{how}: {exe} (Python 3.12.1) has no torch" in caught.value.problem.detail


def test_the_variable_that_names_an_interpreter_is_not_passed_over(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python(workspace / ".venv/bin")
    monkeypatch.setenv("TENSORVIZ_PYTHON", "/no/such/python")
    assert refused(CaptureRequest(file="model.py"), workspace)[0] == "interpreter_not_found"


def test_asking_the_real_interpreter_does_not_import_torch_nor_what_lies_around(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace / "torch.py").write_text("raise RuntimeError('imported')")
    monkeypatch.chdir(workspace)
    found = find_interpreter(sys.executable, workspace)
    assert found.python == ".".join(map(str, sys.version_info[:3]))
    assert found.torch is not None


# -- the workspace of a command line


@pytest.mark.parametrize("sign", ["pyproject.toml", "tensorviz.toml", ".git/"])
def test_the_workspace_is_here_else_the_nearest_project_else_the_files_folder(sign: str, tmp_path: Path) -> None:
    inner = tmp_path / "project" / "models"
    inner.mkdir(parents=True)
    file = inner / "model.py"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert planning.workspace_of(file, tmp_path) == tmp_path
    assert planning.workspace_of(file, elsewhere) == inner
    mark = tmp_path / "project" / sign
    mark.mkdir() if sign.endswith("/") else mark.write_text("")
    assert planning.workspace_of(file, elsewhere) == tmp_path / "project"


def test_one_file_has_one_key_however_it_is_written(workspace: Path) -> None:
    (workspace / "link.py").symlink_to(workspace / "model.py")
    names = ["model.py", "./model.py", str(workspace / "model.py"), "link.py", "../workspace/model.py"]
    assert len({planning.file_key(name, workspace) for name in names}) == 1
    assert planning.file_key("nul\0.py", workspace) == "nul\0.py"
