"""The whole way: the real host runs real files, and the page shows what they did."""

import json
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from shutil import copytree
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from .conftest import ROOT, Open

_ENDS = """
import ctypes, os, signal
import torch
from torch import nn


@torch.library.custom_op("ends::deadly", mutates_args=())
def deadly(x: torch.Tensor) -> torch.Tensor:
    {end}
    return x.clone()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(2, 2)

    def forward(self, x):
        return deadly(self.first(x))


def example_inputs():
    return (torch.ones(3, 2),)
"""
ENDS = {
    "killed": ("os.kill(os.getpid(), signal.SIGKILL)", "The worker's process was ended by SIGKILL."),
    "segfault": ("ctypes.string_at(0)", "The worker's process was ended by SIGSEGV."),
    "exited": ("os._exit(3)", "The worker's process exited with status 3 before the run ended."),
    "endless": ("while True: pass", "The run was stopped at its deadline of 5 s."),
}
EXAMPLES = {
    "gpt": "Generator",
    "resnet": "ResNet",
    "encoder_decoder": "EncoderDecoder",
    "control_flow": "Router",
}


@dataclass(frozen=True)
class Host:
    """A `tensorviz serve` of a workspace with the examples and files that end badly."""

    port: int
    token: str

    def ask(self, path: str) -> Any:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/api/{path}", headers={"Authorization": f"Bearer {self.token}"}
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.loads(answer.read())


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    workspace = tmp_path_factory.mktemp("workspace")
    copytree(ROOT / "examples", workspace / "examples")
    for name, (end, _) in ENDS.items():
        (workspace / f"{name}.py").write_text(_ENDS.format(end=end))
    (workspace / "broken.py").write_text("import torch\ndef f(:\n")
    environment = os.environ | {
        "PYTHONPATH": str(ROOT / "backend"),
        "TENSORVIZ_PYTHON": sys.executable,
        "XDG_RUNTIME_DIR": str(tmp_path_factory.mktemp("runtime")),
    }
    command = [sys.executable, "-m", "tensorviz.edges.cli", "serve", "--workspace", str(workspace)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        address = re.search(r"127\.0\.0\.1:(\d+)/#token=(\S+)", process.stdout.readline())
        assert address is not None
        yield Host(int(address[1]), address[2])
        process.terminate()
        process.wait(20)


def ask_for(page: Page, file: str, deadline: str = "60") -> None:
    page.get_by_label("New capture").click()
    page.get_by_label("Python file").fill(file)
    page.get_by_label("Target").fill("")
    page.get_by_label("Deadline in seconds").fill(deadline)
    page.get_by_role("button", name="Capture", exact=True).click()


def shown(page: Page, file: str) -> Locator:
    expect(page.locator(".picker-target")).to_contain_text(file, timeout=90_000)
    return page.get_by_role("complementary", name="Inspector")


def snapshot_of(host: Host, page: Page) -> Any:
    name = re.search(r"capture=(cap-[0-9a-f]{16})", page.url)
    assert name is not None
    return host.ask(f"captures/{name[1]}")


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_is_captured_and_everything_that_was_recorded_is_shown(
    host: Host, open_page: Open, example: str
) -> None:
    page = open_page(host.port, token=host.token)
    ask_for(page, f"examples/{example}.py")
    shown(page, f"{example}.py")
    expect(page.locator(".badge-button")).to_have_text("complete")
    snapshot = snapshot_of(host, page)
    assert snapshot["status"] == "complete"
    expect(page.locator(".tree-row").first).to_contain_text(EXAMPLES[example])
    expect(page.get_by_role("grid")).to_have_attribute("aria-rowcount", str(len(snapshot["operations"]) + 1))
    expect(page.locator(".footer")).to_contain_text(f"{len(snapshot['invocations'])} module calls")
    for index in (0, 5, 11):
        page.locator(".grid-body .grid-row").nth(index).click()
        inspector = shown(page, f"{example}.py")
        operation = snapshot["operations"][index]
        expect(inspector.get_by_role("heading", level=2)).to_have_text(operation["target"])
        schemas = {record["target"]: record["operatorSchema"] for record in snapshot["operators"]}
        expect(inspector).to_contain_text(schemas[operation["target"]])
        line = snapshot["locations"][int(operation["location"][1:])]["line"]
        expect(inspector).to_contain_text(f"examples/{example}.py:{line}")


def test_the_failing_example_names_its_operation_operands_module_and_line(host: Host, open_page: Open) -> None:
    page = open_page(host.port, token=host.token)
    ask_for(page, "examples/shape_error.py")
    inspector = shown(page, "shape_error.py")
    expect(page.locator(".badge-button")).to_have_text("partial")
    expect(page.locator(".banner.bad")).to_contain_text("The run raised RuntimeError.")
    expect(inspector.get_by_role("heading", level=2)).to_have_text("aten.addmm.default")
    for text in ("failed", "layers.4", "f32[4,64]", "f32[128,10]", "examples/shape_error.py:"):
        expect(inspector).to_contain_text(text)
    page.get_by_role("button", name="Log").click()
    expect(page.locator("pre.log")).to_contain_text("mat1 and mat2 shapes cannot be multiplied")


@pytest.mark.parametrize("end", ENDS)
def test_however_a_worker_ends_the_page_shows_what_was_in_flight(host: Host, open_page: Open, end: str) -> None:
    page = open_page(host.port, token=host.token)
    ask_for(page, f"{end}.py", "5")
    inspector = shown(page, f"{end}.py")
    expect(page.locator(".banner.bad")).to_contain_text(ENDS[end][1])
    expect(page.locator(".grid-row[aria-selected=true]")).to_contain_text("in flight")
    expect(inspector.get_by_role("heading", level=2)).to_have_text("ends.deadly.default")


def test_a_syntax_error_is_a_problem_and_the_earlier_capture_stays(host: Host, open_page: Open) -> None:
    page = open_page(host.port, token=host.token)
    ask_for(page, "examples/resnet.py")
    shown(page, "resnet.py")
    ask_for(page, "broken.py")
    expect(page.get_by_role("alert")).to_contain_text("The file is not valid Python", timeout=30_000)
    expect(page.get_by_role("alert")).to_contain_text("broken.py:2")
    expect(page.locator(".picker-target")).to_contain_text("resnet.py")


def test_a_file_that_is_not_there_is_refused_before_anything_runs(host: Host, open_page: Open) -> None:
    page = open_page(host.port, token=host.token)
    ask_for(page, "nowhere.py")
    alert = page.get_by_role("alert").filter(has_text="nowhere.py")
    expect(alert).to_contain_text("Nothing was run", timeout=30_000)
    expect(alert).to_contain_text("check the path")
