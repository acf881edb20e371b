"""The HTTP edge: the routes of docs/http.md over a Service, and the page. Every error is one Problem as JSON."""

import asyncio
import gzip
import secrets
from pathlib import Path
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request, WebSocket
from fastapi.exceptions import RequestValidationError
from fastapi.responses import PlainTextResponse, Response
from starlette.exceptions import HTTPException

from tensorviz.contracts.attempt import CaptureRequest
from tensorviz.contracts.base import MAX_SAFE, encode
from tensorviz.contracts.problem import Fault, Problem, ProblemCode
from tensorviz.contracts.validate import ContractError, parse
from tensorviz.edges.events import stream_events
from tensorviz.edges.guard import STATUS, Guard
from tensorviz.errors import Refused, bounded, problem, refusal
from tensorviz.service import MAX_PAGE, Service

MAX_BODY = 64 * 2**10
BODY_SECONDS = 10.0
PAGE = Path(__file__).resolve().parent.parent / "page" / "index.html"
_MIN_GZIP = 2**10
_NOT_BUILT = """<!doctype html><meta charset="utf-8"><title>tensorviz</title>
<h1>The page is not built</h1>
<p>This is a source checkout. Run <code>make demo</code> once, or <code>npm run build --prefix packages/viewer</code>,
and reload. The HTTP interface and the command line work without it.</p>"""

Offset = Annotated[int, Query(ge=0, le=MAX_SAFE)]
Limit = Annotated[int, Query(ge=1, le=MAX_PAGE)]


def create_app(
    service: Service,
    *,
    token: str,
    port: int,
    page: Path = PAGE,
    ipv6: bool = False,
    body_seconds: float = BODY_SECONDS,
) -> Guard:
    """The application behind its guard. ``port`` is part of the Host and Origin that are answered."""
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False)
    _add_errors(app)
    _add_page(app, page)
    _add_captures(app, service)
    _add_attempts(app, service, body_seconds)
    return Guard(app, port=port, token=token, ipv6=ipv6)


# -- routes


def _add_page(app: FastAPI, page: Path) -> None:
    @app.get("/")
    async def index(request: Request) -> Response:
        try:
            html = await asyncio.to_thread(page.read_text, encoding="utf-8")
        except OSError:
            return _html(_NOT_BUILT, status=503)
        return _html(html)


def _add_captures(app: FastAPI, service: Service) -> None:
    @app.get("/api/info")
    async def info() -> Response:
        return _json(encode(service.info()))

    @app.get("/api/captures")
    async def captures(offset: Offset = 0, limit: Limit = 100) -> Response:
        return _json(encode(service.captures(offset, limit)))

    @app.get("/api/captures/{name}")
    async def capture(name: str, request: Request) -> Response:
        return await _maybe_compressed(request, service.retained(name).data)

    @app.get("/api/captures/{name}/{section}")
    async def section(name: str, section: str, request: Request, offset: Offset = 0, limit: Limit = 100) -> Response:
        return await _maybe_compressed(request, service.page(name, section, offset, limit))


def _add_attempts(app: FastAPI, service: Service, body_seconds: float) -> None:
    @app.post("/api/attempts")
    async def start(request: Request) -> Response:
        asked = _parsed(CaptureRequest, await _body(request, body_seconds))
        return _json(encode(service.start(asked, "web")), status=202)

    @app.get("/api/attempts")
    async def attempts(offset: Offset = 0, limit: Limit = 100) -> Response:
        return _json(encode(service.attempts(offset, limit)))

    @app.get("/api/attempts/{name}")
    async def attempt(name: str) -> Response:
        return _json(encode(service.attempt_with_log(name)))

    @app.get("/api/attempts/{name}/log")
    async def log(name: str) -> Response:
        return PlainTextResponse(service.log(name))

    @app.delete("/api/attempts/{name}")
    async def cancel(name: str) -> Response:
        return _json(encode(service.cancel(name)))

    @app.websocket("/api/events")
    async def events(websocket: WebSocket) -> None:
        await stream_events(websocket, service)


# -- requests


async def _body(request: Request, seconds: float) -> bytes:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json" or request.headers.get("content-encoding", "identity") != "identity":
        raise refusal("unsupported_media_type", "a plain JSON body is expected here")
    try:
        return await asyncio.wait_for(_collected(request), seconds)
    except asyncio.TimeoutError as error:
        raise refusal("invalid_request", f"the body did not arrive within {seconds:g} s") from error


async def _collected(request: Request) -> bytes:
    length = request.headers.get("content-length", "0")
    if length.isdecimal() and int(length) > MAX_BODY:
        raise refusal("body_too_large", f"the body has {length} bytes")
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MAX_BODY:
            raise refusal("body_too_large", f"the body has more than {MAX_BODY:,} bytes")
    return bytes(body)


def _parsed(model: type[CaptureRequest], data: bytes) -> CaptureRequest:
    try:
        return parse(model, data)
    except ContractError as error:
        faults = tuple(Fault(path=_path(fault.path), message=bounded(fault.message)) for fault in error.faults[:20])
        first = f"{'/'.join(map(str, faults[0].path)) or 'the body'}: {faults[0].message}"
        raise refusal("invalid_request", first, faults=faults) from error


def _path(steps: tuple[Any, ...]) -> tuple[int | str, ...]:
    return tuple(step if isinstance(step, int) else str(step)[:64] for step in steps[:128])


# -- answers


def _json(body: bytes, status: int = 200) -> Response:
    return Response(body, status, media_type="application/json")


async def _maybe_compressed(request: Request, body: bytes) -> Response:
    response_headers = {"Vary": "Accept-Encoding"}
    if len(body) >= _MIN_GZIP and _accepts_gzip(request.headers.get("accept-encoding", "")):
        body = await asyncio.to_thread(gzip.compress, body, 5, mtime=0)
        response_headers["Content-Encoding"] = "gzip"
    return Response(body, headers=response_headers, media_type="application/json")


def _accepts_gzip(header: str) -> bool:
    for part in header.lower().split(","):
        name, _, weight = part.partition(";")
        if name.strip() in ("gzip", "*"):
            return weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


def _html(text: str, status: int = 200) -> Response:
    nonce = secrets.token_urlsafe(18)
    policy = (
        f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; img-src 'self' data:; "
        "connect-src 'self'; worker-src blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return Response(
        text.replace("__CSP_NONCE__", nonce), status, {"Content-Security-Policy": policy}, "text/html; charset=utf-8"
    )


# -- errors


def _add_errors(app: FastAPI) -> None:
    @app.exception_handler(Refused)
    async def refused(request: Request, error: Refused) -> Response:
        return _problem(error.problem)

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> Response:
        codes: dict[int, ProblemCode] = {404: "not_found", 405: "method_not_allowed"}
        found = problem(codes.get(error.status_code, "invalid_request"), f"{request.method} {request.url.path}"[:200])
        return _problem(found, error.status_code, error.headers)

    @app.exception_handler(Exception)
    async def defect(request: Request, error: Exception) -> Response:
        return _problem(problem("internal_error", f"{type(error).__name__} in the host"))

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        faults = tuple(Fault(path=_path(entry["loc"]), message=bounded(entry["msg"])) for entry in error.errors()[:20])
        found = problem("invalid_request", f"{'/'.join(map(str, faults[0].path))}: {faults[0].message}", faults=faults)
        return _problem(found)


def _problem(found: Problem, status: int | None = None, headers: Any = None) -> Response:
    headers = dict(headers or {})
    if found.code == "body_too_large":
        headers["Connection"] = "close"
    return Response(encode(found), status or STATUS.get(found.code, 400), headers, "application/json")
