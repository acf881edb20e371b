"""`tensorviz open` with a browser that is a script of ours."""

import json
import os
import re
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

from .models import GOOD, command, environment, write

BROWSER = """import json, os, pathlib, sys
page = pathlib.Path(sys.argv[1].removeprefix("file://"))
seen = {"argv": sys.argv[1:], "mode": page.stat().st_mode, "text": page.read_text()}
pathlib.Path("seen.part").write_text(json.dumps(seen))
os.replace("seen.part", "seen.json")
"""


def opened(folder: Path, *arguments: str, **more: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        command("open", *arguments),
        cwd=folder,
        env=environment(folder / ".temporary", **more),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: "subprocess.Popen[str]", folder: Path) -> str:
    """What it wrote to standard error after Ctrl-C. Nothing private is left."""
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 0
    assert list((folder / ".temporary" / "tensorviz").iterdir()) == []
    assert "Traceback" not in err
    return err


def test_open_captures_the_file_and_sends_the_browser_on_without_telling_the_token_to_a_command_line(
    tmp_path: Path,
) -> None:
    folder = write(tmp_path, good=GOOD, browser=BROWSER)
    process = opened(folder, "good.py", BROWSER=f"{sys.executable} {folder / 'browser.py'} %s")
    assert process.stdout is not None
    address = process.stdout.readline().strip().removeprefix("tensorviz: ")
    assert process.stderr is not None
    told = [process.stderr.readline() for _ in range(3)]
    deadline = time.monotonic() + 30
    while not (folder / "seen.json").exists():
        assert time.monotonic() < deadline
    seen = json.loads((folder / "seen.json").read_text())
    token = address.partition("#token=")[2]
    assert len(token) >= 40
    assert token not in str(seen["argv"])
    assert stat.S_IMODE(seen["mode"]) == 0o600
    assert f'content="0; url={address}"' in seen["text"]
    assert token not in "".join(told) + ended(process, folder)
    assert "opening the browser" in told[0]
    assert re.fullmatch(r"  Net: complete \(5 operations, [\d.]+ KiB\)\n", told[2])


def test_open_without_a_file_or_a_browser_prints_the_address(tmp_path: Path) -> None:
    process = opened(tmp_path, "--no-browser", BROWSER="/no/such/browser")
    assert process.stdout is not None
    assert re.fullmatch(r"tensorviz: http://127\.0\.0\.1:\d+/#token=\S+\n", process.stdout.readline())
    assert ended(process, tmp_path).splitlines() == [
        f"  files of {os.path.realpath(tmp_path)}",
        "  Ctrl-C ends it",
        "tensorviz: ended",
    ]


def test_open_of_a_file_that_cannot_run_says_so_and_stays(tmp_path: Path) -> None:
    process = opened(write(tmp_path, good="x = 1\n"), "none.py", "--no-browser")
    assert process.stdout is not None
    process.stdout.readline()
    assert process.stderr is not None
    told = "".join(process.stderr.readline() for _ in range(5))
    assert "[file_not_found]" in told
    assert "what to do: " in told
    assert process.poll() is None
    ended(process, tmp_path)
