"""Every way a worker can end, on real processes. Whatever it does, nothing of it is left."""

import json
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tensorviz import attempt_files, supervisor
from tensorviz.contracts.attempt import ExecutionPlan, Stage
from tensorviz.contracts.capture import Cancelled, Exited, Killed, Limits, TimedOut
from tensorviz.process_tree import MARKER, end_marked, marked
from tensorviz.supervisor import Log, WorkerRun

FAKE = Path(__file__).with_name("fake_worker.py")
ATTEMPT = f"att-{os.getpid():016x}"
SECONDS = 30.0


def plan_for(behaviour: str, workspace: Path, timeout: float = SECONDS, limits: Limits | None = None) -> ExecutionPlan:
    return ExecutionPlan(
        schemaVersion=1,
        attempt=ATTEMPT,
        workspace=str(workspace),
        roots=(str(workspace),),
        file=str(workspace / "model.py"),
        fileDigest="0" * 64,
        target=behaviour,
        inputs=None,
        python=sys.executable,
        mode="eval",
        fake=False,
        timeout=timeout,
        limits=limits or Limits(),
    )


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No process with the attempt's mark, no file in the temporary folder, no descriptor, no thread."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    descriptors, threads = os.listdir("/proc/self/fd"), threading.active_count()
    yield
    assert [process.pid for process in marked(ATTEMPT)] == []
    assert list(temporary.iterdir()) == []
    assert os.listdir("/proc/self/fd") == descriptors
    assert threading.active_count() == threads


def run(behaviour: str, workspace: Path, timeout: float = SECONDS, **options: object) -> WorkerRun:
    return supervisor.run(plan_for(behaviour, workspace, timeout), worker=FAKE, **options)  # type: ignore[arg-type]


# -- ends


def test_a_run_gives_journal_status_and_output_and_tells_its_progress(tmp_path: Path) -> None:
    told: list[tuple[Stage, int]] = []
    done = run("ok", tmp_path, on_progress=lambda *seen: told.append(seen))
    assert done.ended == Exited(kind="exited", code=0)
    assert done.log == "hello\nto stderr\n"
    assert done.journal.endswith(b'{"finish":{}}\n{"begin":{"id"')
    assert told[0] == ("starting", 0)
    assert told[-1] == ("finishing", 2)


@pytest.mark.parametrize(
    ("behaviour", "ended"),
    [
        ("exits_3", Exited(kind="exited", code=3)),
        ("raises", Exited(kind="exited", code=1)),
        ("killed", Killed(kind="killed", signal="SIGKILL")),
        ("segfault", Killed(kind="killed", signal="SIGSEGV")),
        ("real_time_signal", Killed(kind="killed", signal=f"SIG{signal.SIGRTMIN + 3}")),
    ],
)
def test_how_the_process_ended_is_told(behaviour: str, ended: supervisor.Ended, tmp_path: Path) -> None:
    assert run(behaviour, tmp_path).ended == ended


def test_the_traceback_of_a_crash_is_in_the_log(tmp_path: Path) -> None:
    assert "RuntimeError: on purpose" in run("raises", tmp_path).log


def test_a_worker_that_hangs_is_ended_at_the_deadline(tmp_path: Path) -> None:
    started = time.monotonic()
    done = run("ignores_sigterm", tmp_path, timeout=1.5)
    assert done.ended == TimedOut(kind="timed_out", seconds=1.5)
    assert b'{"begin":{"id":"o0"}}' in done.journal
    assert done.log == "hanging\n"
    assert 1.5 <= time.monotonic() - started < 10


def test_cancelling_ends_a_worker_that_ignores_polite_signals(tmp_path: Path) -> None:
    cancel = threading.Event()
    done = run("ignores_sigterm", tmp_path, cancel=cancel, on_progress=lambda _, count: count and cancel.set())
    assert done.ended == Cancelled(kind="cancelled")
    assert b'{"begin":{"id":"o0"}}' in done.journal


def test_an_interpreter_that_does_not_start_is_an_exit_with_the_reason_in_the_log(tmp_path: Path) -> None:
    plan = plan_for("ok", tmp_path).model_copy(update={"python": str(tmp_path / "no-python")})
    done = supervisor.run(plan, worker=FAKE)
    assert done.ended == Exited(kind="exited", code=1)
    assert "no-python does not start: No such file" in done.log


def test_an_exception_in_the_callers_thread_ends_the_worker(tmp_path: Path) -> None:
    def interrupt(stage: Stage, operations: int) -> None:
        if operations:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run("ignores_sigterm", tmp_path, on_progress=interrupt)


# -- what it started


@pytest.mark.parametrize("behaviour", ["grandchildren", "daemon", "forks_as_it_dies"])
def test_everything_that_the_worker_started_is_ended(behaviour: str, tmp_path: Path) -> None:
    done = run(behaviour, tmp_path, timeout=4)
    assert "did not start" not in done.log
    assert "could not end" not in done.log


def test_a_daemon_that_holds_the_pipe_does_not_hold_us(tmp_path: Path) -> None:
    started = time.monotonic()
    done = run("daemon", tmp_path)
    assert done.ended == Exited(kind="exited", code=0)
    assert done.log == "parent ends\n"
    assert time.monotonic() - started < SECONDS / 2


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="PDEATHSIG is Linux only")
def test_the_worker_dies_with_a_host_that_is_killed(tmp_path: Path) -> None:
    program = f"""
import os, sys
from host.test_supervisor import FAKE, plan_for
from pathlib import Path
from tensorviz import supervisor
supervisor.run(plan_for("ignores_sigterm", Path({str(tmp_path)!r})).model_copy(update={{"attempt": {ATTEMPT!r}}}),
               worker=FAKE, on_progress=lambda stage, count: count and os.write(1, b"running"))
"""
    paths = [str(Path(supervisor.__file__).parent.parent), str(FAKE.parent.parent)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "TMPDIR": str(tmp_path / "temporary")}
    host = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, env=environment)
    assert host.stdout is not None
    with host.stdout:
        assert host.stdout.read(7) == b"running"
        host.kill()
        host.wait(10)
    deadline = time.monotonic() + 10
    while list(marked(ATTEMPT)) and time.monotonic() < deadline:
        pass
    assert list(marked(ATTEMPT)) == []
    make_old(tmp_path / "temporary")
    attempt_files.sweep(end_marked)  # the directory is the one thing a killed host cannot remove; the next one does


# -- what it sees


def test_the_worker_gets_a_private_directory_its_own_session_and_no_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = str(Path(supervisor.__file__).parent.parent)
    monkeypatch.setenv("TENSORVIZ_TOKEN", "s3cret")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([ours, "/theirs"]))
    monkeypatch.setenv("THEIRS", "stays")
    seen = json.loads(run("facts", tmp_path).log)
    environment = seen.pop("environment")
    assert {name for name in environment if name.startswith("TENSORVIZ")} == {MARKER}
    assert environment[MARKER] == ATTEMPT
    assert (environment["PYTHONPATH"], environment["THEIRS"]) == ("/theirs", "stays")
    argv = seen.pop("argv")
    assert argv[:4] == [sys.executable, "-s", "-u", str(FAKE)]
    assert argv[4].endswith("/plan.json")
    assert seen == {
        "modes": ["0o700", "0o600"],
        "cwd": str(tmp_path),
        "core": [0, 0],
        "leads": True,
        "stdin": "/dev/null",
        "descriptors": [0, 1, 2, 3],  # 3 is the listing itself
        "death": signal.SIGKILL,
    }


# -- bounds


def test_a_log_of_megabytes_keeps_head_and_tail_and_says_what_is_missing(tmp_path: Path) -> None:
    done = run("prints_megabytes", tmp_path)
    assert done.ended == Exited(kind="exited", code=0)
    assert done.log.startswith("first line\nxxx")
    assert done.log.endswith("xxx\nlast line\n")
    assert f"[... {64 * 2**16 + 22 - supervisor.LOG_BYTES:,} bytes not kept ...]" in done.log
    assert len(done.log) < supervisor.LOG_BYTES + 100


def test_no_more_of_a_huge_journal_is_read_than_the_plan_allows(tmp_path: Path) -> None:
    plan = plan_for("huge_journal", tmp_path, limits=Limits(bytes=2**20))
    done = supervisor.run(plan, worker=FAKE)
    assert len(done.journal) == 2 * 2**20 + 4 * 2**20


@pytest.mark.parametrize("behaviour", ["journal_is_a_pipe", "journal_is_a_link", "exits_3"])
def test_a_journal_that_is_no_plain_file_is_no_journal(behaviour: str, tmp_path: Path) -> None:
    assert run(behaviour, tmp_path).journal == b""


def test_a_directory_without_permissions_is_removed_too(tmp_path: Path) -> None:
    assert run("locks_its_folder", tmp_path).ended == Exited(kind="exited", code=0)


def test_the_log_of_an_odd_size_is_cut_in_the_middle_only() -> None:
    reading, writing = os.pipe()
    try:
        os.write(writing, b"0123456789abcdef")
        log = Log(reading, size=8)
        assert log.read()
        assert log.text() == "0123\n[... 8 bytes not kept ...]\ncdef"
    finally:
        os.close(reading)
        os.close(writing)


# -- directories that a killed host left


def make_old(folder: Path) -> None:
    for path in folder.iterdir():
        os.utime(path, (0, 0))


def test_only_old_directories_that_nobody_holds_are_swept(tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    with attempt_files.attempt_directory() as held:
        left = temporary / "tensorviz-attempt-left"
        left.mkdir()
        (left / "plan.json").write_text('{"attempt": "att-00000000000000ff"}')
        fresh = temporary / "tensorviz-attempt-fresh"
        fresh.mkdir()
        stranger = temporary / "something-else"
        stranger.mkdir()
        make_old(temporary)
        os.utime(fresh)
        ended: list[str] = []
        attempt_files.sweep(ended.append)
        assert ended == ["att-00000000000000ff"]
        assert sorted(temporary.iterdir()) == sorted([held, fresh, stranger])
    fresh.rmdir()
    stranger.rmdir()


def test_the_directory_is_private_and_goes_away_after_an_exception() -> None:
    seen: list[Path] = []

    def interrupted() -> None:
        with attempt_files.attempt_directory() as folder:
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700
            seen.append(folder)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not seen[0].exists()


def test_what_a_dead_hosts_program_left_running_is_ended_by_its_mark() -> None:
    attempt = "att-00000000000000fe"
    child = subprocess.Popen(["sleep", "60"], env={**os.environ, MARKER: attempt}, start_new_session=True)
    try:
        end_marked("att-00000000000000fd")
        assert child.poll() is None
        end_marked(attempt)
        assert child.wait(10) == -signal.SIGKILL
    finally:
        child.kill()
        child.wait()
