"""A Chromium for the session and a staged host for each test. The console must stay silent."""

import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tensorviz.edges.web import PAGE

from .staging import TOKEN, Stage, serving

ROOT = Path(__file__).resolve().parents[2]
OPTIONS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip

_NETWORK = re.compile("Failed to load resource|WebSocket connection")

Open = Callable[..., Page]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="package")  # playwright keeps an event loop running, which other tests must not find
def browser() -> Iterator[Browser]:
    executable = os.environ.get("TENSORVIZ_CHROMIUM") or shutil.which("chromium")
    if executable is None:
        pytest.fail("there is no chromium: install it, or name one with TENSORVIZ_CHROMIUM")
    if not PAGE.exists():
        pytest.fail("the page is not built: npm run build --prefix packages/viewer")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=executable, args=OPTIONS)
        yield started
        started.close()


@pytest.fixture
def stage() -> Stage:
    return Stage()


@pytest.fixture
def port(stage: Stage) -> Iterator[int]:
    with serving(stage) as found:
        yield found


@pytest.fixture
def complaints() -> Iterator[list[str]]:
    """What the console said, except of answers that were refused or did not come: tests cause those on purpose."""
    found: list[str] = []
    yield found
    assert found == []


def _serious(text: str) -> list[str]:
    return [] if _NETWORK.search(text) else [text]


@pytest.fixture
def open_page(browser: Browser, complaints: list[str]) -> Iterator[Open]:
    """Opens a host's page in a window of its own."""
    contexts = []

    def open_(port: int, link: str = "", token: str | None = TOKEN, **options: object) -> Page:
        context = browser.new_context(**{"viewport": {"width": 1440, "height": 900}, **options})
        contexts.append(context)
        context.set_default_timeout(10_000)
        page = context.new_page()
        page.on("console", lambda message: complaints.extend(_serious(message.text)))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        fragment = "&".join(part for part in (f"token={token}" if token else "", link) if part)
        page.goto(f"http://127.0.0.1:{port}/#{fragment}")
        return page

    yield open_
    for context in contexts:
        context.close()
