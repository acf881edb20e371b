"""Writes a capture to where somebody asked for it: whole or not at all, and never in place of what it stands on."""

import os
import secrets
import stat
from pathlib import Path

from tensorviz.errors import refusal


def write_whole(path: Path, data: bytes) -> None:
    """Through a scratch file beside it; straight into a device or pipe. A link stays a link. Raises Refused."""
    try:
        if path.exists() and not stat.S_ISREG(path.stat().st_mode):
            path.write_bytes(data)
            return
        target = path.resolve()
        scratch = target.with_name(f".tensorviz-{secrets.token_hex(8)}")
        try:
            scratch.write_bytes(data)
            scratch.replace(target)
        finally:
            scratch.unlink(missing_ok=True)
    except OSError as error:
        raise not_writable(str(path), error) from error


def not_writable(name: str, error: OSError) -> Exception:
    reason = error.strerror or os.strerror(error.errno or 0)
    return refusal("output_not_written", f"{name}: {reason}", "choose another file with --out, or make room")
