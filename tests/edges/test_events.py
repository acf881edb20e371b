"""The WebSocket: state first, every change in order, and a client that does not keep up is dropped."""

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import uvicorn
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from tensorviz.contracts.attempt import CaptureRequest, RunAttempt
from tensorviz.contracts.messages import AttemptEvent
from tensorviz.edges import serving
from tensorviz.edges.web import create_app
from tensorviz.service import Service

from .models import GOOD, write

TOKEN = "t0ken"
WAIT = 30.0


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with Service(write(tmp_path, good=GOOD)) as service:
        yield service


@pytest.fixture
def port(service: Service) -> Iterator[int]:
    with serving.listening(0) as sock:
        number = sock.getsockname()[1]
        server = uvicorn.Server(serving.config(create_app(service, token=TOKEN, port=number)))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]})
        thread.start()
        until(lambda: server.started)
        yield number
        server.should_exit = True
        thread.join(WAIT)
        assert not thread.is_alive()


def listen(port: int) -> ClientConnection:
    return connect(f"ws://127.0.0.1:{port}/api/events", subprotocols=["tensorviz.v1", f"token.{TOKEN}"])  # type: ignore[list-item]


def receive(client: ClientConnection) -> dict[str, object]:
    return json.loads(client.recv(timeout=WAIT))


def until(ready: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT
    while not ready():
        assert time.monotonic() < deadline


def attempt(number: int) -> RunAttempt:
    return RunAttempt(
        id=f"att-{number:016x}",
        origin="web",
        request=CaptureRequest(file="x" * 1000, target="y" * 1000),
        requestDigest="0" * 64,
        planDigest=None,
        stage="running",
        outcome=None,
        problem=None,
        capture=None,
        operations=number,
        started=0,
        ended=None,
    )


def test_a_listener_gets_the_state_and_then_every_change(service: Service, port: int) -> None:
    with listen(port) as client:
        assert client.subprotocol == "tensorviz.v1"
        assert receive(client) == {"kind": "state", "attempts": [], "captures": []}
        started = service.start(CaptureRequest(file="good.py"), "web")
        seen: list[dict[str, object]] = []
        while not seen or seen[-1].get("attempt", {}).get("outcome") is None:  # type: ignore[union-attr, attr-defined]
            seen.append(receive(client))
    stages = [event["attempt"]["stage"] for event in seen if event["kind"] == "attempt"]  # type: ignore[index]
    assert list(dict.fromkeys(stages)) == [stage for stage in ORDER if stage in stages]
    assert {"queued", "importing", "validating", "ended"} <= set(stages)  # short ones may pass between two looks
    assert [event["kind"] for event in seen[-2:]] == ["capture", "attempt"]
    with listen(port) as client:
        state = receive(client)
    assert [item["id"] for item in state["attempts"]] == [started.id]  # type: ignore[union-attr, attr-defined]
    assert len(state["captures"]) == 1  # type: ignore[arg-type]


ORDER = ("queued", "starting", "importing", "preparing", "running", "finishing", "validating", "ended")


def test_a_client_that_left_is_not_written_to(service: Service, port: int) -> None:
    with listen(port) as client:
        receive(client)
        assert len(service._listeners) == 1
    until(lambda: service._listeners == [])


def test_what_a_client_says_is_ignored_and_bounded(service: Service, port: int) -> None:
    with listen(port) as client:
        receive(client)
        client.send("hello")
        client.send(b"\x00")
        client.send("x" * 2**17)
        with pytest.raises(ConnectionClosed) as closed:
            receive(client)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1009  # too big
    until(lambda: service._listeners == [])


def test_a_client_that_does_not_read_is_dropped_and_others_are_served(service: Service, port: int) -> None:
    slow = socket.create_connection(("127.0.0.1", port), WAIT)
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    lines = (
        "GET /api/events HTTP/1.1", f"Host: 127.0.0.1:{port}", "Connection: Upgrade", "Upgrade: websocket",
        "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: eHh4eHh4eHh4eHh4eHh4eA==",
        f"Sec-WebSocket-Protocol: tensorviz.v1, token.{TOKEN}", "", "",
    )  # fmt: skip
    slow.sendall("\r\n".join(lines).encode())
    until(lambda: len(service._listeners) == 1)
    with listen(port) as quick:
        receive(quick)
        until(lambda: len(service._listeners) == 2)
        for number in range(20_000):
            service._publish(AttemptEvent(kind="attempt", attempt=attempt(number)))
            assert receive(quick)["attempt"]["operations"] == number  # type: ignore[index]
            if len(service._listeners) == 1:
                break
        assert len(service._listeners) == 1, "the slow one is gone, and the quick one is not"
    slow.close()
