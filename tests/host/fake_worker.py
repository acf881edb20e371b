"""Stands for the worker: standard library only, does what the plan's target says, and writes journal lines."""

import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
import time

with open(sys.argv[1], "rb") as stream:
    PLAN = json.load(stream)
FOLDER = os.path.dirname(sys.argv[1])
JOURNAL = os.path.join(FOLDER, "journal")
FOREVER = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True: time.sleep(60)"


def write(*lines: str, end: bytes = b"") -> None:
    with open(JOURNAL, "ab") as journal:
        journal.write("".join(line + "\n" for line in lines).encode() + end)


def hang() -> None:
    print("hanging", flush=True)
    while True:
        threading.Event().wait(60)


def ok() -> None:
    write('{"stage":"importing"}', '{"stage":"running"}', '{"begin":{"id":"o0"}}', '{"begin":{"id":"o1"}}')
    print("hello")
    print("to stderr", file=sys.stderr)
    write('{"stage":"finishing"}', '{"finish":{}}', end=b'{"begin":{"id"' + b"\0" * 5000)


def facts() -> None:
    """What the process sees of its surroundings, as JSON on its output."""
    import resource

    folder = os.stat(FOLDER)
    plan = os.stat(sys.argv[1])
    seen = {
        "environment": dict(os.environ),
        "modes": [oct(folder.st_mode & 0o777), oct(plan.st_mode & 0o777)],
        "cwd": os.getcwd(),
        "core": resource.getrlimit(resource.RLIMIT_CORE),
        "leads": os.getsid(0) == os.getpid() == os.getpgid(0),
        "stdin": os.readlink("/proc/self/fd/0"),
        "descriptors": sorted(int(name) for name in os.listdir("/proc/self/fd")),
        "death": _death_signal(),
        "argv": sys.orig_argv,
    }
    print(json.dumps(seen))


def _death_signal() -> int:
    number = ctypes.c_int(0)
    ctypes.CDLL(None).prctl(2, ctypes.byref(number), 0, 0, 0)
    return number.value


def raises() -> None:
    write('{"stage":"running"}')
    raise RuntimeError("on purpose")


def ignores_sigterm() -> None:
    for name in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(name, signal.SIG_IGN)
    write('{"stage":"running"}', '{"begin":{"id":"o0"}}')
    hang()


def prints_megabytes() -> None:
    print("first line")
    for _ in range(64):
        sys.stdout.write("x" * 2**16)
    print("\nlast line")


def grandchildren() -> None:
    for _ in range(3):
        code = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {FOREVER!r}]); " + FOREVER
        subprocess.Popen([sys.executable, "-c", code])
    _wait_for_marked(7)
    print("ready", flush=True)
    hang()


def daemon() -> None:
    """Leaves its session, its parent and its process group, and holds the log's pipe open."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execv(sys.executable, [sys.executable, "-c", FOREVER])
        os._exit(0)
    os.wait()
    print("parent ends", flush=True)


def forks_as_it_dies() -> None:
    """Children that make new children all the time."""
    code = "import os, time\nwhile True:\n    if os.fork(): os._exit(0)\n    time.sleep(0.001)"
    for _ in range(3):
        subprocess.Popen([sys.executable, "-c", code])
    hang()


def _wait_for_marked(count: int) -> None:
    mark = f"TENSORVIZ_ATTEMPT={PLAN['attempt']}".encode()
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if sum(_has(pid, mark) for pid in os.listdir("/proc") if pid.isdigit()) >= count:
            return
    sys.exit("the children did not start")


def _has(pid: str, mark: bytes) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as stream:
            return mark in stream.read()
    except OSError:
        return False


def huge_journal() -> None:
    line = '{"begin":{"id":"o0","pad":"' + "x" * 2**16 + '"}}'
    for _ in range(200):
        write(line)


def journal_is_a_pipe() -> None:
    os.mkfifo(JOURNAL)


def journal_is_a_link() -> None:
    os.symlink("/etc/passwd", JOURNAL)


def locks_its_folder() -> None:
    inner = os.path.join(FOLDER, "a", "b")
    os.makedirs(inner)
    with open(os.path.join(inner, "file"), "w") as stream:
        stream.write("x")
    os.chmod(inner, 0)
    os.chmod(os.path.dirname(inner), 0)


BEHAVIOURS = {
    "exits_3": lambda: os._exit(3),
    "killed": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "real_time_signal": lambda: os.kill(os.getpid(), signal.SIGRTMIN + 3),
    "segfault": lambda: ctypes.string_at(0),
}

if __name__ == "__main__":
    name = PLAN["target"]
    (BEHAVIOURS.get(name) or globals()[name])()
