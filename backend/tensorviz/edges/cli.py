"""The command line. docs/cli.md documents every command, option and exit status.

Nothing heavy is imported before ``main`` runs, so that an interrupt at any time ends the command as it should.
"""

import argparse
import importlib
import logging
import os
import sys
import traceback
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tensorviz.contracts.problem import Problem

REFUSED, INTERNAL, INTERRUPTED, CLOSED = 2, 70, 130, 1


def main(arguments: list[str] | None = None) -> int:
    """Never raises, except SystemExit for --help, for wrong options and for SIGTERM."""
    try:
        return _main(arguments)
    except KeyboardInterrupt:
        print("tensorviz: interrupted", file=sys.stderr)
        return INTERRUPTED


def _main(arguments: list[str] | None) -> int:
    from tensorviz.edges import options
    from tensorviz.edges.signals import silence
    from tensorviz.errors import Refused

    if os.environ.get("TENSORVIZ_DEBUG"):
        logging.basicConfig(level=logging.DEBUG, format="%(name)s: %(message)s")
        logging.getLogger("asyncio").setLevel(logging.WARNING)
    chosen = options.parser().parse_args(arguments)
    try:
        return _run(chosen)
    except Refused as refused:
        _show(refused.problem)
        return REFUSED
    except BrokenPipeError:
        silence()
        return CLOSED
    except Exception as error:
        return _internal(error)


def _internal(error: Exception) -> int:
    from tensorviz.errors import problem

    if os.environ.get("TENSORVIZ_DEBUG"):
        traceback.print_exc()
    _show(problem("internal_error", f"{type(error).__name__}: {error}"))
    return INTERNAL


def _show(found: "Problem") -> None:
    from tensorviz import terminal

    terminal.show_problem(terminal.console(sys.stderr), found)


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
