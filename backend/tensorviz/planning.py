"""Request + saved files -> ExecutionPlan. Static: it reads files and asks an interpreter for its version, no more."""

import hashlib
import os
from pathlib import Path

from tensorviz.contracts.attempt import CaptureRequest, ExecutionPlan, InputFunction
from tensorviz.errors import refusal
from tensorviz.interpreters import find_interpreter

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
    return os.path.realpath(workspace / name)


def _inputs(asked: InputFunction | None, workspace: Path) -> InputFunction | None:
    if asked is None:
        return None
    file = _source_file(asked.file, workspace)
    _read(file)
    return InputFunction(file=str(file), function=asked.function)


def _source_file(name: str, workspace: Path) -> Path:
    if "\0" in name:
        raise refusal("file_not_found", "the path holds a NUL character")
    path = workspace / name
    try:
        file = path.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise refusal("file_not_found", f"{path}: {getattr(error, 'strerror', None) or error}") from error
    if not file.is_relative_to(workspace):
        raise refusal("file_outside_workspace", f"{file} is not inside {workspace}")
    if file.suffix != ".py" or not file.is_file():
        raise refusal("file_not_found", f"{file} is not a Python source file", "name a file that ends in .py")
    return file


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise refusal("file_not_found", f"{file}: {error.strerror}") from error
