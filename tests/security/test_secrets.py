"""The token is in a private file and in the printed address, and nowhere else. Nothing of a host is left behind."""

import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from .hosting import BACKEND, Host, running


def test_the_state_file_is_private_and_says_where_the_host_is(host: Host) -> None:
    folder = host.runtime / "tensorviz"
    (file,) = folder.iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    state = json.loads(file.read_text())
    assert state.pop("version")
    assert state == {
        "address": f"http://127.0.0.1:{host.port}",
        "token": host.token,
        "workspace": str(host.workspace),
        "pid": host.process.pid,
    }


def test_the_token_is_in_no_command_line_and_no_environment(host: Host) -> None:
    host.start({"file": "none.py"})
    process = psutil.Process(host.process.pid)
    for each in (process, *process.children(recursive=True)):
        assert host.token not in " ".join(each.cmdline())
        assert host.token not in str(each.environ())


def test_only_loopback_is_listened_on(host: Host) -> None:
    listening = [
        connection.laddr
        for connection in psutil.Process(host.process.pid).net_connections()
        if connection.status == psutil.CONN_LISTEN
    ]
    assert [(address.ip, address.port) for address in listening] == [("127.0.0.1", host.port)]


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_host_that_is_ended_leaves_no_file_no_process_and_no_token_in_its_output(name: str, tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "forever.py").write_text("import time\nwhile True: time.sleep(60)\n")
    with running(workspace, tmp_path / "runtime") as host:
        attempt = host.start({"file": "forever.py"}).json()["id"]
        host.wait_for(f"/api/attempts/{attempt}", lambda found: found["stage"] == "importing")
        host.ask("GET", f"/nothing?token={host.token}", host.name)
        children = psutil.Process(host.process.pid).children(recursive=True)
        assert len(children) >= 2  # the worker, and the process that reads captures
        host.process.send_signal(getattr(signal, name))
        out, err = host.process.communicate(timeout=20)
        assert host.process.returncode == (0 if name == "SIGINT" else 128 + getattr(signal, name))
        assert host.token not in out + err
        assert "Traceback" not in err
    assert not any(process.is_running() for process in children)
    assert list((tmp_path / "runtime" / "tensorviz").iterdir()) == []


def test_a_port_that_is_taken_is_a_clear_refusal(host: Host, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tensorviz", "serve", "--port", str(host.port)]
    environment = os.environ | {"PYTHONPATH": str(BACKEND), "XDG_RUNTIME_DIR": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, env=environment, check=False)
    assert done.returncode == 2
    assert f"port {host.port} of 127.0.0.1 cannot be used" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_folder_that_others_can_enter_is_not_used_for_secrets(tmp_path: Path) -> None:
    (tmp_path / "tensorviz").mkdir(mode=0o755)
    environment = os.environ | {"PYTHONPATH": str(BACKEND), "XDG_RUNTIME_DIR": str(tmp_path)}
    command = [sys.executable, "-m", "tensorviz", "serve"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, env=environment, check=False)
    assert done.returncode == 2
    assert "is not private to this user" in done.stderr
    assert list((tmp_path / "tensorviz").iterdir()) == []
