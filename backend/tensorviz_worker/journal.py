"""The journal: every fact as one JSON line, on record the moment it is known.

Each line is an object with one key, its kind. In order of life:

    stage        where the attempt is: importing, preparing, running, finishing
    problem      why nothing was run: code, detail, hint
    environment  interpreter and torch facts          execution    target, inputs, mode, grad mode
    file, location, definition, module, state, operator            tables that later lines cite by id
    enter, exit  a module call                        begin, end   an operation; begin is written before the kernel runs
    value        a tensor object at one version       settle       versions that autograd completed after the dispatch
    diagnostic   an exception, by type                gap          something is missing: its reason code
    fake         a fake tensor was seen               broken       our own failure ended the recording
    finish       how the run ended, and what was omitted

A file journal is memory-mapped: what is written survives the death of the process without a system call per event.
"""

import mmap
import os
from json.encoder import encode_basestring_ascii
from typing import Any

__all__ = ["FileJournal", "MemoryJournal", "quote", "to_json"]


def quote(text: str) -> str:
    """JSON text of a string. Half of a surrogate pair, which no JSON reader takes, becomes a question mark."""
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode()
    return encode_basestring_ascii(text)


def to_json(value: Any) -> str:
    """Compact JSON text of plain data: None, bool, int, str, lists and dicts with string keys."""
    if value is None:
        return "null"
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, int):
        return int.__repr__(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{quote(key)}:{to_json(item)}" for key, item in value.items()) + "}"
    return "[" + ",".join(map(to_json, value)) + "]"


class MemoryJournal:
    """A journal in this process's memory, for a recording that the caller makes itself."""

    def __init__(self) -> None:
        self._lines: list[bytes] = []

    @property
    def size(self) -> int:
        return sum(map(len, self._lines))

    def write(self, line: str) -> None:
        self._lines.append(f"{line}\n".encode())

    def getvalue(self) -> bytes:
        return b"".join(self._lines)

    def close(self) -> None:
        """Nothing to release."""


class FileJournal:
    """A journal in a sparse, memory-mapped file of ``capacity`` bytes. Its reader strips the zero bytes at the end."""

    def __init__(self, path: str, capacity: int) -> None:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o600)
        try:
            os.ftruncate(descriptor, capacity)
            self._map = mmap.mmap(descriptor, capacity)
        finally:
            os.close(descriptor)
        self._owner = os.getpid()

    @property
    def size(self) -> int:
        return self._map.tell()

    def write(self, line: str) -> None:
        """Raises ValueError when the line does not fit. A forked child shares the pages, so it may not write."""
        if os.getpid() == self._owner:
            self._map.write(f"{line}\n".encode())

    def close(self) -> None:
        self._map.close()
