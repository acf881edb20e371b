"""What stands before every request and every WebSocket, and what every answer carries. Pure ASGI, no framework.

    bytes -> Host -> Origin -> token -> the application -> headers of the answer

Everything is refused unless it is allowed here: only the page itself needs no token, because it holds no secret.
"""

import hmac
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from tensorviz.contracts.base import encode
from tensorviz.contracts.problem import Problem, ProblemCode
from tensorviz.errors import problem

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

PROTOCOL = "tensorviz.v1"
STATUS: dict[ProblemCode, int] = {
    "invalid_request": 422,
    "unauthorized": 401,
    "forbidden_host": 421,
    "forbidden_origin": 403,
    "not_found": 404,
    "method_not_allowed": 405,
    "unsupported_media_type": 415,
    "body_too_large": 413,
    "busy": 429,
    "internal_error": 500,
}
_PUBLIC = {("GET", "/")}
_ONCE = (b"host", b"origin", b"authorization", b"sec-websocket-protocol", b"content-type", b"content-length")
_EVERY_ANSWER = (
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
)
_NO_CONTENT = b"default-src 'none'; frame-ancestors 'none'"
_log = logging.getLogger("tensorviz")


class Guard:
    def __init__(self, app: App, *, port: int, token: str, ipv6: bool = False) -> None:
        names = ["127.0.0.1", "localhost", *(["[::1]"] if ipv6 else [])]
        self._app = app
        self._hosts = {f"{name}:{port}".encode() for name in names}
        self._origins = {b"http://" + host for host in self._hosts}
        self._token = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        answer = _Answer(send)
        refused = self._judge(scope)
        if refused is not None:
            await refuse(scope, receive, answer, refused)
            return
        try:
            await self._app(scope, receive, answer)
        except Exception as error:
            _log.debug("%s %s", scope.get("method", "WS"), scope["path"], exc_info=True)
            if not answer.started:
                await refuse(scope, receive, answer, problem("internal_error", f"{type(error).__name__} in the host"))

    def _judge(self, scope: Scope) -> Problem | None:
        headers, repeated = _headers(scope)
        if repeated & {b"host"} or headers.get(b"host") not in self._hosts:
            return problem("forbidden_host", "the Host header does not name this host")
        if repeated & {b"origin"} or headers.get(b"origin", min(self._origins)) not in self._origins:
            return problem("forbidden_origin", "the Origin header names another site")
        if repeated:
            names = ", ".join(sorted(name.decode() for name in repeated))
            return problem("invalid_request", f"these headers are there twice: {names}")
        if (scope.get("method"), scope["path"]) in _PUBLIC:
            return None
        given = headers.get(b"authorization", b"") if scope["type"] == "http" else _websocket_token(headers)
        if not self._is_token(given):
            return problem("unauthorized", "there is no valid bearer token in the Authorization header")
        return None

    def _is_token(self, authorization: bytes) -> bool:
        scheme, _, token = authorization.partition(b" ")
        return scheme.lower() == b"bearer" and hmac.compare_digest(token, self._token)


def _headers(scope: Scope) -> tuple[dict[bytes, bytes], set[bytes]]:
    headers: dict[bytes, bytes] = {}
    repeated: set[bytes] = set()
    for name, value in scope["headers"]:
        if name in headers and name in _ONCE:
            repeated.add(name)
        headers[name] = value
    return headers, repeated


def _websocket_token(headers: dict[bytes, bytes]) -> bytes:
    """A browser cannot set headers here, so the token may come as a subprotocol beside ours."""
    protocols = [part.strip() for part in headers.get(b"sec-websocket-protocol", b"").split(b",")]
    tokens = [part.removeprefix(b"token.") for part in protocols if part.startswith(b"token.")]
    if PROTOCOL.encode() not in protocols:
        return b""
    return b"Bearer " + tokens[0] if len(tokens) == 1 else headers.get(b"authorization", b"") if not tokens else b""


async def refuse(scope: Scope, receive: Receive, send: Send, found: Problem) -> None:
    """One Problem as JSON, whatever was asked. A refused WebSocket is answered with it too, where the server can."""
    kind = "http.response"
    if scope["type"] == "websocket":
        await receive()
        if "websocket.http.response" not in scope.get("extensions", {}):
            await send({"type": "websocket.close", "code": 1008})
            return
        kind = "websocket.http.response"
    body = encode(found)
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if found.code == "unauthorized":
        headers.append((b"www-authenticate", b'Bearer realm="tensorviz"'))
    await send({"type": f"{kind}.start", "status": STATUS.get(found.code, 400), "headers": headers})
    await send({"type": f"{kind}.body", "body": body})


class _Answer:
    """``send`` that adds the headers which every answer has, and knows whether one has begun."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.started = False

    async def __call__(self, message: Message) -> None:
        if message["type"] in ("http.response.start", "websocket.http.response.start"):
            given = list(message.get("headers", ()))
            names = {name.lower() for name, _ in given}
            given += [(name, value) for name, value in _EVERY_ANSWER if name not in names]
            if b"content-security-policy" not in names:
                given.append((b"content-security-policy", _NO_CONTENT))
            message = {**message, "headers": given}
        self.started = self.started or message["type"] != "websocket.close"
        await self._send(message)
