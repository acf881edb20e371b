"""Ingest in a process of its own: reading a large capture holds the interpreter for a second, and the host must answer.

The process is ours, imports no torch, and is started again when it dies. It reads frames on its standard input, and
ends when that closes: also when the host is killed. A frame is a JSON line that tells the sizes of the bytes after it.
"""

import contextlib
import os
import subprocess
import sys
import threading
from array import array
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import orjson
from pydantic import TypeAdapter

from tensorviz.contracts.attempt import CaptureSummary, ExecutionPlan
from tensorviz.contracts.base import encode
from tensorviz.contracts.problem import Problem
from tensorviz.errors import Refused, problem, refusal
from tensorviz.ingest import ingest
from tensorviz.ledger import Retained, index
from tensorviz.supervisor import Ended, WorkerRun

DEADLINE = 120.0
_BOOT = "import sys; sys.path[0:1] = []; sys.path.append(sys.argv[1]); from tensorviz.reading import serve; serve()"
_ENDED: TypeAdapter[Ended] = TypeAdapter(Ended)


@dataclass
class Reader:
    """``deadline`` bounds one reading; a process that takes longer is killed and the capture refused."""

    deadline: float = DEADLINE

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._closed = False

    def start(self) -> None:
        """Gets it going ahead of the first use. Importing takes a moment."""
        with self._lock:
            self._running()

    def read(self, plan: ExecutionPlan, run: WorkerRun) -> Retained:
        """Raises Refused."""
        header = {
            "plan": plan.model_dump(mode="json"),
            "ended": run.ended.model_dump(mode="json"),
        }
        with self._lock:
            process = self._running()
            watchdog = threading.Timer(self.deadline, process.kill)
            watchdog.start()
            try:
                _write(process.stdin, header, run.journal)
                answer, parts = _read(process.stdout)
            except (OSError, EOFError, ValueError) as error:
                self._stop()
                raise refusal("capture_rejected", "the process that reads captures ended while reading it") from error
            finally:
                watchdog.cancel()
                watchdog.join()
        return _result(answer, parts)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._stop()

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def _running(self) -> subprocess.Popen[bytes]:
        if self._closed:
            raise refusal("cancelled", "the host is ending")
        if self._process is not None and self._process.poll() is not None:
            self._stop()
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _BOOT, str(Path(__file__).resolve().parent.parent)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=None if os.environ.get("TENSORVIZ_DEBUG") else subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C in a terminal is for the host, which then closes us
            )
        return self._process

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                with contextlib.suppress(OSError):  # what it had not read yet
                    stream.close()  # type: ignore[union-attr]


def _result(answer: dict[str, Any], parts: list[bytes]) -> Retained:
    if "problem" in answer:
        raise Refused(Problem.model_validate_json(orjson.dumps(answer["problem"])))
    sections: dict[str, array[int]] = {}
    for name, packed in zip(answer["sections"], parts[1:], strict=True):
        sections[name] = array("Q")
        sections[name].frombytes(packed)
    return Retained(parts[0], CaptureSummary.model_validate_json(orjson.dumps(answer["summary"])), sections)


# -- in the process


def serve() -> None:
    """Answers until the input ends. Nothing but frames may reach the output."""
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    while True:
        try:
            header, parts = _read(requests)
        except EOFError:
            return
        try:
            answer, *body = _answer(header, parts[0])
            _write(answers, answer, *body)
        except BrokenPipeError:
            return


def _answer(header: dict[str, Any], journal: bytes) -> tuple[Any, ...]:
    try:
        plan = ExecutionPlan.model_validate_json(orjson.dumps(header["plan"]))
        found = ingest(plan, WorkerRun(journal, _ENDED.validate_python(header["ended"]), ""))
        sections = index(found.data, orjson.loads(found.data), orjson.dumps)
        summary = orjson.loads(encode(found.summary))
        return ({"summary": summary, "sections": list(sections)}, found.data, *(s.tobytes() for s in sections.values()))
    except Refused as refused:
        return ({"problem": orjson.loads(encode(refused.problem))},)
    except Exception as error:
        found = problem("internal_error", f"reading the capture failed: {type(error).__name__}")
        return ({"problem": orjson.loads(encode(found))},)


# -- frames


def _write(stream: IO[bytes] | None, header: dict[str, Any], *parts: bytes) -> None:
    assert stream is not None
    stream.write(orjson.dumps({**header, "sizes": [len(part) for part in parts]}) + b"\n")
    for part in parts:
        stream.write(part)
    stream.flush()


def _read(stream: IO[bytes] | None) -> tuple[dict[str, Any], list[bytes]]:
    assert stream is not None
    line = stream.readline()
    if not line.endswith(b"\n"):
        raise EOFError
    header = orjson.loads(line)
    return header, [_exactly(stream, size) for size in header["sizes"]]


def _exactly(stream: IO[bytes], size: int) -> bytes:
    data = stream.read(size)
    if len(data) != size:
        raise EOFError
    return data
