"""The commands and options, and how they become a request. docs/cli.md documents each; a test compares."""

import argparse
import os
import re
from pathlib import Path

import orjson

from tensorviz import __version__
from tensorviz.contracts.attempt import CaptureRequest
from tensorviz.contracts.base import MAX_SAFE
from tensorviz.contracts.capture import Limits
from tensorviz.contracts.problem import Fault
from tensorviz.contracts.validate import ContractError, parse
from tensorviz.errors import bounded, refusal

_TARGET = re.compile(r"(?P<file>.+?\.pyw?)(?::(?P<name>[^:/\\]*))?", re.DOTALL)
_TEXT = argparse.RawDescriptionHelpFormatter

_MAIN = """examples:
  tensorviz capture model.py            run the model in model.py once and write model.capture.json
  tensorviz open model.py               the same, and look at it in the browser
  tensorviz show model.capture.json     the module calls with their shapes, here in the terminal
  tensorviz doctor                      which Python and torch would be used, and what this machine offers

tensorviz COMMAND --help has examples for each command."""

_CAPTURE = """examples:
  tensorviz capture model.py                            the one model that the file is about
  tensorviz capture model.py:Net                        this class, function or module of the file
  tensorviz capture model.py:Net --inputs data.py:batch with what batch() in data.py returns
  tensorviz capture train.py:__main__                   the whole script, as python train.py would run it
  tensorviz capture big.py --fake                       shapes only: no memory for values
  tensorviz capture model.py --out - | jq .status       the capture on standard output

inputs: a function that returns the arguments, or (args, kwargs). Without --inputs: example_inputs or get_inputs in
the file, example_input_array, example_inputs or dummy_inputs of the model.

exit status: 0 complete, 3 partial capture written, 4 no capture, 2 refused before anything ran, 130 interrupted."""

_OPEN = """examples:
  tensorviz open                      the page alone; start captures there
  tensorviz open model.py             capture model.py, and show it
  tensorviz open model.py --no-browser
                                      only print the address

The address has a token in it: whoever has it can run files of the workspace. Ctrl-C ends the host and its workers."""

_SERVE = """examples:
  tensorviz serve                     a host for the files of this folder, on a free port
  tensorviz serve --workspace ~/work --port 8765

The address with its token is printed, and is in a private file that only you can read. Ctrl-C ends the host."""

_SHOW = """examples:
  tensorviz show model.capture.json
  tensorviz show model.capture.json --depth 2
  tensorviz capture model.py --out - | tensorviz show -"""

_VALIDATE = """Every fault is a line: the path in the document, then what is wrong there.

exit status: 0 valid, 1 not valid, 2 the file cannot be read."""

_DOCTOR = """examples:
  tensorviz doctor
  tensorviz doctor --python ~/env/bin/python --json

The first usable interpreter is taken: --python, TENSORVIZ_PYTHON, .venv or venv of the folder, the active environment,
the one that runs tensorviz, python3 or python on PATH.

exit status: 0 when captures can run, 1 when no interpreter is usable."""


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        "tensorviz", description="See what a PyTorch model really executed.", epilog=_MAIN, formatter_class=_TEXT
    )
    top.add_argument("--version", action="version", version=f"tensorviz {__version__}")
    commands = top.add_subparsers(title="commands", dest="command", metavar="COMMAND", required=True)
    capture = _command(commands, "capture", "run a file once and write what it executed", _CAPTURE)
    capture.add_argument("file", metavar="FILE.py[:TARGET]")
    _add_run_options(capture)
    capture.add_argument("--out", metavar="FILE.json", help="where to write; - is standard output (NAME.capture.json)")
    capture.add_argument("--json", action="store_true", help="print attempt, summary and problem as JSON")
    open_ = _command(commands, "open", "start the host and look at captures in the browser", _OPEN)
    open_.add_argument("file", metavar="FILE.py[:TARGET]", nargs="?")
    _add_run_options(open_)
    _add_port(open_)
    open_.add_argument("--no-browser", action="store_true", help="print the address and open nothing")
    serve = _command(commands, "serve", "start the host alone, for editors and other programs", _SERVE)
    serve.add_argument("--workspace", metavar="DIR", type=Path, help="the folder whose files may be run (this one)")
    _add_port(serve)
    show = _command(commands, "show", "print the module calls of a capture with their shapes", _SHOW)
    show.add_argument("file", metavar="FILE.json", help="a capture; - is standard input")
    show.add_argument("--depth", type=int, metavar="N", help="no calls deeper than N; 0 is the model alone")
    validate = _command(commands, "validate", "check a capture against the contract", _VALIDATE)
    validate.add_argument("file", metavar="FILE.json", help="a capture; - is standard input")
    doctor = _command(commands, "doctor", "say which interpreter is used and what this machine offers", _DOCTOR)
    doctor.add_argument("--python", metavar="EXE", help="ask about this interpreter")
    doctor.add_argument("--json", action="store_true", help="print it as JSON")
    return top


def capture_request(chosen: argparse.Namespace, here: Path) -> CaptureRequest:
    """Raises Refused(invalid_request). Paths of a command line are relative to the current folder."""
    file, target = _file_and_name(chosen.file)
    fields = {
        "file": os.path.join(here, file),
        "target": target,
        "inputs": _inputs(chosen.inputs, here),
        "python": _python(chosen.python, here),
        "mode": chosen.mode,
        "fake": chosen.fake,
        "timeout": chosen.timeout,
        "limits": {
            name: value for name in Limits.model_fields if (value := getattr(chosen, f"max_{name}")) is not None
        },
    }
    try:
        return parse(CaptureRequest, orjson.dumps(fields))
    except ContractError as error:
        faults = tuple(Fault(path=fault.path, message=bounded(fault.message)) for fault in error.faults[:20])
        raise refusal("invalid_request", str(error), faults=faults) from error
    except TypeError as error:  # a name that is not UTF-8
        raise refusal("file_not_found", f"a path cannot be written as text: {error}") from error


def limit_option(field: str) -> str:
    return "--max-" + re.sub("([A-Z])", lambda match: "-" + match[1].lower(), field)


def _command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]", name: str, text: str, more: str):
    return commands.add_parser(
        name, help=text, description=text[0].upper() + text[1:] + ".", epilog=more, formatter_class=_TEXT
    )


def _add_run_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--inputs", metavar="FILE.py:FUNCTION", help="the function that returns the model's arguments")
    command.add_argument("--python", metavar="EXE", help="the interpreter or environment that runs the file")
    command.add_argument(
        "--mode",
        choices=("eval", "train", "as_is"),
        default="eval",
        help="model.eval(), model.train() or neither (eval)",
    )
    command.add_argument("--fake", action="store_true", help="run with fake tensors: shapes without values")
    command.add_argument(
        "--timeout",
        type=float,
        default=60.0,
        metavar="S",
        help="seconds from the launch, import of torch included (60)",
    )
    budgets = command.add_argument_group("budgets", "a run that hits one is kept as a partial capture")
    for field, info in Limits.model_fields.items():
        budgets.add_argument(
            limit_option(field),
            type=_budget,
            metavar="N",
            dest=f"max_{field}",
            help=f"{_BUDGETS[field]} ({info.default:,})",
        )


_BUDGETS = {
    "bytes": "size of the capture",
    "operations": "recorded operations",
    "invocations": "recorded module calls",
    "values": "recorded tensor values",
    "argumentDepth": "depth of an argument",
    "argumentItems": "items of an argument",
    "text": "characters of a text",
    "parameterReads": "parameters read for counts",
}


def _add_port(command: argparse.ArgumentParser) -> None:
    command.add_argument("--port", type=_port, default=0, metavar="N", help="port on 127.0.0.1; 0 takes a free one (0)")


def _port(text: str) -> int:
    port = int(text) if text.isdecimal() else -1
    if not 0 <= port < 2**16:
        raise argparse.ArgumentTypeError(f"{text} is not a port: 0 to 65535")
    return port


def _budget(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is not a number") from None
    if number > MAX_SAFE:
        raise argparse.ArgumentTypeError(f"{text} is too large: at most {MAX_SAFE:,}")
    return number


def _file_and_name(text: str) -> tuple[str, str | None]:
    match = _TARGET.fullmatch(text)
    return (match["file"], match["name"]) if match else (text, None)


def _inputs(text: str | None, here: Path) -> dict[str, str] | None:
    if text is None:
        return None
    file, name = _file_and_name(text)
    if not name:
        raise refusal("invalid_request", f"--inputs {text} names no function", "write --inputs FILE.py:FUNCTION")
    return {"file": os.path.join(here, file), "function": name}


def _python(text: str | None, here: Path) -> str | None:
    """A bare name that is no folder here is a command on PATH."""
    if text is None or not (os.sep in text or os.path.isdir(here / text)):
        return text
    return os.path.join(here, os.path.expanduser(text))
