"""`tensorviz capture`: one attempt without a host."""

import argparse
import errno
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import orjson
from rich.console import Console

from tensorviz import terminal
from tensorviz.contracts.attempt import InputFunction, RunAttempt
from tensorviz.contracts.base import encode
from tensorviz.contracts.messages import AttemptEvent, HostEvent
from tensorviz.edges import options
from tensorviz.edges.signals import ending_on_signals, silence
from tensorviz.errors import Refused, refusal
from tensorviz.ledger import Retained
from tensorviz.output import not_writable, write_whole
from tensorviz.service import Service, read_capture, workspace_of

COMPLETE, REFUSED, PARTIAL, NO_CAPTURE = 0, 2, 3, 4


def capture(chosen: argparse.Namespace) -> int:
    here = Path.cwd()
    request = options.capture_request(chosen, here)
    out = _destination(chosen, Path(request.file), request.inputs)
    started = time.monotonic()
    with ending_on_signals(), Service(workspace_of(Path(request.file), here)) as service:
        with _progress(service, terminal.console(sys.stderr)):
            attempt = service.attempt_with_log(service.capture(request).id)
        found = service.retained(attempt.capture) if attempt.capture else None
    try:
        if found is not None:
            _write(out, found.data)
    except Refused as refused:
        terminal.show_problem(terminal.console(sys.stderr), refused.problem)
        return NO_CAPTURE
    try:
        _report(attempt, found, out, time.monotonic() - started, chosen.json)
    except BrokenPipeError:  # the capture is written; nobody wants to hear more
        silence()
    return _status(attempt, found)


def _status(attempt: RunAttempt, found: Retained | None) -> int:
    if found is None:
        return REFUSED if attempt.outcome == "refused" else NO_CAPTURE
    return COMPLETE if found.summary.status == "complete" else PARTIAL


# -- output


def _destination(chosen: argparse.Namespace, file: Path, inputs: InputFunction | None) -> Path | None:
    """None is standard output. Refuses early what could not be written late."""
    if chosen.out == "-":
        if chosen.json:
            raise refusal("invalid_request", "--out - and --json would both write to standard output", "choose one")
        return None
    out = Path(chosen.out or f"{file.stem}.capture.json")
    if out.is_dir() or not os.access(out.absolute().parent, os.W_OK | os.X_OK):
        hint = "choose another file with --out, or - for standard output"
        raise refusal("invalid_request", f"{out} cannot be written", hint)
    if out.resolve() in (file.resolve(), Path(inputs.file).resolve() if inputs else None):
        raise refusal("invalid_request", f"{out} is what would be run", "choose another file with --out")
    return out


def _write(out: Path | None, data: bytes) -> None:
    if out is not None:
        write_whole(out, data)
        return
    try:
        sys.stdout.buffer.write(data + b"\n")
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise
    except (OSError, AttributeError) as error:  # a standard output that is closed is None
        silence(1)
        cause = error if isinstance(error, OSError) else OSError(errno.EBADF, "it is closed")
        raise not_writable("standard output", cause) from error


def _report(attempt: RunAttempt, found: Retained | None, out: Path | None, seconds: float, as_json: bool) -> None:
    console = terminal.console(sys.stderr)
    if as_json:
        print(_json(attempt, found, out))
    if found is not None:
        snapshot = read_capture(found.data)
        terminal.show_head(console, snapshot, len(found.data), seconds)
        if snapshot.termination.kind != "returned":
            terminal.show_log(console, attempt.log or "")
        console.print(f"  written to {terminal.clean(str(out)) if out else 'standard output'}")
    elif attempt.problem is not None:
        terminal.show_problem(console, attempt.problem)
        terminal.show_log(console, attempt.log or "")


def _json(attempt: RunAttempt, found: Retained | None, out: Path | None) -> str:
    document = {
        "attempt": orjson.loads(encode(attempt)),
        "capture": orjson.loads(encode(found.summary)) if found else None,
        "problem": orjson.loads(encode(attempt.problem)) if attempt.problem else None,
        "file": str(out) if found else None,
    }
    return orjson.dumps(document, option=orjson.OPT_INDENT_2).decode()


@contextmanager
def _progress(service: Service, console: Console) -> Iterator[None]:
    if not console.is_terminal:
        yield
        return
    with console.status("starting") as status:

        def show(event: HostEvent) -> None:
            if isinstance(event, AttemptEvent):
                status.update(terminal.progress(event.attempt))

        _, stop = service.subscribe(show)
        try:
            yield
        finally:
            stop()
