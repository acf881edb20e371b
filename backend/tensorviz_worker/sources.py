"""Where in the source an event happened: frames become locations, each told once and cited by id.

A location is a place in the code and the way it was reached: its ``caller`` is the next frame outwards that is neither
torch's nor ours, within the same module call. Columns come from PEP 657 instruction ranges (Python 3.11 and newer) and
are counted in UTF-16 units. What a place is in the saved file is told by ``bindings``.
"""

import functools
import hashlib
import importlib.util
import os
import sys
import sysconfig
import weakref
from collections.abc import Iterable, Iterator
from types import CodeType, FrameType
from typing import Any

import torch

from tensorviz_worker.bindings import Range, SavedSource, place_of
from tensorviz_worker.journal import quote, to_json

_HERE = os.path.dirname(os.path.abspath(__file__))
_OWN = (_HERE + os.sep, os.path.join(os.path.dirname(_HERE), "tensorviz") + os.sep)
_TORCH = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
_LIBRARIES = tuple(
    {os.path.abspath(sysconfig.get_path(name)) + os.sep for name in ("purelib", "platlib", "stdlib", "platstdlib")}
)
_MAX_SOURCE = 8 * 2**20
_MAX_BOUND = 2**20  # a file of this size takes about half a second and 64 MiB to parse
_FULL = 2 * 64  # the length of a way of as many frames as are kept
_PASSED, _CITED, _BOUNDARY, _UNKNOWN = range(4)
_CUT = -1  # ends a way that has more frames than are kept
_DEFINITION = -1  # in place of an instruction

Way = tuple[int, ...]
"""Frames from the inside outwards, for each the ``id()`` of its code and its instruction."""


class _File:
    """A cited file, read once: its digest, its bytes where columns need them, its code if it is the workspace's."""

    def __init__(self, root: str, path: str) -> None:
        data = _read(path)
        self.digest = None if data is None else hashlib.sha256(data).hexdigest()
        self._is_ascii = data is not None and data.isascii()
        self._data = b"" if data is None or self._is_ascii else data
        is_bound = root == "workspace" and len(data or b"") <= _MAX_BOUND
        self._saved = SavedSource(data) if data is not None and is_bound else None
        self._places: dict[tuple[int, int], tuple[CodeType, dict[str, Any]]] = {}

    def place(self, code: CodeType, instruction: int) -> "dict[str, Any]":
        """The contract's words for an instruction, or for a function's definition."""
        known = self._places.get((id(code), instruction))
        if known is None:  # the code is kept, so that its id() stays its own
            known = self._places[id(code), instruction] = (code, self._find(code, instruction))
        return known[1]

    def _find(self, code: CodeType, instruction: int) -> "dict[str, Any]":
        place, binding = self._bind(code, instruction)
        column, end_column = self._utf16(place.line, place.column), self._utf16(place.end_line, place.end_column)
        if binding == "exact" and (column is None or end_column is None):
            binding = "unmapped"
        lines = {"line": place.line, "endLine": place.end_line}
        return {**lines, "column": column, "endColumn": end_column, "binding": binding}

    def _bind(self, code: CodeType, instruction: int) -> "tuple[Range, str]":
        is_definition = instruction == _DEFINITION
        place = Range(max(code.co_firstlineno, 1)) if is_definition else place_of(code, instruction)
        if self._saved is None:
            return place, "unmapped"
        if not self._saved.holds(code):
            return Range(place.line), "unmapped"  # the columns are those of other text
        if is_definition:
            found = self._saved.definition(code)
            return (place, "ambiguous") if found is None else (found, "exact")
        return place, self._saved.binding(code, instruction, place)

    def _utf16(self, line: "int | None", column: "int | None") -> "int | None":
        """None for a column that is unknown, or that the saved file does not have."""
        if self._is_ascii:
            return column
        lines = _lines(self._data)
        if line is None or column is None or not 0 < line <= len(lines):
            return None
        head = lines[line - 1].encode()[:column]
        try:
            return len(head.decode().encode("utf-16-le")) // 2 if len(head) == column else None
        except UnicodeDecodeError:
            return None


class SourceMap:
    """Gives each place in the code an id, and writes the file and location lines to the journal at first sight.

    These lines may take ``limit`` bytes. After that new places have no id, and ``on_limit`` is called once.
    ``boundaries`` are the code objects that make module calls: a way outwards ends there.
    """

    def __init__(
        self,
        write: Any,
        workspace: str,
        limit: int = 2 * 2**20,
        on_limit: Any = lambda: None,
        boundaries: "Iterable[CodeType]" = (),
    ) -> None:
        self._write = write
        self._workspace = os.path.abspath(workspace) + os.sep
        self._room = limit
        self._on_limit = on_limit
        self._kinds: dict[int, int] = {id(code): _BOUNDARY for code in boundaries}
        self._kept: dict[int, Any] = {id(code): code for code in boundaries}  # so that the ids above stay theirs
        self._ways: dict[Way, str] = {}
        self._locations: dict[tuple[str | None, int, int, bool], str] = {}
        self._files: dict[str, tuple[str, _File]] = {}
        self._is_spent = False

    def here(self, depth: int = 1, around: "str | None" = None) -> "str | None":
        """The innermost frame that is neither torch's nor ours; of the frames above this one ``depth`` need no look.

        ``around`` is the place of the innermost open module call, where there is one: code of torch's alone that works
        in it has no other. This runs for every operation: where all is known, it is one look into a dictionary for each
        frame.
        """
        frame: FrameType | None = sys._getframe(depth)
        kind_of = self._kinds.get
        way: Way = ()
        while frame is not None:
            code = frame.f_code
            kind = kind_of(id(code), _UNKNOWN)
            if kind:
                if kind is _UNKNOWN:
                    kind = self._judge(code)
                if kind is _CITED:
                    if len(way) == _FULL:
                        way += (_CUT,)
                        break
                    way += (id(code), frame.f_lasti)
                elif kind is _BOUNDARY and (way or around):
                    break
            frame = frame.f_back
        return self._ways.get(way) or self._follow(way) if way else around

    def cite(self, path: str) -> str:
        """The id of a file, whether or not anything in it runs."""
        return self._file(path)[0]

    def function(self, code: Any) -> "str | None":
        """The location of a function's definition."""
        if not isinstance(code, CodeType):
            return None
        self._kind(code)
        self._kept[id(code)] = code
        return self._location(None, id(code), _DEFINITION, False)

    def raised(self, error: BaseException) -> "str | None":
        """The innermost place of the user's or a library's code that an exception passed through."""
        way: Way = ()
        for code, instruction in _frames_of(error):
            kind = self._kind(code)
            if kind == _BOUNDARY and way:
                break
            if kind == _CITED and len(way) == _FULL:
                way += (_CUT,)
                break
            if kind == _CITED:
                way += (id(code), instruction)
        return self._ways.get(way) or self._follow(way)

    def is_citable(self, code: CodeType) -> bool:
        """Whether code is neither torch's nor ours, nor made up at run time."""
        return self._kind(code) == _CITED

    def _kind(self, code: CodeType) -> int:
        known = self._kinds.get(id(code))
        return self._judge(code) if known is None else known

    def _judge(self, code: CodeType) -> int:
        """Code that is cited is kept for ever, and all other code only known as long as it lives."""
        key, name = id(code), code.co_filename
        is_passed = name.startswith("<") or os.path.abspath(name).startswith((*_OWN, _TORCH))
        kind = self._kinds[key] = _PASSED if is_passed else _CITED
        self._kept[key] = weakref.ref(code, lambda _: self._forget(key)) if is_passed else code
        return kind

    def _forget(self, key: int) -> None:
        self._kinds.pop(key, None)
        self._kept.pop(key, None)

    def _follow(self, way: Way) -> "str | None":
        """The location at the inner end of a way: callers first, so that every one is told before it is cited."""
        name = None
        is_cut = len(way) > _FULL
        for index in reversed(range(0, len(way) - is_cut, 2)):
            name = self._location(name, way[index], way[index + 1], is_cut and name is None)
            if name is None:
                return None
        if name is not None:
            self._ways[way] = name
        return name

    def _location(self, caller: "str | None", key: int, instruction: int, is_cut: bool) -> "str | None":
        entry = (caller, key, instruction, is_cut)
        return self._locations.get(entry) or (None if self._is_spent else self._add(entry))

    def _add(self, entry: "tuple[str | None, int, int, bool]") -> "str | None":
        caller, key, instruction, is_cut = entry
        code, name = self._kept[key], f"l{len(self._locations)}"
        file_name, file = self._file(code.co_filename)
        record: dict[str, Any] = {
            "id": name,
            "file": file_name,
            "function": (getattr(code, "co_qualname", code.co_name) or "?")[:1024],
            **file.place(code, instruction),
            "caller": caller,
        }
        if not self._tell(f'{{"location":{to_json(record | {"callersOmitted": True} if is_cut else record)}}}'):
            return None
        self._locations[entry] = name
        return name

    def _file(self, path: str) -> "tuple[str, _File]":
        known = self._files.get(path)
        if known is None:
            root, shown = self._root_of(path)
            file = _file_at(root, path, _stamp(path))
            known = self._files[path] = (f"f{len(self._files)}", file)
            self._put(
                f'{{"file":{{"id":"{known[0]}","root":"{root}","path":{quote(shown)},"digest":{to_json(file.digest)}}}}}'
            )
        return known

    def _root_of(self, name: str) -> "tuple[str, str]":
        path = os.path.abspath(name)
        for root, prefixes in (("library", _LIBRARIES), ("workspace", (self._workspace,))):
            for prefix in prefixes:
                if path.startswith(prefix):
                    return root, _portable(path[len(prefix) :])
        return ("external" if os.path.isfile(path) else "generated"), _portable(path)

    def _tell(self, line: str) -> bool:
        """Writes a location if there is room; the first one without ends them all."""
        self._is_spent = len(line) > self._room
        if self._is_spent:
            self._on_limit()
        else:
            self._put(line)
        return not self._is_spent

    def _put(self, line: str) -> None:
        self._room -= len(line)
        self._write(line)


def _frames_of(error: BaseException) -> "Iterator[tuple[CodeType, int]]":
    """The frames that an exception came through, from where it was raised; then those that it did not leave yet.

    An exception may also stand in a traceback below frames that it never came through: ``contextmanager`` throws it
    into a generator, whose caller is the one that it came from. So the frames around the innermost one that still
    runs count, wherever that one stands.
    """
    running = _running()
    passed: list[tuple[CodeType, int]] = []
    around: FrameType | None = None
    trace = error.__traceback__
    while trace is not None:
        frame = trace.tb_frame
        if frame in running:
            passed.clear()
            around = frame.f_back
        passed.append((frame.f_code, trace.tb_lasti))
        trace = trace.tb_next
    yield from reversed(passed)
    while around is not None:
        yield around.f_code, around.f_lasti
        around = around.f_back


def _running() -> "set[FrameType]":
    found: set[FrameType] = set()
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        found.add(frame)
        frame = frame.f_back
    return found


@functools.lru_cache(maxsize=256)
def _file_at(root: str, path: str, stamp: Any) -> _File:
    """A process that records twice reads its files again only if they changed."""
    return _File(root, path)


def _stamp(path: str) -> Any:
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _read(path: str) -> "bytes | None":
    try:
        if not os.path.isfile(path):  # reading a pipe would wait
            return None
        with open(path, "rb") as stream:
            data = stream.read(_MAX_SOURCE + 1)
    except (OSError, ValueError):
        return None
    return data if len(data) <= _MAX_SOURCE else None


@functools.lru_cache(maxsize=2)
def _lines(data: bytes) -> "list[str]":
    """Lines as the interpreter counts them, whatever the file's encoding. Of many files they would take much memory."""
    try:
        return importlib.util.decode_source(data).split("\n")
    except (SyntaxError, ValueError):
        return []


def _portable(path: str) -> str:
    return path.replace(os.sep, "/").encode("utf-8", "replace").decode()[:1024] or "?"
