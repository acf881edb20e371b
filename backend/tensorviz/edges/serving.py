"""Runs the host in the foreground on loopback: its socket, its token, its state file, and a clean end.

The token goes to the state file and the printed address alone: never to a command line, a log or the page.
"""

import contextlib
import html
import json
import os
import secrets
import socket
import stat
import sys
import tempfile
import threading
import webbrowser
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import uvicorn

from tensorviz import __version__
from tensorviz.edges.web import create_app
from tensorviz.errors import refusal
from tensorviz.service import Service

_REDIRECT = """<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={0}"><title>tensorviz</title><a href="{0}">Open tensorviz</a>
"""


@dataclass(frozen=True)
class Address:
    port: int
    token: str

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/#token={self.token}"


def serve(service: Service, port: int, ready: Callable[[Address, Path], None]) -> None:
    """Until Ctrl-C or SIGTERM. ``ready`` is called once connections are accepted, with the folder of private files."""
    with listening(port) as sock, _runtime_folder() as folder:
        address = Address(sock.getsockname()[1], secrets.token_urlsafe(32))
        app = create_app(service, token=address.token, port=address.port)
        with _state_file(folder, address, service.workspace):
            _Server(config(app), lambda: ready(address, folder)).run(sockets=[sock])


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()


def config(app: object) -> uvicorn.Config:
    return uvicorn.Config(
        app,  # type: ignore[arg-type]
        log_config=None,
        log_level="critical",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        lifespan="off",
        ws="websockets-sansio",
        ws_max_size=2**16,
        limit_concurrency=200,
        h11_max_incomplete_event_size=2**16,
        http="h11",
        timeout_keep_alive=30,
        timeout_graceful_shutdown=2,
    )


@contextlib.contextmanager
def listening(port: int) -> Iterator[socket.socket]:
    """A socket on 127.0.0.1; port 0 takes a free one. Raises Refused when the port is taken."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(("127.0.0.1", port))
        yield sock
    except OSError as error:
        detail = f"port {port} of 127.0.0.1 cannot be used: {error.strerror}"
        raise refusal("invalid_request", detail, "choose another one with --port, or 0 for any that is free") from error
    finally:
        sock.close()


def open_browser(address: Address, folder: Path) -> bool:
    """By a private file that sends the browser on, since a command line can be read by everybody. False without one."""
    if sys.platform.startswith("linux") and not any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))):
        return False
    path = folder / f"open-{os.getpid()}.html"
    _write_private(path, _REDIRECT.format(html.escape(address.url)))
    threading.Thread(target=webbrowser.open, args=(path.as_uri(),), daemon=True).start()
    return True


@contextlib.contextmanager
def _runtime_folder() -> Iterator[Path]:
    folder = runtime_folder()
    try:
        yield folder
    finally:
        (folder / f"open-{os.getpid()}.html").unlink(missing_ok=True)


def runtime_folder() -> Path:
    """A folder that only this user can enter. Raises Refused when somebody else made it first."""
    base = os.environ.get("XDG_RUNTIME_DIR")
    folder = Path(base) / "tensorviz" if base else Path(tempfile.gettempdir()) / f"tensorviz-{os.geteuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    facts = folder.lstat()
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.geteuid() or stat.S_IMODE(facts.st_mode) & 0o077:
        hint = f"remove {folder} or set XDG_RUNTIME_DIR to a folder of your own"
        raise refusal("internal_error", f"{folder} is not private to this user", hint)
    return folder


@contextlib.contextmanager
def _state_file(folder: Path, address: Address, workspace: Path) -> Iterator[None]:
    """How another program of this user finds the host."""
    _forget_dead_hosts(folder)
    path = folder / f"host-{os.getpid()}.json"
    state = {
        "address": f"http://127.0.0.1:{address.port}",
        "token": address.token,
        "workspace": str(workspace),
        "pid": os.getpid(),
        "version": __version__,
    }
    _write_private(path, json.dumps(state))
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def _forget_dead_hosts(folder: Path) -> None:
    for path in folder.glob("host-*.json"):
        pid = path.stem.removeprefix("host-")
        if pid.isdecimal() and not psutil.pid_exists(int(pid)):
            path.unlink(missing_ok=True)


def _write_private(path: Path, text: str) -> None:
    path.unlink(missing_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as stream:
        stream.write(text)
