"""The HTTP interface: what each route gives. The application is asked directly; who may ask is tested in security/."""

import asyncio
import gzip
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tensorviz.contracts.attempt import ExecutionPlan, RunAttempt
from tensorviz.contracts.base import Model
from tensorviz.contracts.capture import Exited
from tensorviz.contracts.messages import AttemptPage, CapturePage, HostInfo
from tensorviz.contracts.problem import Problem
from tensorviz.contracts.validate import parse, parse_capture
from tensorviz.edges.web import create_app
from tensorviz.service import Service
from tensorviz.supervisor import WorkerRun

from .models import GOOD, write

PORT = 8123
TOKEN = "t0ken"
LOG = "printed\n" * 1000


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Two captures of good.py and an attempt that failed."""
    workspace = write(tmp_path_factory.mktemp("web"), good=GOOD, broken="def (")
    with Service(workspace) as service:
        for name in ("good.py", "good.py", "broken.py"):
            attempt = ask("POST", "/api/attempts", service, json={"file": name}).json()["id"]
            wait(service, attempt)
        yield service


def wait(service: Service, name: str) -> RunAttempt:
    job = service._job(name)
    if job is not None:
        assert job.done.wait(60)
    return service.attempt(name)


def ask(
    method: str,
    path: str,
    service: Any,
    page: Path = Path("/nowhere"),
    headers: dict[str, str] | None = None,
    **more: Any,
) -> httpx.Response:
    async def once() -> httpx.Response:
        transport = httpx.ASGITransport(create_app(service, token=TOKEN, port=PORT, page=page))
        given = {"Authorization": f"Bearer {TOKEN}", "Accept-Encoding": "identity"} | (headers or {})
        async with httpx.AsyncClient(transport=transport, base_url=f"http://127.0.0.1:{PORT}") as client:
            return await client.request(method, path, headers=given, **more)

    return asyncio.run(once())


def read(model: type[Model], response: httpx.Response, status: int = 200) -> Any:
    """The body as the contract's model, in full."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    return model.model_validate_json(response.content)


def test_the_host_says_what_it_is(service: Service) -> None:
    found = read(HostInfo, ask("GET", "/api/info", service))
    assert (found.name, found.workspace) == ("tensorviz", str(service.workspace))


def test_captures_are_listed_newest_first_and_paged(service: Service) -> None:
    whole = read(CapturePage, ask("GET", "/api/captures", service))
    assert (whole.total, len(whole.items), whole.offset) == (2, 2, 0)
    second = read(CapturePage, ask("GET", "/api/captures?offset=1&limit=1", service))
    assert (second.items, second.offset, second.total) == (whole.items[1:], 1, 2)
    attempts = read(AttemptPage, ask("GET", "/api/attempts", service)).items
    assert [attempt.capture for attempt in attempts] == [None, *(capture.id for capture in whole.items)]


def capture_of(service: Service) -> str:
    return service.captures(0, 1).items[0].id


def test_a_capture_is_its_canonical_bytes_compressed_for_those_who_take_it(service: Service) -> None:
    name = capture_of(service)
    plain = ask("GET", f"/api/captures/{name}", service)
    assert plain.content == service.retained(name).data
    assert parse_capture(plain.content).id == name
    assert "content-encoding" not in plain.headers
    for accepted, compressed in (("gzip, br", True), ("br;q=1, *", True), ("gzip;q=0", False), ("br", False)):
        packed = ask("GET", f"/api/captures/{name}", service, headers={"Accept-Encoding": accepted})
        assert packed.content == plain.content
        assert (packed.headers.get("content-encoding") == "gzip") is compressed
        assert packed.headers["vary"] == "Accept-Encoding"
        if compressed:
            assert int(packed.headers["content-length"]) == len(gzip.compress(plain.content, 5, mtime=0))


def test_every_list_of_a_capture_has_pages(service: Service) -> None:
    name = capture_of(service)
    document = json.loads(service.retained(name).data)
    lists = [key for key, value in document.items() if isinstance(value, list)]
    assert {"operations", "values", "invocations", "modules", "state", "diagnostics", "reasons"} <= set(lists)
    for section in lists:
        page = ask("GET", f"/api/captures/{name}/{section}?offset=1&limit=2", service).json()
        assert page == {"items": document[section][1:3], "offset": 1, "total": len(document[section])}


@pytest.mark.parametrize("section", ["coverage", "status", "nothing"])
def test_what_is_no_list_has_no_pages_and_the_lists_are_named(section: str, service: Service) -> None:
    problem = read(Problem, ask("GET", f"/api/captures/{capture_of(service)}/{section}", service), 404)
    assert problem.code == "not_found"
    assert "operations" in problem.hint


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/captures/cap-0000000000000000"),
        ("GET", "/api/captures/cap-0000000000000000/values"),
        ("GET", "/api/attempts/att-0000000000000000"),
        ("GET", "/api/attempts/att-0000000000000000/log"),
        ("DELETE", "/api/attempts/att-0000000000000000"),
    ],
)
def test_what_is_not_there_is_a_problem(method: str, path: str, service: Service) -> None:
    assert read(Problem, ask(method, path, service), 404).code == "not_found"


def test_an_attempt_that_failed_has_its_problem_and_its_log(service: Service) -> None:
    name = service.attempts(0, 1).items[0].id
    found = read(RunAttempt, ask("GET", f"/api/attempts/{name}", service))
    assert (found.outcome, found.problem.code) == ("failed", "syntax_error")
    assert "SyntaxError" in found.log
    log = ask("GET", f"/api/attempts/{name}/log", service)
    assert (log.text, log.headers["content-type"]) == (found.log, "text/plain; charset=utf-8")


def test_starting_and_cancelling_answer_at_once(tmp_path: Path) -> None:
    write(tmp_path, good=GOOD)
    running = threading.Event()

    def run(plan: ExecutionPlan, *, cancel: threading.Event, **_: object) -> WorkerRun:
        running.set()
        assert cancel.wait(30)
        return WorkerRun(b"", Exited(kind="exited", code=0), LOG)

    with Service(tmp_path, run=run) as service:
        started = read(RunAttempt, ask("POST", "/api/attempts", service, json={"file": "good.py"}), 202)
        assert (started.stage, started.origin, started.outcome) == ("queued", "web", None)
        assert running.wait(30)
        read(RunAttempt, ask("DELETE", f"/api/attempts/{started.id}", service))
        wait(service, started.id)
        found = read(RunAttempt, ask("GET", f"/api/attempts/{started.id}", service))
        assert found.log == "[...]\n" + LOG[-4000:]
        assert ask("GET", f"/api/attempts/{started.id}/log", service).text == LOG


def test_a_defect_of_ours_is_a_problem_without_a_traceback() -> None:
    class Defect:
        def __getattr__(self, name: str) -> Callable[..., object]:
            raise ZeroDivisionError("secret detail")

    response = ask("GET", "/api/info", Defect())
    assert read(Problem, response, 500).code == "internal_error"
    assert "secret detail" not in response.text
    assert "Traceback" not in response.text


def test_a_page_that_is_not_built_says_what_to_do(service: Service) -> None:
    response = ask("GET", "/", service)
    assert response.status_code == 503
    assert "make demo" in response.text
    assert "__CSP_NONCE__" not in response.text


def test_the_built_page_gets_the_nonce_of_its_answer(service: Service, tmp_path: Path) -> None:
    page = tmp_path / "index.html"
    page.write_text('<script nonce="__CSP_NONCE__">1</script><style nonce="__CSP_NONCE__"></style>')
    response = ask("GET", "/", service, page)
    nonce = response.headers["content-security-policy"].split("'nonce-")[1].split("'")[0]
    assert response.text == f'<script nonce="{nonce}">1</script><style nonce="{nonce}"></style>'


def test_the_page_never_holds_the_token(service: Service, tmp_path: Path) -> None:
    page = tmp_path / "index.html"
    page.write_text("<p>hello")
    assert TOKEN not in ask("GET", "/", service, page).text


def test_wrong_requests_are_read_by_the_contract_itself(service: Service) -> None:
    response = ask("POST", "/api/attempts", service, json={"file": "a.py", "limits": {"values": "many"}})
    problem = parse(Problem, response.content) if response.status_code == 422 else None
    assert problem is not None
    assert [fault.path for fault in problem.faults] == [("limits", "values")]
