"""`tensorviz doctor`: which interpreter would run a file here, and what this machine offers."""

import argparse
import platform
import sys
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

import orjson
from rich.console import Console
from rich.text import Text

from tensorviz import __version__, terminal
from tensorviz.contracts.base import encode
from tensorviz.errors import Refused
from tensorviz.kernel import mechanisms
from tensorviz.service import interpreter

USABLE, UNUSABLE = 0, 1
PAGE = Path(__file__).resolve().parent.parent / "page" / "index.html"
_PACKAGES = ("pydantic", "fastapi", "uvicorn", "mcp", "orjson", "psutil")


def doctor(chosen: argparse.Namespace) -> int:
    facts = _facts(chosen.python)
    if chosen.json:
        print(orjson.dumps(facts, option=orjson.OPT_INDENT_2).decode())
    else:
        _print(terminal.console(sys.stdout), facts)
    return USABLE if facts["problem"] is None else UNUSABLE


def _facts(asked: str | None) -> dict[str, Any]:
    found, problem = None, None
    try:
        found = asdict(interpreter(asked, Path.cwd()))
    except Refused as refused:
        problem = orjson.loads(encode(refused.problem))
    return {
        "interpreter": found,
        "problem": problem,
        "sandbox": {"applied": False, "mechanisms": [asdict(mechanism) for mechanism in mechanisms()]},
        "versions": {
            "tensorviz": __version__,
            "python": platform.python_version(),
            **{name: metadata.version(name) for name in _PACKAGES},
        },
        "page": PAGE.is_file(),
    }


def _print(out: Console, facts: dict[str, Any]) -> None:
    found, problem = facts["interpreter"], facts["problem"]
    if problem is not None:
        _line(out, False, "interpreter", problem["detail"])
        out.print(f"    what to do: {terminal.clean(problem['hint'] or '')}")
    else:
        _line(out, True, "interpreter", f"{found['executable']} ({found['how']})")
        _line(out, True, "python", found["python"])
        _line(out, True, "torch", found["torch"] or "there, of unknown version")
    out.print("sandbox mechanisms of this machine (this version applies none of them yet):")
    for mechanism in facts["sandbox"]["mechanisms"]:
        _line(out, mechanism["offered"], f"  {mechanism['name']}", mechanism["detail"])
    out.print("host:")
    for name, version in facts["versions"].items():
        _line(out, True, f"  {name}", version)
    built = "built" if facts["page"] else "not built: make demo builds it; everything but the browser works without"
    _line(out, facts["page"], "  page", built)


def _line(out: Console, good: bool, name: str, detail: str) -> None:
    mark = ("ok", "green") if good else ("--", "bold red")
    out.print(Text.assemble(mark, f" {name}: {terminal.clean(detail)}"))
