"""Request + saved files -> ExecutionPlan. Static: it reads files and asks an interpreter for its version, no more."""

import hashlib
import os
from pathlib import Path

from tensorviz.contracts.attempt import CaptureRequest, ExecutionPlan, InputFunction
from tensorviz.errors import refusal
from tensorviz.interpreters import find_interpreter

MAX_SOURCE = 16 * 2**20
MAX_PATH = 1024
_ROOT_SIGNS = ("tensorviz.toml", "pyproject.toml", ".git")


def resolve(request: CaptureRequest, workspace: Path, attempt: str) -> ExecutionPlan:
    """Raises Refused. Paths of the request are absolute or relative to the workspace."""
    workspace = workspace.resolve()
    file = _source_file(request.file, workspace)
    return ExecutionPlan(
        schemaVersion=1,
        attempt=attempt,
        workspace=str(workspace),
        roots=tuple(str(root) for root in (workspace, workspace / "src") if root.is_dir()),
        file=str(file),
        fileDigest=hashlib.sha256(_read(file)).hexdigest(),
        target=request.target,
        inputs=_inputs(request.inputs, workspace),
        python=find_interpreter(request.python, workspace).executable,
        mode=request.mode,
        fake=request.fake,
        timeout=request.timeout,
        limits=request.limits,
    )


def workspace_of(file: Path, here: Path) -> Path:
    """The folder that a file named on the command line belongs to."""
    file, here = file.resolve(), here.resolve()
    if file.is_relative_to(here):
        return here
    for folder in file.parents:
        if any((folder / sign).exists() for sign in _ROOT_SIGNS):
            return folder
    return file.parent


def file_key(name: str, workspace: Path) -> str:
    """One name for one file, however it was written."""
    try:
        return os.path.realpath(workspace / name)
    except (OSError, ValueError):  # no file has such a name; planning says so
        return name


def _inputs(asked: InputFunction | None, workspace: Path) -> InputFunction | None:
    if asked is None:
        return None
    file = _source_file(asked.file, workspace)
    _read(file)
    return InputFunction(file=str(file), function=asked.function)


def _source_file(name: str, workspace: Path) -> Path:
    path = workspace / name
    try:
        file = path.resolve(strict=True)
    except (OSError, RuntimeError, ValueError) as error:
        raise refusal("file_not_found", f"{path}: {getattr(error, 'strerror', None) or error}") from error
    if len(str(file)) > MAX_PATH or not _is_text(str(file)):
        raise refusal(
            "file_not_found", f"{file} is not a name that fits a plan", "give the file and folder plain names"
        )
    if not file.is_relative_to(workspace):
        raise refusal("file_outside_workspace", f"{file} is not inside {workspace}")
    if not file.is_file():
        what = "a folder" if file.is_dir() else "a pipe or a device"
        raise refusal("file_not_found", f"{file} is {what}, not a Python source file", "name a saved file")
    if file.suffix != ".py":
        raise refusal("file_not_found", f"{file} is not a Python source file", "name a file that ends in .py")
    return file


def _read(file: Path) -> bytes:
    try:
        with file.open("rb") as stream:
            data = stream.read(MAX_SOURCE + 1)
    except OSError as error:
        raise refusal("file_not_found", f"{file}: {error.strerror}") from error
    if len(data) > MAX_SOURCE:
        raise refusal("file_not_found", f"{file} has more than {MAX_SOURCE:,} bytes", "name a Python source file")
    return data


def _is_text(name: str) -> bool:
    return name == name.encode("utf-8", "replace").decode()
