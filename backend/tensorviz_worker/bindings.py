"""What an instruction is in the saved file: proven by compiling the file again, never by looking at its text alone.

Only code that is equal to what the saved bytes compile to, positions included, is bound to them. So a file that was
edited after its import, or code that somebody rewrote on the way (a debugger, an import hook, torch.compile), is told
apart function by function. An instruction's PEP 657 range then names its expression. Where the interpreter tells the
line alone, the kind of the instruction may still leave one expression of that line.
"""

import ast
import dis
import functools
import itertools
import warnings
from collections.abc import Iterator
from types import CodeType
from typing import Any, NamedTuple

_UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError)
_IGNORE_ALL = [("ignore", None, Warning, None, 0)]
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_CALLS = (ast.Call, ast.ClassDef, ast.With, ast.AsyncWith, ast.Assert, *_COMPREHENSIONS)
_OPERATORS = (ast.BinOp, ast.AugAssign) if "BINARY_SUBSCR" in dis.opmap else (ast.BinOp, ast.AugAssign, ast.Subscript)
_SITES: "tuple[tuple[tuple[str, ...], tuple[type, ...]], ...]" = (
    (("CALL_INTRINSIC",), ()),
    (("CALL",), _CALLS),
    (("BINARY_SUBSCR", "BINARY_SLICE", "STORE_SUBSCR", "STORE_SLICE", "DELETE_SUBSCR"), (ast.Subscript,)),
    (("BINARY_", "INPLACE_"), _OPERATORS),
    (("UNARY_",), (ast.UnaryOp,)),
    (("COMPARE_OP", "CONTAINS_OP"), (ast.Compare,)),
    (("LOAD_ATTR", "LOAD_METHOD", "STORE_ATTR", "DELETE_ATTR"), (ast.Attribute,)),
    (("IMPORT_",), (ast.Import, ast.ImportFrom)),
)
"""Beginnings of instruction names, and every kind of syntax that the compiler makes such an instruction of."""


class Range(NamedTuple):
    """One-based lines and columns in bytes of UTF-8, as the interpreter and ``ast`` count them."""

    line: int
    end_line: "int | None" = None
    column: "int | None" = None
    end_column: "int | None" = None


def place_of(code: CodeType, instruction: int) -> Range:
    """Where an instruction comes from, as far as the interpreter tells it; Python 3.10 knows lines alone."""
    line = end_line = column = end_column = None
    if hasattr(code, "co_positions"):
        every = code.co_positions()  # pyright: ignore[reportAttributeAccessIssue]
        line, end_line, column, end_column = next(itertools.islice(every, instruction // 2, None), (None,) * 4)
    else:
        line = next((line for start, end, line in code.co_lines() if start <= instruction < end), None)
    if not line:
        return Range(max(code.co_firstlineno, 1))
    ends_first = (end_line or line, end_column or 0) < (line, column or 0)
    return Range(line) if ends_first else Range(line, end_line, column, end_column)


class SavedSource:
    """The bytes of a saved file of Python source, compiled and parsed. Bytes that cannot be hold no code."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._codes: dict[tuple[str, int], list[CodeType]] = {}
        self._ranges: dict[tuple[Any, ...], int] = {}
        self._definitions: dict[tuple[str, int], list[Range]] = {}
        try:
            compiled, tree = _compile(data), _compile(data, ast.PyCF_ONLY_AST)
        except _UNREADABLE:
            return
        for code in _all_code(compiled):
            self._codes.setdefault((code.co_name, code.co_firstlineno), []).append(code)
        for node in ast.walk(tree):
            self._index(node)

    def holds(self, code: CodeType) -> bool:
        """Whether this is code that the saved bytes compile to."""
        return any(_is_same(code, saved) for saved in self._codes.get((code.co_name, code.co_firstlineno), ()))

    def binding(self, code: CodeType, instruction: int, place: Range) -> str:
        """How an instruction of code that is held meets the file: the contract's words."""
        if place.column is not None:
            return ("unmapped", "exact", "ambiguous")[min(self._ranges.get(place, 0), 2)]
        sites = _sites_of(_name_of(code, instruction))
        on_line = self._lines.get(place.line, ())
        if not sites:
            return "ambiguous" if on_line else "unmapped"
        return ("unmapped", "candidate", "ambiguous")[min(sum(issubclass(kind, sites) for kind in on_line), 2)]

    def definition(self, code: CodeType) -> "Range | None":
        """The definition of a function whose code is held; None when several begin on its line."""
        found = self._definitions.get((code.co_name, code.co_firstlineno), ())
        return found[0] if len(found) == 1 else None

    def _index(self, node: Any) -> None:
        if isinstance(node, (ast.expr, ast.stmt)) and not isinstance(node, ast.Expr):
            for place in _ranges_of(node):
                self._ranges[place] = self._ranges.get(place, 0) + 1
        if isinstance(node, _FUNCTIONS):
            first = min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", ()))])
            place = Range(node.lineno, node.end_lineno, node.col_offset, node.end_col_offset)
            self._definitions.setdefault((getattr(node, "name", "<lambda>"), first), []).append(place)

    @functools.cached_property
    def _lines(self) -> "dict[int, list[type]]":
        """The kinds of syntax that stand on each line, for instructions without columns."""
        found: dict[int, list[type]] = {}
        for node in ast.walk(_compile(self._data, ast.PyCF_ONLY_AST)):
            if isinstance(node, (ast.expr, ast.stmt)):
                found.setdefault(_line_of(node), []).append(type(node))
            for line, kind in _hidden_sites(node):
                found.setdefault(line, []).append(kind)
        return found


def _compile(data: bytes, flags: int = 0) -> Any:
    """Compiles without a word: the program was warned when it was imported.

    ``warnings.catch_warnings`` would have the program's own warnings shown again; what a compiler's warning finds in
    ``filters`` is all that counts here.
    """
    kept, warnings.filters = warnings.filters, _IGNORE_ALL
    try:
        return compile(data, "<saved>", "exec", flags, dont_inherit=True)
    finally:
        warnings.filters = kept


def _all_code(outermost: CodeType) -> "Iterator[CodeType]":
    stack = [outermost]
    while stack:
        code = stack.pop()
        yield code
        stack.extend(item for item in code.co_consts if isinstance(item, CodeType))


def _is_same(one: CodeType, other: CodeType) -> bool:
    return one == other and one.co_linetable == other.co_linetable


def _ranges_of(node: Any) -> "Iterator[tuple[Any, ...]]":
    """The range of a node; the interpreter draws a method call or attribute on a later line from its name on."""
    yield node.lineno, node.end_lineno, node.col_offset, node.end_col_offset
    named = _named(node)
    if named is not None and named.lineno != named.end_lineno and named.attr.isascii():
        yield named.end_lineno, node.end_lineno, named.end_col_offset - len(named.attr), node.end_col_offset


def _line_of(node: Any) -> int:
    """The line that the interpreter gives the instructions of a node."""
    named = _named(node)
    return node.lineno if named is None else named.end_lineno


def _named(node: Any) -> Any:
    """The attribute that a node reads or calls."""
    named = node.func if isinstance(node, ast.Call) else node
    return named if isinstance(named, ast.Attribute) else None


def _hidden_sites(node: Any) -> "Iterator[tuple[int, type]]":
    """Calls and comparisons that are written as something else."""
    for decorator in getattr(node, "decorator_list", ()):
        yield from {(decorator.lineno, ast.Call), (node.lineno, ast.Call)}
    if isinstance(node, (ast.With, ast.AsyncWith)):
        yield from ((item.context_expr.lineno, ast.Call) for item in node.items)
    if isinstance(node, ast.MatchValue):
        yield _line_of(node.value), ast.Compare


def _name_of(code: CodeType, instruction: int) -> str:
    """The instruction's name; a call that is under way may stand at the cache entries behind it."""
    data = code.co_code
    while instruction > 0 and dis.opname[data[instruction]] == "CACHE":
        instruction -= 2
    return dis.opname[data[instruction]]


def _sites_of(name: str) -> "tuple[type, ...]":
    return next((kinds for beginnings, kinds in _SITES if name.startswith(beginnings)), ())
