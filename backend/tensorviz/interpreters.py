"""Finds the interpreter that runs the user's file, and asks it for its versions without importing torch.

In this order, and the first usable one is taken:

    1. the one asked for (--python EXE): a path, a folder of an environment, or a command on PATH
    2. the variable TENSORVIZ_PYTHON, read likewise
    3. the workspace's own environment: .venv, then venv
    4. the active environment: VIRTUAL_ENV, then CONDA_PREFIX
    5. the interpreter that runs tensorviz
    6. python3, then python, on PATH

One that was named (1 and 2) is used or refused; nothing else takes its place.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tensorviz.contracts.problem import Problem, ProblemCode
from tensorviz.errors import Refused, refusal

MIN_PYTHON = (3, 10)
MIN_TORCH = (2, 4)
_TIMEOUT = 30.0
_PROBE = """
import json, sys
try:
    from importlib import metadata, util
    found = util.find_spec("torch") is not None
    torch = metadata.version("torch") if found else None
except Exception:
    torch = None
version = ".".join(map(str, sys.version_info[:3]))
print(json.dumps({"python": version, "found": bool(found), "torch": torch}))
"""


@dataclass(frozen=True)
class Interpreter:
    """``how`` says where it was found. ``torch`` is null when torch is there without package metadata."""

    executable: str
    how: str
    python: str
    torch: str | None


def find_interpreter(asked: str | None, workspace: Path) -> Interpreter:
    """Raises Refused: with the reason for the interpreter that was named, else with what was tried."""
    for named, how in ((asked, "asked for"), (os.environ.get("TENSORVIZ_PYTHON"), "TENSORVIZ_PYTHON")):
        if named:
            return probe(_executable(named, workspace), how)
    failures: list[tuple[str, Problem]] = []
    for executable, how in _candidates(workspace):
        try:
            return probe(executable, how)
        except Refused as refused:
            failures.append((how, refused.problem))
    raise _none_usable(failures)


def probe(executable: str, how: str) -> Interpreter:
    """Raises Refused unless it starts, is new enough, and has a new enough torch."""
    facts = _ask(executable)
    python, torch = str(facts["python"]), facts["torch"]
    if _numbers(python) < MIN_PYTHON:
        raise refusal("interpreter_unusable", f"{executable} is Python {python}; 3.10 or newer is needed")
    if not facts["found"]:
        raise refusal("torch_missing", f"{executable} (Python {python}) has no torch")
    if torch is not None and _numbers(torch) < MIN_TORCH:
        raise refusal("torch_too_old", f"{executable} has torch {torch}; 2.4 or newer is needed")
    return Interpreter(executable, how, python, torch)


def _ask(executable: str) -> dict[str, str | None]:
    try:
        done = subprocess.run(
            [executable, "-s", "-c", _PROBE],
            cwd=os.path.dirname(executable) or os.sep,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT,
            check=False,
        )
        facts = json.loads(done.stdout.splitlines()[-1])
        return {key: facts[key] for key in ("python", "found", "torch")}
    except OSError as error:
        raise refusal("interpreter_unusable", f"{executable} does not start: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise refusal("interpreter_unusable", f"{executable} did not answer within {_TIMEOUT:g} s") from error
    except (ValueError, IndexError, KeyError, TypeError) as error:
        raise refusal("interpreter_unusable", f"{executable} does not behave like a Python interpreter") from error


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:2])


def _executable(name: str, workspace: Path) -> str:
    """A path or an environment's folder; a bare name that is no folder here is a command on PATH."""
    path = workspace / os.path.expanduser(name)
    on_path = None if os.sep in name or os.path.isdir(path) else shutil.which(name)
    path = Path(on_path) if on_path else _inside(path) or path
    if not os.path.isfile(path):
        raise refusal("interpreter_not_found", f"there is no interpreter at {path}")
    return os.path.abspath(path)


def _candidates(workspace: Path) -> Iterator[tuple[str, str]]:
    environments = [(workspace / name, f"{name} of the workspace") for name in (".venv", "venv")]
    environments += [(Path(os.environ[name]), name) for name in ("VIRTUAL_ENV", "CONDA_PREFIX") if os.environ.get(name)]
    for folder, how in environments:
        inside = _inside(folder)
        if inside is not None:
            yield os.path.abspath(inside), how
    yield sys.executable, "the interpreter that runs tensorviz"
    for name in ("python3", "python"):
        found = shutil.which(name)
        if found:
            yield os.path.abspath(found), f"{name} on PATH"


def _inside(folder: Path) -> Path | None:
    """The interpreter of an environment's folder."""
    for name in ("bin/python", "bin/python3", "Scripts/python.exe", "python.exe"):
        if os.path.isfile(folder / name):
            return folder / name
    return None


def _none_usable(failures: list[tuple[str, Problem]]) -> Refused:
    """A torch that is missing everywhere is said so; otherwise the most specific failure decides."""
    tried = "; ".join(f"{how}: {problem.detail}" for how, problem in failures)
    code: ProblemCode = "torch_missing"
    if any(problem.code == "torch_too_old" for _, problem in failures):
        code = "torch_too_old"
    return refusal(code, f"no usable interpreter was found. {tried}")
