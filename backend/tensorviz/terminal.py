"""How captures, problems and progress look in a terminal. No text of a capture or a program is trusted to be harmless.

Coloured where the stream is a terminal and NO_COLOR is not set, plain everywhere else.
"""

from collections import Counter
from collections.abc import Iterable
from typing import IO

from rich.console import Console
from rich.text import Text

from tensorviz.contracts.attempt import RunAttempt, Stage
from tensorviz.contracts.capture import (
    CaptureSnapshot,
    Diagnostic,
    Exited,
    Killed,
    Operation,
    Reason,
    ReasonCode,
    Termination,
    TimedOut,
)
from tensorviz.contracts.problem import Problem
from tensorviz.views import failure, outline

REASONS: dict[ReasonCode, str] = {
    "run_failed": "the program raised an exception",
    "data_dependent": "an operation needs values, which fake tensors do not have; run it without --fake",
    "fake_unsupported": "an operation has no rule for fake tensors; run it without --fake",
    "worker_exited": "the process ended by itself before the run did",
    "worker_killed": "the process was ended by a signal",
    "timed_out": "the deadline passed; allow more time with --timeout",
    "cancelled": "the attempt was cancelled",
    "operation_limit": "more operations than the budget; raise it with --max-operations",
    "invocation_limit": "more module calls than the budget; raise it with --max-invocations",
    "value_limit": "more tensor values than the budget; raise it with --max-values",
    "byte_limit": "a larger capture than the budget; raise it with --max-bytes",
    "location_limit": "source locations took a quarter of the byte budget; later places are not told",
    "path_limit": "a module or parameter has more registered paths than are listed",
    "argument_limit": "an argument is deeper, longer or larger than is recorded",
    "unsupported_argument": "an argument holds an object that the recorder does not read",
    "unsupported_tensor": "the metadata of a tensor could not be read",
    "dynamic_state": "a parameter was created during the run",
    "failed_write": "an operation failed while it may have been writing",
    "unobserved_write": "a tensor changed without a recorded operation",
    "escaped_storage": "the memory of a tensor was handed out, as by numpy(), and may have been written there",
    "compiled_region": "compiled code ran, whose kernels the dispatcher does not show",
    "unobserved_process": "work may have run in a process that was started, which was not recorded",
    "unobserved_thread": "work may have run on a thread that was not recorded",
    "unobserved_operation": "work was done on tensors where the dispatcher does not show it, as by tolist()",
    "unobserved_call": "modules may have been called in a way that was not recorded",
    "lazy_state": "a parameter or buffer had no value when the model was entered",
    "instrumentation_error": "the recorder itself failed; the program was not disturbed",
}
"""What every reason means, in a sentence. docs/problems.md documents each."""

STAGES: dict[Stage, str] = {
    "queued": "waiting for another attempt",
    "starting": "starting the interpreter",
    "importing": "importing torch and the file",
    "preparing": "building the model and its inputs",
    "running": "running",
    "finishing": "finishing",
    "validating": "reading the capture",
    "ended": "done",
}
_LOG_LINES = 20
_ENDINGS = ("worker_killed", "worker_exited", "timed_out")
_STYLES = {
    "complete": "bold green",
    "partial": "bold yellow",
    "failed": "bold red",
    "in_flight": "bold yellow",
    "stopped": "dim",
}


def console(stream: IO[str]) -> Console:
    return Console(file=stream, markup=False, highlight=False, emoji=False, soft_wrap=True)


def clean(text: str) -> str:
    """One line in which nothing controls the terminal or reorders its text: such characters become escapes."""
    return "".join(letter if letter.isprintable() else _escape(letter) for letter in text)


def clean_lines(text: str) -> str:
    return "\n".join(clean(line.expandtabs(4)) for line in text.replace("\r\n", "\n").split("\n"))


def size(count: int) -> str:
    return (
        f"{count} bytes"
        if count < 2**10
        else f"{count / 2**10:.1f} KiB"
        if count < 2**20
        else f"{count / 2**20:.1f} MiB"
    )


def counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


# -- a capture


def show_tree(out: Console, capture: CaptureSnapshot, depth: int | None = None) -> None:
    """The module calls with their outputs, parameters and operations."""
    for row in outline.rows(capture):
        if depth is None or row.depth <= depth:
            out.print(_row(row))


def show_head(out: Console, capture: CaptureSnapshot, bytes_: int, seconds: float | None = None) -> None:
    """What was run, how it went, how much was recorded, and what is missing."""
    took = "" if seconds is None else f" in {seconds:.1f} s"
    out.print(Text.assemble((clean(_model(capture)), "bold"), "  ", (capture.status, _STYLES[capture.status])))
    counts = ((capture.invocations, "call"), (capture.operations, "operation"), (capture.values, "value"))
    out.print(f"  {', '.join(counted(len(items), noun) for items, noun in counts)}, {size(bytes_)}{took}")
    out.print(f"  coverage: {_coverage(capture)}")
    for reason in capture.reasons:
        ended = _ended(capture.termination) if reason.code in _ENDINGS else ""
        out.print(Text.assemble("  ", (f"{reason.code}", "yellow"), f": {_reason(reason)}{ended}"))
    _show_failure(out, capture)


def _show_failure(out: Console, capture: CaptureSnapshot) -> None:
    """Where the run ended: an operation with its operands, or an exception of the program's own."""
    operation, raised = failure.operation(capture), failure.ending(capture)
    if operation is not None:
        word = "failed" if operation.status == "failed" else "in flight"
        exception = _exception(capture, operation)
        out.print(Text.assemble("  ", (word, _STYLES[operation.status]), f": {clean(operation.target)}{exception}"))
        operands = [f"{_name(argument)}{shape}" for argument, shape in _operands(capture, operation)]
        out.print(f"    operands: {clean(', '.join(operands)) or 'none'}")
        for sentence in failure.demands(capture, operation):
            out.print(f"    violated: {clean(sentence)}")
        _show_place(out, capture, operation)
    if raised and raised[0].operation is None:
        word = "failed" if operation is None else "then"
        out.print(Text.assemble("  ", (word, _STYLES["failed"]), f": raised {clean(raised[0].exception)}"))
        _show_place(out, capture, raised[0])
    open_calls = [call for call in capture.invocations if call.status == "in_flight"]
    if operation is None and not raised and open_calls:
        out.print(Text.assemble("  ", ("in flight", _STYLES["in_flight"]), ": a module call, between two operations"))
        out.print(f"    module:   {clean(_call_name(capture, open_calls[-1].id))}")


def _show_place(out: Console, capture: CaptureSnapshot, record: Operation | Diagnostic) -> None:
    if record.invocation is not None:
        out.print(f"    module:   {clean(_call_name(capture, record.invocation))}")
    out.print(f"    source:   {clean(outline.place(capture, record.location) or 'unknown')}")


def _row(row: outline.Row) -> Text:
    call = row.invocation
    text = Text("  " * row.depth)
    text.append(clean(row.label) + " " if row.label else "", "bold cyan")
    text.append(clean(row.type), "bold" if row.depth == 0 else "")
    text.append("  " + clean(" ".join(row.outputs)) if row.outputs else "", "green")
    text.append(f"  {counted(row.operations, 'op')}", "dim")
    if call.parameterCount is not None:
        text.append(f"  {counted(call.parameterCount, 'parameter')}", "dim")
    if call.status != "completed":
        text.append(f"  {call.status.replace('_', ' ')}", _STYLES[call.status])
    return text


def _model(capture: CaptureSnapshot) -> str:
    row = next(outline.rows(capture), None)
    target = capture.execution.target
    return target if row is None or row.type == target else f"{target} ({row.type})"


def _coverage(capture: CaptureSnapshot) -> str:
    coverage = capture.coverage
    events = [
        f"{'some' if events.omitted is None else f'{events.omitted:,}'} {name} omitted"
        for name in ("operations", "invocations", "values")
        if (events := getattr(coverage, name)).omitted != 0
    ]
    states = Counter(module.state for module in coverage.modules)
    modules = ", ".join(f"{count:,} {state.replace('_', ' ')}" for state, count in states.most_common())
    return f"{', '.join(events) or 'every event'}{f'; modules {modules}' if modules else ''}"


def _reason(reason: Reason) -> str:
    times = f" ({reason.count:,} times)" if reason.count > 1 else ""
    subject = f", first at {reason.subject}" if reason.subject and reason.count > 1 else ""
    detail = f": {clean(reason.detail)}" if reason.detail else ""
    return f"{REASONS[reason.code]}{times}{subject}{detail}"


def _ended(termination: Termination) -> str:
    """How the worker's process ended, in brackets."""
    if isinstance(termination, Killed):
        return f" ({clean(termination.signal)})"
    if isinstance(termination, Exited):
        return f" (status {termination.code})"
    return f" ({termination.seconds:g} s)" if isinstance(termination, TimedOut) else ""


def _exception(capture: CaptureSnapshot, operation: Operation) -> str:
    if operation.diagnostic is None:
        return ""
    return f" raised {clean(capture.diagnostics[int(operation.diagnostic[1:])].exception)}"


def _operands(capture: CaptureSnapshot, operation: Operation) -> Iterable[tuple[str | None, str]]:
    for argument in operation.args:
        yield from ((None, shape) for shape in outline.shapes(capture, argument))
    for named in operation.kwargs:
        yield from ((named.name, shape) for shape in outline.shapes(capture, named.value))


def _name(argument: str | None) -> str:
    return f"{argument}=" if argument else ""


def _call_name(capture: CaptureSnapshot, call: str) -> str:
    module = capture.modules[int(capture.invocations[int(call[1:])].module[1:])]
    kind = capture.definitions[int(module.definition[1:])].type
    path = module.paths[0].path if module.paths else ""
    return f"{path} ({kind})" if path else kind


# -- an attempt


def show_problem(out: Console, problem: Problem) -> None:
    out.print(Text.assemble(("tensorviz: ", "bold red"), (clean(problem.title), "bold"), f" [{problem.code}]"))
    out.print(f"  {clean_lines(problem.detail)}")
    for fault in problem.faults[1:]:  # the detail has the first
        out.print(f"  at {clean('/'.join(map(str, fault.path)))}: {clean(fault.message)}")
    if problem.hint:
        out.print(Text.assemble("  ", ("what to do: ", "bold"), clean(problem.hint)))


def show_log(out: Console, log: str) -> None:
    """The last lines that the program printed."""
    lines = clean_lines(log.rstrip()).split("\n")
    if lines == [""]:
        return
    skipped = len(lines) - _LOG_LINES
    out.print(Text(f"  the program printed{f' ({skipped:,} lines before)' if skipped > 0 else ''}:", "dim"))
    for line in lines[-_LOG_LINES:]:
        out.print(Text(f"  | {line}", "dim"))


def progress(attempt: RunAttempt) -> str:
    doing = STAGES[attempt.stage]
    return f"{doing} ({counted(attempt.operations, 'operation')})" if attempt.operations else doing


def _escape(letter: str) -> str:
    code = ord(letter)
    return f"\\x{code:02x}" if code < 2**8 else f"\\u{code:04x}" if code < 2**16 else f"\\U{code:08x}"
