"""`tensorviz show` and `tensorviz validate`: what is in a capture's file."""

import argparse
import sys

from tensorviz import terminal
from tensorviz.contracts.validate import MAX_BYTES, ContractError
from tensorviz.errors import refusal
from tensorviz.service import read_capture

VALID, INVALID = 0, 1


def show(chosen: argparse.Namespace) -> int:
    data = _read(chosen.file)
    try:
        capture = read_capture(data)
    except ContractError as error:
        hint = f"tensorviz validate {chosen.file} lists every fault"
        raise refusal("invalid_capture", str(error), hint) from error
    out = terminal.console(sys.stdout)
    terminal.show_head(out, capture, len(data))
    out.print()
    terminal.show_tree(out, capture, chosen.depth)
    return VALID


def validate(chosen: argparse.Namespace) -> int:
    try:
        read_capture(_read(chosen.file))
    except ContractError as error:
        for fault in error.faults:
            print(f"{terminal.clean('/'.join(map(str, fault.path))) or '(document)'}: {terminal.clean(fault.message)}")
        return INVALID
    print(f"{terminal.clean(chosen.file)}: valid", file=sys.stderr)
    return VALID


def _read(name: str) -> bytes:
    """One byte more than a capture may have, so that too much is seen as such. Raises Refused."""
    try:
        if name == "-":
            return sys.stdin.buffer.read(MAX_BYTES + 1).strip()
        with open(name, "rb") as stream:
            return stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise refusal("file_not_found", f"{name}: {error.strerror}", "name a capture that tensorviz wrote") from error
