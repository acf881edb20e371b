"""A real host, started by its command, and requests whose bytes are exactly ours."""

import base64
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BACKEND = Path(__file__).resolve().parents[2] / "backend"
JSON = "Content-Type: application/json"
UPGRADE = (
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: " + base64.b64encode(b"x" * 16).decode(),
)


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes
    raw: bytes

    @property
    def code(self) -> str | None:
        """The code of the problem in the body, which must be a whole Problem."""
        found = json.loads(self.body)
        assert set(found) == {"code", "title", "detail", "hint", "faults"}, found
        assert self.headers["content-type"] == "application/json"
        return found["code"]

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Host:
    process: "subprocess.Popen[str]"
    port: int
    token: str
    workspace: Path
    runtime: Path

    @property
    def name(self) -> str:
        return f"Host: 127.0.0.1:{self.port}"

    @property
    def bearer(self) -> str:
        return f"Authorization: Bearer {self.token}"

    def ask(self, method: str, path: str, *headers: str, body: bytes = b"", length: bool = True) -> Answer:
        """Sends these headers and no others, except Content-Length for a body and Connection: close."""
        lines = [f"{method} {path} HTTP/1.1", *headers]
        if body and length:
            lines.append(f"Content-Length: {len(body)}")
        if not any(line.startswith("Connection:") for line in lines):
            lines.append("Connection: close")
        return self.send("\r\n".join([*lines, "", ""]).encode("latin-1") + body)

    def send(self, data: bytes, seconds: float = 10.0) -> Answer:
        with socket.create_connection(("127.0.0.1", self.port), seconds) as connection:
            with suppress(BrokenPipeError, ConnectionResetError):  # it had heard enough; the answer is there
                connection.sendall(data)
            return read_answer(connection)

    def get(self, path: str) -> Any:
        return self.ask("GET", path, self.name, self.bearer).json()

    def wait_for(self, path: str, ready: Callable[[Any], bool], seconds: float = 30.0) -> Any:
        """What the path gives as soon as it is ready."""
        deadline = time.monotonic() + seconds
        while not ready(found := self.get(path)):
            assert time.monotonic() < deadline, found
        return found

    def start(self, request: dict[str, Any]) -> Answer:
        return self.ask("POST", "/api/attempts", self.name, self.bearer, JSON, body=json.dumps(request).encode())


def read_answer(connection: socket.socket) -> Answer:
    """The head, and as much of a body as it announces."""
    raw = b""
    while b"\r\n\r\n" not in raw and (part := connection.recv(2**16)):
        raw += part
    head, _, body = raw.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    while len(body) < int(headers.get("content-length", 0)) and (part := connection.recv(2**16)):
        body += part
    return Answer(int(first.split()[1]) if first else 0, headers, body, raw + body)


@contextmanager
def running(workspace: Path, runtime: Path, *arguments: str) -> Iterator[Host]:
    runtime.mkdir(mode=0o700, exist_ok=True)
    command = [sys.executable, "-m", "tensorviz", "serve", "--workspace", str(workspace), *arguments]
    environment = os.environ | {
        "PYTHONPATH": str(BACKEND),
        "XDG_RUNTIME_DIR": str(runtime),
        "TENSORVIZ_PYTHON": sys.executable,
    }
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=workspace
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        match = re.fullmatch(r"tensorviz: http://127\.0\.0\.1:(\d+)/#token=(\S+)\n", line)
        assert match, (line, process.stderr and process.stderr.read())
        yield Host(process, int(match[1]), match[2], workspace, runtime)
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.communicate(timeout=20)
        finally:
            process.kill()
