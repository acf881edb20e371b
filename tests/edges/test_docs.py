"""The documents say what there is: every command, option, route, variable, problem and reason, and nothing else."""

import argparse
import re
from pathlib import Path
from typing import get_args

import pytest
from fastapi.routing import APIRoute, APIWebSocketRoute

from tensorviz.contracts.attempt import CaptureRequest, Outcome, Stage
from tensorviz.contracts.capture import CaptureSnapshot, Constraint, Diagnostic, Limits, ReasonCode
from tensorviz.contracts.messages import HostEvent
from tensorviz.contracts.problem import ProblemCode
from tensorviz.edges import options, web
from tensorviz.edges.guard import STATUS
from tensorviz.errors import TITLES
from tensorviz.service import Service
from tensorviz.terminal import REASONS, STAGES

ROOT = Path(__file__).resolve().parents[2]
CLI, HTTP, PROBLEMS = ((ROOT / "docs" / f"{name}.md").read_text() for name in ("cli", "http", "problems"))
SHARED = re.compile("--(inputs|python|mode|fake|timeout|max-.*)")


def section(text: str, title: str) -> str:
    return text.split(f"\n## {title}\n")[1].split("\n## ", 1)[0]


def commands() -> dict[str, argparse.ArgumentParser]:
    (found,) = (action for action in options.parser()._actions if isinstance(action, argparse._SubParsersAction))
    return dict(found.choices)


def option_lines(parser: argparse.ArgumentParser) -> set[str]:
    """Each option as a document writes it: with what it takes."""
    lines = set()
    for action in parser._actions:
        if action.option_strings and not isinstance(action, argparse._HelpAction):
            takes = r"\|".join(action.choices) if action.choices else str(action.metavar)
            lines.add(action.option_strings[-1] + (f" {takes}" if action.nargs != 0 else ""))
    return lines


# -- the command line


@pytest.mark.parametrize("name", list(commands()))
def test_every_option_of_a_command_is_documented_with_what_it_takes_and_no_other(name: str) -> None:
    documented = set(re.findall(r"^\| `(--[^`]+)`", section(CLI, f"tensorviz {name}"), re.MULTILINE))
    own = option_lines(commands()[name])
    if name == "open":  # says that it takes those of capture
        assert {line for line in own if SHARED.match(line)} <= option_lines(commands()["capture"])
        own = {line for line in own if not SHARED.match(line)}
    assert documented == own


def test_the_commands_of_the_first_table_are_those_that_exist() -> None:
    assert re.findall(r"^\| `tensorviz (\w+)", CLI, re.MULTILINE) == list(commands())


def test_the_documented_defaults_are_the_defaults() -> None:
    documented = dict(re.findall(r"^\| `(--max-[a-z-]+) N` \|[^|]+\| ([\d,]+) \|", CLI, re.MULTILINE))
    assert documented == {options.limit_option(name): f"{value:,}" for name, value in Limits().model_dump().items()}


def test_every_variable_that_is_read_is_documented() -> None:
    sources = "".join(path.read_text() for path in (ROOT / "backend" / "tensorviz").rglob("*.py"))
    read = set(re.findall(r'"(TENSORVIZ_[A-Z]+|XDG_[A-Z_]+|NO_COLOR)"', sources)) - {"TENSORVIZ_ATTEMPT", "TENSORVIZ_"}
    assert set(re.findall(r"^\| `([A-Z_]+)` \|", section(CLI, "Variables"), re.MULTILINE)) == read | {"NO_COLOR"}


# -- HTTP


def routes(tmp_path: Path) -> set[str]:
    with Service(tmp_path) as service:
        app = web.create_app(service, token="t", port=1)._app
    found = set()
    for route in app.routes:  # type: ignore[attr-defined]
        if isinstance(route, APIRoute):
            found |= {f"{method} {route.path}" for method in route.methods or ()}
        elif isinstance(route, APIWebSocketRoute):
            found.add(f"WS {route.path}")
        else:
            found.add(f"? {route}")
    return found


def test_every_route_is_documented_and_no_other(tmp_path: Path) -> None:
    assert set(re.findall(r"^\| `([A-Z]+ /[^`]*)` \|", HTTP, re.MULTILINE)) == routes(tmp_path)


def test_the_words_of_the_contract_are_all_explained() -> None:
    lists = {name for name, field in CaptureSnapshot.model_fields.items() if "tuple" in str(field.annotation)}
    kinds = {kind.model_fields["kind"].annotation for kind in get_args(get_args(HostEvent.__value__)[0])}
    words = lists | {get_args(kind)[0] for kind in kinds} | set(CaptureRequest.model_fields)
    words |= set(get_args(Stage)) | set(get_args(Outcome))
    assert {word for word in words if f"`{word}`" not in HTTP} == set()


# -- problems and reasons


def rows(text: str) -> dict[str, list[str]]:
    found = [line.strip("|").split(" | ") for line in text.splitlines() if line.startswith("| `")]
    return {cells[0].strip(" `"): [cell.strip(" |") for cell in cells[1:]] for cells in found}


def test_every_problem_is_documented_with_its_title_hint_and_status() -> None:
    documented = rows(PROBLEMS.split("## Why a capture is partial")[0])
    assert list(documented) == list(get_args(ProblemCode)) == list(TITLES)
    for code, (title, hint) in TITLES.items():
        assert documented[code][:2] == [title, hint or "none"]
    host = rows(section(PROBLEMS, "From the host or about a document"))
    statuses = {str(code): str(status) for code, status in STATUS.items()}
    assert {code: cells[2] for code, cells in host.items()} == {code: statuses.get(code, "") for code in host}


def test_every_reason_is_documented_with_its_meaning() -> None:
    documented = rows(section(PROBLEMS, "Why a capture is partial"))
    assert documented == {code: [REASONS[code]] for code in get_args(ReasonCode)}


def test_every_disposition_and_every_kind_of_constraint_is_documented() -> None:
    text = section(PROBLEMS, "What became of an exception")
    dispositions = get_args(Diagnostic.model_fields["disposition"].annotation)
    models = get_args(get_args(Constraint.__value__)[0])
    kinds = [get_args(model.model_fields["kind"].annotation)[0] for model in models]
    assert list(rows(text)) == [*dispositions, *kinds]


def test_every_stage_has_words() -> None:
    assert list(STAGES) == list(get_args(Stage))


def test_every_code_that_is_raised_is_one_of_the_table() -> None:
    sources = "".join(path.read_text() for path in (ROOT / "backend").rglob("*.py"))
    raised = set(re.findall(r'(?:refusal|problem|Refusal)\(\s*"([a-z_]+)"', sources))
    assert raised <= set(TITLES), raised - set(TITLES)
    assert "inputs_missing" in raised
