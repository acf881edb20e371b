"""Locations: against the interpreter's own stack, and against the text of the saved file."""

import contextlib
import functools
import importlib.util
import json
import os
import subprocess
import sys
import textwrap
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tensorviz
import tensorviz_worker
from tensorviz.contracts.arguments import IntArgument
from tensorviz.contracts.capture import CaptureSnapshot, Limits, Location, Operation
from tensorviz_worker import bindings
from tensorviz_worker.sources import SourceMap

from .running import ROOT, capture

HIDDEN = tuple(
    os.path.dirname(os.path.abspath(str(package.__file__))) + os.sep
    for package in (torch, tensorviz, tensorviz_worker)
)  # fmt: skip


class Sources:
    """A source map whose lines are read back, and the module that it watches."""

    def __init__(self, workspace: Path, **options: Any) -> None:
        self.locations: dict[str, dict[str, Any]] = {}
        self.files: dict[str, dict[str, Any]] = {}
        self.map = SourceMap(self._take, str(workspace), boundaries=(inside.__code__,), **options)
        self.size = 0

    def _take(self, line: str) -> None:
        ((kind, record),) = json.loads(line).items()
        {"location": self.locations, "file": self.files}[kind][record["id"]] = record
        self.size += len(line)

    def way(self, name: str | None) -> list[dict[str, Any]]:
        found = []
        while name is not None:
            found.append(self.locations[name])
            name = found[-1]["caller"]
        return found


def load(folder: Path, text: str, name: str = "net", encoding: str = "utf-8") -> ModuleType:
    """Imports text as a saved file of the folder."""
    path = folder / f"{name}.py"
    path.write_text(textwrap.dedent(text), encoding=encoding)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def inside(function: Callable[..., Any], *arguments: Any) -> Any:
    """Stands for a module call: ways end here."""
    return function(*arguments)


@pytest.fixture(autouse=True)
def _no_bytecode(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is written twice within a second would be read from the bytecode of the first."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)


def stack_of(frame: FrameType | None) -> list[str]:
    """What the interpreter itself tells of the way to a frame, without torch's frames and the recorder's."""
    entries = reversed(traceback.extract_stack(frame))
    return [told(entry) for entry in entries if not entry.filename.startswith((*HIDDEN, "<"))]


def told(entry: traceback.FrameSummary) -> str:
    return f"{os.path.basename(entry.filename)}:{entry.lineno} {entry.name}"


def cut_out(file: Path, place: dict[str, Any]) -> str:
    """The text of a location, by one-based lines and UTF-16 columns."""
    lines = file.read_text(encoding="utf-8").split("\n")[place["line"] - 1 : place["endLine"]]
    units = [line.encode("utf-16-le") for line in lines]
    units[-1] = units[-1][: 2 * place["endColumn"]]
    units[0] = units[0][2 * place["column"] :]
    return "\n".join(unit.decode("utf-16-le") for unit in units)


class Probe:
    """Stands for a tensor: every use of it asks for the location, as an operation does."""

    def __init__(self, ask: Callable[[], Any]) -> None:
        self.ask = ask

    def _use(self, *_: Any) -> "Probe":
        self.ask()
        return self

    __add__ = __iadd__ = __matmul__ = __getitem__ = __neg__ = __lt__ = __call__ = _use

    @property
    def T(self) -> "Probe":
        return self._use()

    def relu(self, *_: Any) -> "Probe":
        return self._use()

    def sum(self, *_: Any) -> "Probe":
        return self._use()


def watched(sources: Sources) -> tuple[Probe, list[str | None]]:
    """A probe, and the ids of the locations where it was used."""
    found: list[str | None] = []

    def ask() -> None:
        depth = 2
        while sys._getframe(depth - 1).f_code.co_filename == __file__:
            depth += 1
        found.append(sources.map.here(depth))

    return Probe(ask), found


# -- the expression


def test_an_exact_place_is_the_text_of_the_expression_that_ran(tmp_path: Path) -> None:
    net = load(
        tmp_path,
        """
        def run(x):
            größe, 𐐷 = x, x
            "é𐐷" ; y = größe + 𐐷
            y += "𐐷" ; z = [y for 𐐷 in "𐐷" if y[ "é" ]]
            (lambda 𐐷: 𐐷 @ x)(y)
            return (x
                    .relu()
                    .sum(
                        1)
                    .T), -x, x[x < y](x)
        """,
    )
    sources = Sources(tmp_path)
    x, found = watched(sources)
    inside(net.run, x)
    places = [sources.locations[str(name)] for name in found]
    assert {place["binding"] for place in places} == {"exact"}
    assert [cut_out(tmp_path / "net.py", place) for place in places] == [
        "größe + 𐐷",
        'y += "𐐷"',
        'y[ "é" ]',
        "𐐷 @ x",
        "relu()",  # a call in a chain over several lines begins at the method, as in a traceback
        "sum(\n                1)",
        "T",
        "-x",
        "x < y",
        "x[x < y]",
        "x[x < y](x)",
    ]


Texts = tuple[str, tuple[str, ...]]
"""An expression and what of it dispatches, in the order of evaluation."""


def _grown(inner: st.SearchStrategy[Texts]) -> st.SearchStrategy[Texts]:
    def binary(operator: str, left: Texts, right: Texts) -> Texts:
        text = f"({left[0]}){operator}({right[0]})"
        return text, (*left[1], *right[1], text)

    def after(form: str, of: Texts, *rest: Texts) -> Texts:
        text = form.format(f"({of[0]})", *(item[0] for item in rest))
        own = text
        if "\n" in of[0] and form.startswith(
            "{}."
        ):  # a call of a method starts at its name, if that is on a later line
            own = text.removeprefix(f"({of[0]}).")
        elif "\n" in of[0] and form.startswith("{}(") and of[0].endswith(".T"):
            own = text[len(of[0]) :]
        return text, (*of[1], *(part for item in rest for part in item[1]), own)

    return st.one_of(
        st.builds(binary, st.sampled_from([" + ", "@", "  <\\\n"]), inner, inner),
        st.builds(after, st.just("-{}"), inner),
        st.builds(after, st.just("{}.relu( {} )"), inner, inner),
        st.builds(after, st.just("{}[{}]"), inner, inner),
        st.builds(after, st.just("{}.T"), inner),
        st.builds(after, st.just("{}({}, 'é𐐷')"), inner, inner),
    )


@given(st.recursive(st.sampled_from([("x", ()), ("ü", ()), ("𐐷", ())]), _grown, max_leaves=12))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_dispatch_of_any_expression_is_cut_out_exactly(tmp_path: Path, made: Texts) -> None:
    net = load(tmp_path, f"def run(x, ü, 𐐷):\n    'é'; return {made[0]}\n")
    sources = Sources(tmp_path)
    x, found = watched(sources)
    inside(net.run, x, x, x)
    places = [sources.locations[str(name)] for name in found]
    assert [cut_out(tmp_path / "net.py", place) for place in places] == list(made[1])
    assert all(place["binding"] == "exact" for place in places)


def test_columns_count_the_text_of_a_file_in_another_encoding(tmp_path: Path) -> None:
    text = "# coding: latin-1\ndef run(x):\n    'é'; return x + 'é'\n"
    module = load(tmp_path, text, encoding="latin-1")
    sources = Sources(tmp_path)
    x, found = watched(sources)
    inside(module.run, x)
    place = sources.locations[str(found[0])]
    assert (place["column"], place["endColumn"], place["binding"]) == (16, 23, "exact")


def test_a_definition_is_the_whole_function_below_its_decorators(tmp_path: Path) -> None:
    text = """
        import functools
        def deco(f):
            return functools.wraps(f)(lambda *a: f(*a))
        class Net:
            @deco
            @deco
            def forward(self, x):
                return x
        two = lambda x: x, lambda x: x
        """
    net = load(tmp_path, text)
    sources = Sources(tmp_path)
    function = net.Net.forward.__wrapped__.__wrapped__
    place = sources.locations[str(sources.map.function(function.__code__))]
    assert (place["binding"], place["function"]) == ("exact", "Net.forward")
    assert cut_out(tmp_path / "net.py", place) == "def forward(self, x):\n        return x"
    place = sources.locations[str(sources.map.function(net.two[1].__code__))]
    assert (place["binding"], place["line"], place["column"]) == ("ambiguous", 10, None)


# -- the file


EDITED = "import os\ndef first(x):\n    return x + 1\n\n\ndef second(x):\n    return x + 2\n"


@pytest.mark.parametrize(
    ("edited", "bound"),
    [
        (EDITED, ["exact", "exact"]),
        (EDITED + "# more\n", ["exact", "exact"]),
        ("\n" + EDITED, ["unmapped", "unmapped"]),
        (EDITED.replace("x + 1", "x + 3"), ["unmapped", "exact"]),
        (EDITED.replace("x + 1", "x  + 1"), ["unmapped", "exact"]),
        (EDITED.replace("x + 1", "x @ 1"), ["unmapped", "exact"]),
        (EDITED.replace("import os", "from __future__ import annotations"), ["unmapped", "unmapped"]),
        (EDITED.replace("\n\n\n", "\n\n\n\n"), ["exact", "unmapped"]),
        (EDITED.replace("return x + 2", "return (x +"), ["unmapped", "unmapped"]),
        ("\0" + EDITED, ["unmapped", "unmapped"]),
        ("(" * 5000 + EDITED, ["unmapped", "unmapped"]),
        ("", ["unmapped", "unmapped"]),
        (None, ["unmapped", "unmapped"]),
    ],
)
def test_code_that_the_saved_file_no_longer_holds_is_unmapped(
    tmp_path: Path, edited: str | None, bound: list[str]
) -> None:
    net = load(tmp_path, EDITED)
    if edited is None:
        (tmp_path / "net.py").unlink()
    else:
        (tmp_path / "net.py").write_text(edited)
    sources = Sources(tmp_path)
    x, found = watched(sources)
    inside(net.first, x)
    inside(net.second, x)
    places = [sources.locations[str(name)] for name in found]
    assert [place["binding"] for place in places] == bound
    assert [place["line"] for place in places] == [3, 7]  # what the interpreter says of what ran
    assert [place["column"] is None for place in places] == [binding == "unmapped" for binding in bound]


def test_code_that_was_changed_after_its_import_is_unmapped(tmp_path: Path) -> None:
    net = load(tmp_path, EDITED)
    net.first.__code__ = net.second.__code__.replace(co_firstlineno=2, co_name="first")
    sources = Sources(tmp_path)
    x, found = watched(sources)
    inside(net.first, x)
    assert sources.locations[str(found[0])]["binding"] == "unmapped"


def test_the_program_hears_no_warning_about_its_file_again(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        net = load(tmp_path, "def run(x):\n    assert x is not 1, '\\d'\n    return x + 1\n")
    kept, state = warnings.filters, list(warnings.filters)
    sources = Sources(tmp_path)
    x, found = watched(sources)
    inside(net.run, x)  # a warning is an error in these tests
    assert sources.locations[str(found[0])]["binding"] == "exact"
    assert warnings.filters is kept
    assert warnings.filters == state


def test_code_made_at_run_time_is_passed_and_a_missing_file_is_unmapped(tmp_path: Path) -> None:
    net = load(tmp_path, "def run(x, step):\n    return step(x)\n")
    names: dict[str, Any] = {}
    exec(compile("def step(x): return x + 1", "<string>", "exec"), names)
    exec(compile("def step(x): return x + 1", str(tmp_path / "cell.py"), "exec"), cells := {})
    sources = Sources(tmp_path)
    x, found = watched(sources)
    inside(net.run, x, names["step"])
    inside(net.run, x, cells["step"])
    assert [[place["function"] for place in sources.way(name)] for name in found] == [["run"], ["step", "run"]]
    cell = sources.locations[str(found[1])]
    assert cell["binding"] == "unmapped"
    assert sources.files[cell["file"]] == {"id": "f1", "root": "workspace", "path": "cell.py", "digest": None}


def test_code_that_is_passed_may_die(tmp_path: Path) -> None:
    sources = Sources(tmp_path)
    x, found = watched(sources)
    names: dict[str, Any] = {}
    for _ in range(50):
        exec(compile("def step(x): return x + 1", "<string>", "exec"), names)
        names["step"](x)
    assert len(found) == 50
    assert len(sources.map._kinds) < 50
    assert len(sources.map._kinds) == len(sources.map._kept)


# -- without columns


STRIPPED = """
import json, sys
from tensorviz_worker.sources import SourceMap
told = []
class Probe:
    def __add__(self, other):
        sources.here(2)
        return self
    __matmul__ = __getitem__ = __add__
sources = SourceMap(lambda line: told.append(json.loads(line)), sys.argv[1])
"""


def test_without_columns_the_kind_of_instruction_may_leave_one_expression(tmp_path: Path) -> None:
    (tmp_path / "probe.py").write_text(STRIPPED)
    program = tmp_path / "program.py"
    lines = ["def run(x):", "    x + len('ab')", "    x + (x + x)", "    return x[0] @ x", "run(Probe())"]
    program.write_text("\n".join(["from probe import *", *lines, "json.dump(told, sys.stdout)"]))
    done = subprocess.run(
        [sys.executable, "-X", "no_debug_ranges", str(program), str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "backend"), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        timeout=120,
        check=True,
    )
    records = [record["location"] for record in json.loads(done.stdout) if "location" in record]
    inner = [record for record in records if record["function"] == "run"]
    assert [(record["line"], record["column"], record["binding"]) for record in inner] == [
        (3, None, "candidate"),
        (4, None, "ambiguous"),
        (4, None, "ambiguous"),
        (5, None, "candidate"),
        (5, None, "candidate"),
    ]


def test_a_candidate_is_never_another_expression_than_the_exact_one() -> None:
    """Over real code: what the line alone leaves is compared with what the columns tell."""
    files = [functools.__file__, textwrap.__file__, traceback.__file__, json.decoder.__file__]
    counts = {"candidate": 0, "ambiguous": 0}
    for file in files:
        data = Path(file).read_bytes()
        saved = bindings.SavedSource(data)
        alone = [kinds for kinds in saved._lines.values() if kinds]
        assert alone
        for code in bindings._all_code(compile(data, file, "exec", dont_inherit=True)):
            assert saved.holds(code)
            for instruction in range(0, len(code.co_code), 2):
                place = bindings.place_of(code, instruction)
                sites = bindings._sites_of(bindings._name_of(code, instruction))
                if not sites or place.column is None or code.co_code[instruction] == 0:
                    continue
                assert saved.binding(code, instruction, place) == "exact"
                counts[saved.binding(code, instruction, bindings.Range(place.line))] += 1
    assert counts["candidate"] > counts["ambiguous"] > 0


# -- the way


def test_the_way_of_every_kind_of_frame_is_the_interpreters_own_stack(tmp_path: Path) -> None:
    net = load(
        tmp_path,
        """
        import asyncio, contextlib, functools
        def wrapped(f):
            @functools.wraps(f)
            def outer(*args):
                return f(*args)
            return outer
        @wrapped
        def plain(x): return x + 1
        def generator(x):
            yield x + 1
            yield from inner(x)
        def inner(x):
            yield x + 2
        async def coroutine(x):
            return await awaited(x)
        async def awaited(x):
            return x + 3
        @contextlib.contextmanager
        def context(x):
            yield x + 4
        class Lazy:
            def __init__(self, x): self.x = x
            @functools.cached_property
            def value(self): return self.x + 5
        def again(x, depth):
            return again(x, depth - 1) if depth else x + 6
        def run(x):
            plain(x)
            for _ in generator(x): pass
            (lambda x: x + 7)(x)
            [plain(x) for _ in "ab"]
            list(x + 8 for _ in "a")
            asyncio.run(coroutine(x))
            with context(x): pass
            Lazy(x).value
            exec("plain(x)", {"plain": plain, "x": x})
            again(x, 3)
        """,
    )
    sources = Sources(tmp_path)
    stacks: list[list[str]] = []
    found: list[str | None] = []

    def ask() -> None:
        stacks.append(stack_of(sys._getframe(2)))
        found.append(sources.map.here(3))

    inside(net.run, Probe(ask))
    assert len(found) == 12
    for name, stack in zip(found, stacks, strict=True):
        way = sources.way(name)
        ends = [f"{os.path.basename(sources.files[p['file']]['path'])}:{p['line']}" for p in way]
        names = [place["function"].rpartition(".")[2] for place in way]
        steps = [f"{end} {function}" for end, function in zip(ends, names, strict=True)]
        assert [*steps, "inside"] == [*stack[: len(steps)], stack[len(steps)].rpartition(" ")[2]]


def test_a_way_ends_at_a_module_call_and_lies_around_it_when_nothing_is_inside(tmp_path: Path) -> None:
    net = load(
        tmp_path,
        """
        def helper(x): return x + 1
        def forward(x): return helper(x)
        def run(x, inside):
            inside(forward, x)
            inside(x.relu)
        """,
    )
    sources = Sources(tmp_path)
    x, found = watched(sources)
    inside(net.run, x, inside)
    assert [[place["function"] for place in sources.way(name)] for name in found] == [["helper", "forward"], ["run"]]


def test_a_place_is_told_once_for_each_way(tmp_path: Path) -> None:
    text = "def leaf(x): return x + 1\ndef run(x):\n    leaf(x)\n    for _ in range(3): leaf(x)\n"
    net = load(tmp_path, text)
    sources = Sources(tmp_path)
    x, found = watched(sources)
    inside(net.run, x)
    assert found[1] == found[2] == found[3] != found[0]
    assert sources.way(found[0])[0]["line"] == sources.way(found[1])[0]["line"] == 1


def test_a_deep_way_is_cut_and_says_so(tmp_path: Path) -> None:
    net = load(tmp_path, "def again(x, depth):\n    return again(x, depth - 1) if depth else x + 1\n")
    sources = Sources(tmp_path)
    x, found = watched(sources)
    inside(net.again, x, 200)
    inside(net.again, x, 300)
    assert found[0] == found[1]
    assert len(sources.locations) == 64
    assert [place.get("callersOmitted") for place in sources.way(found[0])] == [None] * 63 + [True]
    inside(net.again, x, 63)
    assert [place.get("callersOmitted") for place in sources.way(found[2])] == [None] * 64


def test_the_share_for_locations_is_spent_once_and_known_places_stay(tmp_path: Path) -> None:
    net = load(tmp_path, "def run(x):\n" + "".join(f"    x + {number}\n" for number in range(50)))
    spent: list[int] = []
    sources = Sources(tmp_path, limit=4000, on_limit=lambda: spent.append(len(sources.locations)))
    x, found = watched(sources)
    inside(net.run, x)
    inside(net.run, x)
    known = [name for name in found[:50] if name is not None]
    assert 0 < len(known) < 50
    assert sources.size <= 4000
    assert spent == [len(sources.locations)]
    assert found[:50] == [*known, *[None] * (50 - len(known))] == found[50:]
    assert sources.map.cite(str(tmp_path / "other.py")) in sources.files


# -- exceptions


RAISING = """
    import contextlib
    def fails(): raise ValueError
    @contextlib.contextmanager
    def around():
        yield
    def inner():
        with around():
            fails()
    def forward():
        try:
            inner()
        finally:
            str(1)
    """


def test_an_exception_has_the_way_from_where_it_was_raised_through_what_still_runs(tmp_path: Path) -> None:
    net = load(tmp_path, RAISING)
    sources = Sources(tmp_path)

    def catch() -> list[str]:
        try:
            net.forward()
        except ValueError as error:
            return [place["function"] for place in sources.way(sources.map.raised(error))]
        return []

    names = [name.rpartition(".")[2] for name in inside(lambda: catch())]
    assert names == ["fails", "inner", "forward", "catch", "<lambda>"]


def test_an_exception_in_a_with_block_has_the_way_of_the_block(tmp_path: Path) -> None:
    """As it reaches a generator under ``contextmanager``, below which the block stands in the traceback."""
    net = load(tmp_path, RAISING)
    sources = Sources(tmp_path)
    ways: list[list[str]] = []

    @contextlib.contextmanager
    def recorded() -> Iterator[None]:
        try:
            yield
        except ValueError as error:
            ways.append([place["function"] for place in sources.way(sources.map.raised(error))])

    def block() -> None:
        with recorded():
            net.forward()

    inside(block)
    assert [name.rpartition(".")[2] for name in ways[0]] == ["fails", "inner", "forward", "block"]


# -- whole captures


def chain(snapshot: CaptureSnapshot, name: str | None) -> Iterator[Location]:
    while name is not None:
        place = snapshot.locations[int(name[1:])]
        yield place
        name = place.caller


def whole_way(snapshot: CaptureSnapshot, operation: Operation) -> list[str]:
    """From an operation to the program's entry: its way, and those of the calls around it."""
    places, last, call = list(chain(snapshot, operation.location)), operation.location, operation.invocation
    while call is not None:
        around = snapshot.invocations[int(call[1:])]
        if around.location != last:  # else the operation's own place lies around this call: nothing in it is ours
            places.extend(chain(snapshot, around.location))
        last, call = around.location, around.parent
    return [f"{os.path.basename(snapshot.source.files[int(p.file[1:])].path)}:{p.line}" for p in places]


NET = """
    import functools
    from torch import nn
    from helpers import Double, scale, ten
    class Leaf(nn.Module):
        def __init__(self, note):
            super().__init__()
            self.note, self.left = note, 2
        def forward(self, x):
            self.note(x * 2, 2)
            self.left -= 1
            return self(x) if self.left else x
    class Block(nn.Module):
        def __init__(self, note):
            super().__init__()
            self.note = note
            self.seq = nn.Sequential(nn.ReLU(), Leaf(note))
        def forward(self, x):
            self.note(x + 1, 1)
            x = self.helper(self.seq(x))
            self.note(functools.reduce(lambda a, b: b(a, self.note), [ten, Double.apply], x), 0)
            return x
        def helper(self, x):
            return scale(x, self.note)
    class Net(nn.Module):
        def __init__(self, note):
            super().__init__()
            self.block = Block(note)
        def forward(self, x):
            return self.block(x)
    """
HELPERS = """
    import functools, torch
    def scale(x, note):
        note(x * 3, 3)
        return note((lambda t: note(t * 4, 4))(x), 0)
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, note):
            return note(x * 5, 5)
        @staticmethod
        def backward(ctx, grad):
            return grad * 6, None
    @functools.singledispatch
    def ten(x, note):
        return note(x * 10, 10)
    """


def test_the_way_to_the_entry_is_the_interpreters_own_stack_through_modules_and_helpers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "helpers.py").write_text(textwrap.dedent(HELPERS))
    net = load(tmp_path, NET)
    stacks: list[tuple[int, list[str]]] = []

    def note(x: torch.Tensor, number: int) -> torch.Tensor:
        """Called on the line of an operation with this number, right after it."""
        if number:
            stacks.append((number, [entry.partition(" ")[0] for entry in stack_of(sys._getframe(1))]))
        return x

    snapshot = tensorviz.capture(net.Net(note), torch.ones(2, requires_grad=True)).snapshot
    ways = [
        (int(operation.args[1].value), whole_way(snapshot, operation))
        for operation in snapshot.operations
        if len(operation.args) > 1 and isinstance(operation.args[1], IntArgument)
    ]
    assert [number for number, _ in ways] == [1, 2, 2, 3, 4, 10, 5]
    assert ways == stacks
    relu = next(operation for operation in snapshot.operations if "relu" in operation.target)
    assert whole_way(snapshot, relu)[0].startswith("net.py")  # nn.ReLU and nn.Sequential are torch's


def test_bindings_of_a_capture_cover_workspace_and_library(tmp_path: Path) -> None:
    (tmp_path / "helpers.py").write_text(textwrap.dedent(HELPERS))
    file = tmp_path / "net.py"
    ending = "import torch\ndef example_inputs(): return torch.ones(2),\nnet = Net(lambda x, _: x)\n"
    file.write_text(textwrap.dedent(NET) + ending)
    snapshot = capture(file, "net").snapshot
    roots = {place.binding: set() for place in snapshot.locations}
    for place in snapshot.locations:
        roots[place.binding].add(snapshot.source.files[int(place.file[1:])].root)
    assert roots == {"exact": {"workspace"}, "unmapped": {"library"}}
    library = {place.function for place in snapshot.locations if place.binding == "unmapped"}
    assert "singledispatch.<locals>.wrapper" in library
    assert [d.location is not None for d in snapshot.definitions if d.type.startswith("net.")] == [True] * 3


def test_backward_of_the_programs_own_function_runs_below_the_line_that_began_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    helpers = load(tmp_path, HELPERS, "helpers")
    net = load(tmp_path, "def train(double, x):\n    y = double(x, lambda x, _: x).sum()\n    y.backward()\n")
    with tensorviz.record() as run:
        net.train(helpers.Double.apply, torch.ones(2, requires_grad=True))
    snapshot = run.snapshot
    names = [place.function for place in chain(snapshot, last_of(snapshot, "aten.mul.Tensor"))]
    assert names[:2] == ["Double.backward", "train"]


def last_of(snapshot: CaptureSnapshot, target: str) -> str | None:
    return [operation.location for operation in snapshot.operations if operation.target == target][-1]


def test_a_capture_whose_places_do_not_fit_is_partial_and_whole_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = "        x = next_of(x)\n" * 300  # three places each: the sum, and the calls in which it is made
    net = load(
        tmp_path,
        f"from torch import nn\ndef one_more(x):\n    return x + 1\ndef next_of(x):\n    return one_more(x)\n"
        f"class Net(nn.Module):\n    def forward(self, x):\n{lines}        return x\n",
    )
    run = tensorviz.capture(net.Net(), torch.ones(2), limits=Limits(bytes=320_000))
    snapshot = run.snapshot
    assert [(reason.code, reason.count) for reason in snapshot.reasons] == [("location_limit", 1)]
    assert len(snapshot.operations) == 300
    assert snapshot.operations[-1].location is None
    assert snapshot.operations[0].location is not None
