"""What the README shows is what happens."""

import io
import re
import shutil
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from .running import ROOT
from .test_command import tensorviz

README = (ROOT / "README.md").read_text()
SESSIONS = re.findall(r"```console\n\$ tensorviz (.*)\n((?:.*\n)*?)```", README)
MEASURED = re.compile(r"[\d.]+ (KiB|s)\b")


def measured(text: str) -> list[str]:
    """Times and sizes differ from run to run."""
    return [MEASURED.sub(r"? \1", line).rstrip() for line in text.splitlines()]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the examples, in which the sessions of the README follow one another."""
    folder = tmp_path_factory.mktemp("readme")
    shutil.copytree(ROOT / "examples", folder / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def test_the_sessions_of_the_readme_show_what_the_command_prints(workspace: Path) -> None:
    assert len(SESSIONS) >= 3
    for command, shown in SESSIONS:
        done = tensorviz(*command.split(), folder=workspace, COLUMNS="160")
        printed = measured(done.stderr + done.stdout)
        assert [line for line in measured(shown) if line not in printed] == []


def test_the_python_of_the_readme_runs_and_prints_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    (shown,) = re.findall(r"```text\n(.*?)```", README, re.DOTALL)
    with redirect_stdout(io.StringIO()) as output:
        exec(compile(code, "README.md", "exec"), {"__name__": "readme"})
    assert output.getvalue().startswith(shown)
    assert output.getvalue().splitlines()[-1].startswith("complete ")
    assert (tmp_path / "model.capture.json").is_file()


def test_every_file_that_the_readme_links_to_is_there() -> None:
    targets = re.findall(r"\]\(([^)#:]+)\)", README)
    assert len(targets) > 10
    assert [target for target in targets if not (ROOT / target).exists()] == []
