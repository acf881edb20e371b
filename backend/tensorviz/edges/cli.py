"""The command line. docs/cli.md documents every command, option and exit status."""

import argparse
import importlib
import logging
import os
import sys
import traceback

from tensorviz import terminal
from tensorviz.edges import options
from tensorviz.edges.signals import silence
from tensorviz.errors import Refused, problem

REFUSED, INTERNAL, INTERRUPTED, CLOSED = 2, 70, 130, 1


def main(arguments: list[str] | None = None) -> int:
    """Never raises, except SystemExit for --help, for wrong options and for SIGTERM."""
    if os.environ.get("TENSORVIZ_DEBUG"):
        logging.basicConfig(level=logging.DEBUG, format="%(name)s: %(message)s")
        logging.getLogger("asyncio").setLevel(logging.WARNING)
    chosen = options.parser().parse_args(arguments)
    try:
        return _run(chosen)
    except Refused as refused:
        terminal.show_problem(terminal.console(sys.stderr), refused.problem)
        return REFUSED
    except KeyboardInterrupt:
        print("tensorviz: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        silence()
        return CLOSED
    except Exception as error:
        return _internal(error)


def _internal(error: Exception) -> int:
    if os.environ.get("TENSORVIZ_DEBUG"):
        traceback.print_exc()
    found = problem("internal_error", f"{type(error).__name__}: {error}")
    terminal.show_problem(terminal.console(sys.stderr), found)
    return INTERNAL


def _run(chosen: argparse.Namespace) -> int:
    """Each command loads what it needs and no more: `show` has no use for a web server."""
    module, function = _COMMANDS[chosen.command]
    return getattr(importlib.import_module(f"tensorviz.edges.{module}"), function)(chosen)


_COMMANDS = {
    "capture": ("capturing", "capture"),
    "open": ("hosting", "open_"),
    "serve": ("hosting", "serve"),
    "show": ("files", "show"),
    "validate": ("files", "validate"),
    "doctor": ("doctor", "doctor"),
}

if __name__ == "__main__":
    sys.exit(main())
