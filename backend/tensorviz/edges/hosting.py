"""`tensorviz open` and `tensorviz serve`: the host in the foreground."""

import argparse
import contextlib
import io
from pathlib import Path

from tensorviz import terminal
from tensorviz.contracts.attempt import CaptureRequest
from tensorviz.contracts.messages import AttemptEvent, CaptureEvent, HostEvent
from tensorviz.edges import options, serving
from tensorviz.edges.lines import Lines
from tensorviz.edges.signals import ending_on_signals
from tensorviz.errors import refusal
from tensorviz.service import Service, workspace_of

_STOPPED = 0


def open_(chosen: argparse.Namespace) -> int:
    here = Path.cwd()
    request = options.capture_request(chosen, here) if chosen.file else None
    workspace = workspace_of(Path(request.file), here) if request else here
    return _host(workspace, chosen.port, request, browser=not chosen.no_browser)


def serve(chosen: argparse.Namespace) -> int:
    workspace = chosen.workspace or Path.cwd()
    if not workspace.is_dir():
        raise refusal("file_not_found", f"{workspace} is not a folder", "name an existing one with --workspace")
    return _host(workspace, chosen.port, None, browser=False)


def _host(workspace: Path, port: int, request: CaptureRequest | None, *, browser: bool) -> int:
    def ready(address: serving.Address, folder: Path) -> None:
        if request is not None:
            service.start(request, "cli")
        opened = browser and serving.open_browser(address, folder)
        print(f"tensorviz: {address.url}", flush=True)
        lines.say(f"  files of {service.workspace}{'; opening the browser' if opened else ''}\n  Ctrl-C ends it\n")

    lines = Lines()
    with contextlib.closing(lines), ending_on_signals(), Service(workspace) as service:
        service.subscribe(lambda event: lines.say(_told(event)))
        try:
            serving.serve(service, port, ready)
        except KeyboardInterrupt:
            lines.say("tensorviz: ended\n")
    return _STOPPED


def _told(event: HostEvent) -> str:
    """A line for every attempt that ended."""
    if isinstance(event, CaptureEvent):
        summary = event.capture
        counts = f"{terminal.counted(summary.operations, 'operation')}, {terminal.size(summary.bytes)}"
        reasons = "".join(f", {reason}" for reason in summary.reasons)
        return f"  {terminal.clean(summary.target)}: {summary.status}{reasons} ({counts})\n"
    text = io.StringIO()
    if isinstance(event, AttemptEvent) and event.attempt.problem is not None:
        terminal.show_problem(terminal.console(text), event.attempt.problem)
    return text.getvalue()
