"""The command as a person or a script meets it: exit status, files, what goes where, and no traceback, ever."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tensorviz import __version__
from tensorviz.contracts.validate import parse_capture
from tensorviz.edges import cli, files
from tensorviz.process_tree import MARKER

from .models import BAD, GOOD, LOOP, command, environment, tensorviz, write

# -- capture


def test_a_complete_capture_is_written_beside_and_told_in_four_lines(captures: Path, tmp_path: Path) -> None:
    folder = write(tmp_path, good=GOOD)
    done = tensorviz(folder, "capture", "good.py")
    assert (done.returncode, done.stdout) == (0, "")
    data = (folder / "good.capture.json").read_bytes()
    assert parse_capture(data).status == "complete"
    lines = re.sub(r"in \d+\.\d s", "in T s", re.sub(r"[\d.]+ KiB", "N KiB", done.stderr)).splitlines()
    assert lines == [
        "Net  complete",
        "  3 calls, 5 operations, 10 values, N KiB in T s",
        "  coverage: every event; modules 3 observed",
        "  written to good.capture.json",
    ]
    names = sorted(item.name for item in folder.iterdir() if item.name != "__pycache__")
    assert names == [".temporary", "good.capture.json", "good.py"]


def test_a_failing_model_exits_3_and_names_operation_shapes_module_and_line(tmp_path: Path) -> None:
    done = tensorviz(write(tmp_path, bad=BAD), "capture", "bad.py:Net", "--out", "here.json")
    assert done.returncode == 3
    assert parse_capture((tmp_path / "here.json").read_bytes()).status == "partial"
    line = BAD.split("\n").index("        return self.second(self.first(x).neg())") + 1
    for expected in (
        "run_failed: the program raised an exception",
        "failed: aten.addmm.default raised builtins.RuntimeError",
        "operands: f32[2], f32[3, 8], f32[9, 2]",
        "violated: inner sizes must be equal: mat1.shape[1] is 8, mat2.shape[0] is 9",
        "module:   second (torch.nn.modules.linear.Linear)",
        f"source:   bad.py:{line}",
        "| RuntimeError: mat1 and mat2 shapes cannot be multiplied",
        "written to here.json",
    ):
        assert expected in done.stderr


NO_CAPTURE = {
    "syntax_error": ("def broken(:\n", "mend"),
    "import_failed": ("import no_such_module_here\n", "no_such_module_here"),
    "import_exited": ("raise SystemExit(3)\n", "__main__"),
    "target_not_found": ("x = 1\n", "FUNCTION"),
    "inputs_missing": (GOOD.replace("example_inputs", "nobody_calls_this"), "example_inputs"),
    "worker_failed": ("import os\nos._exit(9)\n", "status 9"),
}


@pytest.mark.parametrize("code", NO_CAPTURE)
def test_without_a_capture_it_exits_4_and_says_what_to_do(code: str, tmp_path: Path) -> None:
    source, hint = NO_CAPTURE[code]
    done = tensorviz(write(tmp_path, model=source), "capture", "model.py")
    assert (done.returncode, done.stdout) == (4, "")
    assert f"[{code}]" in done.stderr
    assert "what to do: " in done.stderr
    assert hint in done.stderr
    assert list(tmp_path.glob("*.json")) == []


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("none.py",), "[file_not_found]"),
        (("notes.txt",), "[file_not_found]"),
        (("good.py", "--inputs", "none.py:f"), "[file_not_found]"),
        (("good.py", "--inputs", "good.py"), "names no function"),
        (("good.py:",), "[invalid_request]"),
        (("good.py", "--python", "/no/python"), "[interpreter_not_found]"),
        (("good.py", "--python", "good.py"), "[interpreter_unusable]"),
        (("good.py", "--timeout", "0"), "timeout: "),
        (("good.py", "--timeout", "nan"), "timeout: "),
        (("good.py", "--max-operations", "-1"), "limits/operations: "),
        (("good.py", "--max-argument-depth", "99"), "limits/argumentDepth: "),
        (("good.py", "--out", "no/such/folder.json"), "cannot be written"),
        (("good.py", "--out", "."), "cannot be written"),
        (("good.py", "--out", "-", "--json"), "choose one"),
        (("good.py", "--mode", "fast"), "invalid choice"),
        (("good.py", "--surprise"), "unrecognized arguments"),
        ((), "FILE.py"),
    ],
)
def test_what_cannot_run_exits_2_and_says_why(
    arguments: tuple[str, ...],
    says: str,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write(tmp_path, good=GOOD)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TENSORVIZ_PYTHON", sys.executable)
    try:
        status = cli.main(["capture", *arguments])
    except SystemExit as left:  # argparse
        status = left.code
    out, err = capfd.readouterr()
    assert (status, out) == (2, "")
    assert says in err
    assert "Traceback" not in err
    assert list(tmp_path.glob("*.json")) == []


def test_an_interpreter_without_torch_is_refused_before_anything_runs(tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True, timeout=60)
    done = tensorviz(write(tmp_path, good=GOOD), "capture", "good.py", "--python", str(bare))
    assert done.returncode == 2
    assert "has no torch" in done.stderr
    assert "--python EXE" in done.stderr


def test_json_has_attempt_summary_and_file_and_nothing_else_is_on_standard_output(tmp_path: Path) -> None:
    done = tensorviz(write(tmp_path, good=GOOD), "capture", "good.py:Net", "--inputs", "good.py:half", "--json")
    said = json.loads(done.stdout)
    assert (said["attempt"]["outcome"], said["problem"], said["file"]) == ("complete", None, "good.capture.json")
    assert said["capture"]["id"] == said["attempt"]["capture"]
    values = parse_capture((tmp_path / "good.capture.json").read_bytes()).values
    assert (1, 4) in {value.shape for value in values}


def test_json_of_a_failure_has_the_problem(tmp_path: Path) -> None:
    done = tensorviz(tmp_path, "capture", "none.py", "--json")
    said = json.loads(done.stdout)
    assert done.returncode == 2
    assert (said["problem"]["code"], said["capture"], said["file"]) == ("file_not_found", None, None)


def test_a_capture_on_standard_output_can_be_shown_from_a_pipe(tmp_path: Path) -> None:
    folder = write(tmp_path, good=GOOD)
    done = tensorviz(folder, "capture", "good.py", "--out", "-", "--mode", "train", "--fake")
    capture = parse_capture(done.stdout.strip().encode())
    assert (capture.execution.mode, capture.execution.fake) == ("train", True)
    assert list(folder.glob("*.json")) == []


def test_a_file_elsewhere_runs_in_its_own_project_and_writes_here(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "models").mkdir(parents=True)
    (project / "pyproject.toml").write_text("")
    write(project, shared="width = 4\n")
    write(project / "models", good="import shared\n" + GOOD)
    here = tmp_path / "here"
    here.mkdir()
    assert tensorviz(here, "capture", "../project/models/good.py").returncode == 0
    capture = parse_capture((here / "good.capture.json").read_bytes())
    assert "models/good.py" in {file.path for file in capture.source.files}


def test_a_budget_that_is_hit_leaves_a_partial_capture_and_names_the_option(tmp_path: Path) -> None:
    done = tensorviz(write(tmp_path, good=GOOD), "capture", "good.py", "--max-operations", "2")
    assert done.returncode == 3
    assert "operation_limit: more operations than the budget; raise it with --max-operations" in done.stderr


def test_a_deadline_leaves_what_there_was(tmp_path: Path) -> None:
    done = tensorviz(write(tmp_path, loop=LOOP), "capture", "loop.py", "--timeout", "8", "--max-operations", "50")
    assert done.returncode == 3
    assert "timed_out: the deadline passed" in done.stderr


def test_what_the_program_prints_cannot_control_the_terminal(tmp_path: Path) -> None:
    evil = "print('\\x1b]0;owned\\x07\\x1b[2J\\u202etxt [bold]x[/bold]')\nraise ValueError('\\x1b[31m')\n"
    done = tensorviz(write(tmp_path, evil=evil), "capture", "evil.py")
    assert done.returncode == 4
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", done.stderr)
    assert r"\x1b]0;owned\x07\x1b[2J\u202etxt [bold]x[/bold]" in done.stderr


# -- interruptions


def start(folder: Path, *arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        command(*arguments),
        cwd=folder,
        env=environment(folder / ".temporary"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def workers_of(process: "subprocess.Popen[str]") -> list[psutil.Process]:
    """The processes below it that carry the mark of an attempt."""
    found = []
    for child in psutil.Process(process.pid).children(recursive=True):
        try:
            if MARKER in child.environ():
                found.append(child)
        except psutil.Error:
            continue
    return found


@pytest.mark.parametrize(("name", "status"), [("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 129)])
def test_an_interrupted_capture_leaves_no_worker_and_no_file(name: str, status: int, tmp_path: Path) -> None:
    process = start(write(tmp_path, loop=LOOP), "capture", "loop.py")
    deadline = time.monotonic() + 30
    while not (workers := workers_of(process)) and time.monotonic() < deadline:
        assert process.poll() is None
    assert workers
    process.send_signal(getattr(signal, name))
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (status, "")
    assert "Traceback" not in err
    assert not any(worker.is_running() for worker in workers)
    assert list((tmp_path / ".temporary").iterdir()) == []
    assert list(tmp_path.glob("*.json")) == []


def test_a_reader_that_leaves_early_is_no_error_to_speak_of(captures: Path) -> None:
    process = start(captures, "show", "good.capture.json")
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert "Traceback" not in process.stderr.read()
    assert process.wait(30) in (0, 1)
    process.stderr.close()


def test_the_status_of_a_capture_stands_when_nobody_reads_about_it(tmp_path: Path) -> None:
    process = start(write(tmp_path, bad=BAD), "capture", "bad.py", "--json")
    for stream in (process.stdout, process.stderr):
        assert stream is not None
        stream.close()
    assert process.wait(60) == 3
    assert (tmp_path / "bad.capture.json").exists()


# -- show and validate


def run(*arguments: str) -> int:
    return cli.main(list(arguments))


def test_show_prints_the_calls_with_shapes_parameters_and_operations(
    captures: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("show", str(captures / "good.capture.json")) == 0
    out = capsys.readouterr().out
    assert out.split("\n\n")[1].splitlines() == [
        "Net  f32[3, 2]  5 ops  58 parameters",
        "  first Linear  f32[3, 8]  2 ops  40 parameters",
        "  second Linear  f32[3, 2]  2 ops  18 parameters",
    ]
    assert "\x1b" not in out


def test_show_goes_no_deeper_than_asked(captures: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("show", str(captures / "good.capture.json"), "--depth", "0") == 0
    assert capsys.readouterr().out.split("\n\n")[1] == "Net  f32[3, 2]  5 ops  58 parameters\n"


def test_show_marks_what_failed(captures: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("show", str(captures / "bad.capture.json")) == 0
    out = capsys.readouterr().out
    assert "second Linear  2 ops  20 parameters  failed" in out
    assert "failed: aten.addmm.default" in out


@pytest.mark.parametrize(("more", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_a_terminal_gets_colours_unless_it_wants_none(more: dict[str, str], coloured: bool, captures: Path) -> None:
    ours, theirs = pty.openpty()
    done = subprocess.run(
        command("show", "good.capture.json"),
        cwd=captures,
        env=environment(captures / ".temporary", TERM="xterm-256color", **more),
        stdout=theirs,
        timeout=60,
        check=True,
    )
    os.close(theirs)
    with open(ours, "rb", buffering=0) as terminal:
        seen = terminal.read(2**16)
    assert done.returncode == 0
    assert b"Net" in seen
    assert (b"\x1b[32m" in seen) is coloured


@pytest.mark.parametrize("asked", ["show", "validate"])
def test_a_file_that_cannot_be_read_exits_2(asked: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(asked, str(tmp_path / "none.json")) == 2
    assert "[file_not_found]" in capsys.readouterr().err
    assert run(asked, str(tmp_path)) == 2


def test_validate_is_silent_on_standard_output_when_all_is_well(
    captures: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("validate", str(captures / "good.capture.json")) == 0
    out, err = capsys.readouterr()
    assert (out, err.endswith(": valid\n")) == ("", True)


def test_validate_prints_a_line_for_every_fault(
    captures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = json.loads((captures / "good.capture.json").read_text())
    document["operations"][1]["target"] = ""
    document["values"][0]["dtype"] = 7
    document["sur\x1bprise"] = 1
    broken = tmp_path / "broken.json"
    broken.write_text(json.dumps(document))
    assert run("validate", str(broken)) == 1
    paths = [line.partition(": ")[0] for line in capsys.readouterr().out.splitlines()]
    assert set(paths) == {"operations/1/target", "values/0/dtype", r"sur\x1bprise"}
    assert run("show", str(broken)) == 2
    assert "tensorviz validate" in capsys.readouterr().err


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"\xff", b"{}", b"[" * 100_000, b" " * (16 * 2**20 + 1)])
def test_anything_else_is_not_valid_and_says_where(
    data: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "file.json"
    path.write_bytes(data)
    assert run("validate", str(path)) == 1
    assert capsys.readouterr().out.strip()


# -- the rest


def test_doctor_tells_interpreter_torch_mechanisms_and_versions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TENSORVIZ_PYTHON", sys.executable)
    assert run("doctor", "--json") == 0
    said = json.loads(capsys.readouterr().out)
    assert said["interpreter"]["executable"] == sys.executable
    assert said["interpreter"]["how"] == "TENSORVIZ_PYTHON"
    assert said["versions"]["tensorviz"] == __version__
    assert said["sandbox"]["applied"] is False
    assert said["sandbox"]["mechanisms"]
    assert run("doctor") == 0
    out = capsys.readouterr().out
    assert f"ok interpreter: {sys.executable} (TENSORVIZ_PYTHON)" in out
    assert "applies none of them yet" in out


def test_doctor_exits_1_when_nothing_can_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("doctor", "--python", "/no/such/python") == 1
    out = capsys.readouterr().out
    assert "-- interpreter: there is no interpreter at /no/such/python" in out
    assert "what to do: " in out


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        run("--version")
    assert (left.value.code, capsys.readouterr().out) == (0, f"tensorviz {__version__}\n")


def test_a_defect_of_ours_is_one_message_and_a_traceback_only_when_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def defect(chosen: object) -> int:
        raise ZeroDivisionError("a defect")

    monkeypatch.setattr(files, "validate", defect)
    monkeypatch.delenv("TENSORVIZ_DEBUG", raising=False)
    assert run("validate", "x") == 70
    err = capsys.readouterr().err
    assert "ZeroDivisionError: a defect" in err
    assert "TENSORVIZ_DEBUG=1" in err
    assert "Traceback" not in err
    monkeypatch.setenv("TENSORVIZ_DEBUG", "1")
    assert run("validate", "x") == 70
    assert "Traceback" in capsys.readouterr().err


def test_help_of_every_command_has_examples_or_says_its_exit_status(capsys: pytest.CaptureFixture[str]) -> None:
    for asked in ([], ["capture"], ["open"], ["serve"], ["show"], ["validate"], ["doctor"]):
        with pytest.raises(SystemExit) as left:
            run(*asked, "--help")
        out = capsys.readouterr().out
        assert left.value.code == 0
        assert re.search(r"^(examples|exit status):", out, re.MULTILINE), asked


def test_a_capture_never_takes_the_place_of_what_it_was_made_from(tmp_path: Path) -> None:
    write(tmp_path, good=GOOD)
    before = (tmp_path / "good.py").read_bytes()
    done = tensorviz(tmp_path, "capture", "good.py", "--out", "good.py")
    assert done.returncode == 2
    assert "is what would be run" in done.stderr
    assert (tmp_path / "good.py").read_bytes() == before


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="there is no full device here")
def test_an_output_that_cannot_be_written_is_said_and_is_no_capture(tmp_path: Path) -> None:
    write(tmp_path, good=GOOD)
    done = tensorviz(tmp_path, "capture", "good.py", "--out", "/dev/full")
    assert done.returncode == 4
    assert "output_not_written" in done.stderr
    assert Path("/dev/full").is_char_device()
