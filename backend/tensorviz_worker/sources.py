"""Where in the saved source an event happened: frames become locations, each told once and cited by id.

Columns come from PEP 657 instruction ranges (Python 3.11 and newer) and are counted in UTF-16 units.
"""

import hashlib
import os
import sys
import sysconfig
from types import CodeType, FrameType
from typing import Any, NamedTuple

import torch

from tensorviz_worker.journal import quote, to_json

_OWN = os.path.dirname(os.path.abspath(__file__)) + os.sep
_TORCH = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
_LIBRARIES = tuple(
    {os.path.abspath(sysconfig.get_path(name)) + os.sep for name in ("purelib", "platlib", "stdlib", "platstdlib")}
)
_MAX_SOURCE = 8 * 2**20


class _Range(NamedTuple):
    line: int
    end_line: "int | None"
    column: "int | None"
    end_column: "int | None"


class _File:
    """A cited file. Lines are kept only where byte columns and UTF-16 columns differ: in text beyond ASCII."""

    def __init__(self, name: str, path: str) -> None:
        self.name = name
        self._lines: list[bytes] = []
        self._is_ascii = False
        self.digest: str | None = None
        try:
            with open(path, "rb") as stream:
                data = stream.read(_MAX_SOURCE + 1)
        except (OSError, ValueError):
            return
        if len(data) <= _MAX_SOURCE:
            self.digest = hashlib.sha256(data).hexdigest()
            self._is_ascii = data.isascii()
            self._lines = [] if self._is_ascii else data.splitlines()

    def utf16(self, line: "int | None", column: "int | None") -> "int | None":
        """None for a column that is unknown, or that the saved file does not have."""
        if self._is_ascii:
            return column
        if line is None or column is None or not 0 < line <= len(self._lines):
            return None
        head = self._lines[line - 1][:column]
        return len(head.decode("utf-8", "replace").encode("utf-16-le")) // 2 if len(head) == column else None


class SourceMap:
    """Gives each place in the code an id, and writes the file and location lines to the journal at first sight."""

    def __init__(self, write: Any, workspace: str) -> None:
        self._write = write
        self._workspace = os.path.abspath(workspace) + os.sep
        self._files: dict[str, _File] = {}
        self._locations: dict[tuple[int, int], str] = {}
        self._citable: dict[int, bool] = {}
        self._positions: dict[int, list[Any]] = {}
        self._kept: list[CodeType] = []  # code objects, so that the ids above stay theirs

    def here(self) -> "str | None":
        """The innermost frame that is neither torch's nor ours."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            code = frame.f_code
            if self.is_citable(code):
                return self._locations.get((id(code), frame.f_lasti)) or self._locate(
                    code, frame.f_lasti, frame.f_lineno
                )
            frame = frame.f_back
        return None

    def cite(self, path: str) -> str:
        """The id of a file, whether or not anything in it runs."""
        return self._file(path).name

    def function(self, code: Any) -> "str | None":
        """The location of a function's definition."""
        if not isinstance(code, CodeType):
            return None
        self.is_citable(code)
        known = self._locations.get((id(code), -1))
        return known or self._add(code, -1, _Range(max(code.co_firstlineno, 1), None, None, None))

    def raised(self, error: BaseException) -> "str | None":
        """The innermost place of the user's or a library's code that an exception passed through."""
        found = None
        trace = error.__traceback__
        while trace is not None:
            code = trace.tb_frame.f_code
            if self.is_citable(code):
                found = self._locations.get((id(code), trace.tb_lasti)) or self._locate(
                    code, trace.tb_lasti, trace.tb_lineno
                )
            trace = trace.tb_next
        return found

    def is_citable(self, code: CodeType) -> bool:
        """Whether code is neither torch's nor ours, nor made up at run time."""
        known = self._citable.get(id(code))
        return self._judge(code) if known is None else known

    def _judge(self, code: CodeType) -> bool:
        name = code.co_filename
        self._kept.append(code)
        path = os.path.abspath(name)
        answer = not (path.startswith((_OWN, _TORCH)) or name.startswith("<"))
        self._citable[id(code)] = answer
        return answer

    def _locate(self, code: CodeType, instruction: int, line: "int | None") -> str:
        return self._add(code, instruction, self._range(code, instruction, line))

    def _range(self, code: CodeType, instruction: int, line: "int | None") -> _Range:
        fallback = _Range(max(line or code.co_firstlineno, 1), None, None, None)
        if not hasattr(code, "co_positions"):
            return fallback
        positions = self._positions.get(id(code))
        if positions is None:
            positions = self._positions[id(code)] = list(code.co_positions())  # pyright: ignore[reportAttributeAccessIssue]
        index = instruction // 2
        start, end, column, end_column = positions[index] if 0 <= index < len(positions) else (None,) * 4
        return fallback if not start else _Range(start, end, column, end_column)

    def _add(self, code: CodeType, instruction: int, place: _Range) -> str:
        name = self._locations[(id(code), instruction)] = f"l{len(self._locations)}"
        file = self._file(code.co_filename)
        record = {
            "id": name,
            "file": file.name,
            "function": (getattr(code, "co_qualname", code.co_name) or "?")[:1024],
            "line": place.line,
            "endLine": place.end_line,
            "column": file.utf16(place.line, place.column),
            "endColumn": file.utf16(place.end_line, place.end_column),
        }
        self._write(f'{{"location":{to_json(record)}}}')
        return name

    def _file(self, name: str) -> _File:
        file = self._files.get(name)
        if file is None:
            file = self._files[name] = _File(f"f{len(self._files)}", name)
            root, path = self._root_of(name)
            self._write(
                f'{{"file":{{"id":"{file.name}","root":"{root}","path":{quote(path)},'
                f'"digest":{to_json(file.digest)}}}}}'
            )
        return file

    def _root_of(self, name: str) -> "tuple[str, str]":
        path = os.path.abspath(name)
        for root, prefixes in (("library", _LIBRARIES), ("workspace", (self._workspace,))):
            for prefix in prefixes:
                if path.startswith(prefix):
                    return root, _portable(path[len(prefix) :])
        return ("external" if os.path.isfile(path) else "generated"), _portable(path)


def _portable(path: str) -> str:
    return path.replace(os.sep, "/").encode("utf-8", "replace").decode()[:1024] or "?"
