"""A wheel carries what a user needs, and works where pip alone has put it."""

import os
import shutil
import subprocess
import sys
import venv
import zipfile
from importlib.metadata import distribution, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "tensorviz-capture"


def build_wheel(tree: Path, into: Path) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(into), str(tree)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def copy_of_the_tree(into: Path) -> Path:
    """The files that a build reads, without the page."""
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, into / name)
    for name in ("backend", "schemas", "tools"):
        shutil.copytree(ROOT / name, into / name, ignore=shutil.ignore_patterns("__pycache__", "page"))
    return into


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    done = build_wheel(ROOT, out)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel and the dependencies that it declares: pip itself finds nothing missing."""
    home = tmp_path_factory.mktemp("installed")
    venv.create(home, with_pip=True)
    (site,) = home.glob("lib/python*/site-packages")
    for entry in declared_files():
        if not (site / entry.name).exists():
            (site / entry.name).symlink_to(entry)
    command = [str(home / "bin/python"), "-m", "pip", "install", "--no-index", "--quiet", str(wheel)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return home


def declared_files() -> set[Path]:
    """What the host's dependencies, and theirs, have put into this environment: top-level files and folders."""
    waiting, seen, entries = [Requirement(PACKAGE)], set[str](), set[Path]()
    while waiting:
        wanted = waiting.pop()
        if str(wanted) in seen:
            continue
        seen.add(str(wanted))
        found = distribution(wanted.name)
        if wanted.name != PACKAGE:
            heads = {file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}
            entries |= {Path(str(found.locate_file(head))) for head in heads}
        needed = [Requirement(text) for text in found.requires or ()]
        waiting += [item for item in needed if applies(item, wanted.extras)]
    return entries


def applies(requirement: Requirement, extras: set[str]) -> bool:
    marker = requirement.marker
    return marker is None or any(marker.evaluate({"extra": extra}) for extra in extras | {""})


def run_installed(home: Path, *arguments: str, cwd: Path) -> "subprocess.CompletedProcess[str]":
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "TENSORVIZ", "VIRTUAL"))}
    command = [str(home / "bin/tensorviz"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, cwd=cwd, env=clean)


def test_the_wheel_carries_host_worker_page_and_schemas_and_nothing_else(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {name.partition("/")[0] for name in names} == {
        "tensorviz",
        "tensorviz_worker",
        f"tensorviz_capture-{version(PACKAGE)}.dist-info",
    }
    sources = {
        str(file.relative_to(ROOT / "backend"))
        for package in ("tensorviz", "tensorviz_worker")
        for file in (ROOT / "backend" / package).rglob("*.py")
    }
    schemas = {f"tensorviz/schemas/{file.name}" for file in (ROOT / "schemas").glob("*.json")}
    assert schemas
    assert sources | schemas | {"tensorviz/page/index.html", "tensorviz/py.typed"} <= names
    assert not [name for name in names if name.endswith((".pyc", ".map")) or "node_modules" in name]


def test_the_wheel_declares_the_licence_the_command_and_no_torch(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        info = f"tensorviz_capture-{version(PACKAGE)}.dist-info"
        metadata = opened.read(f"{info}/METADATA").decode()
        assert opened.read(f"{info}/entry_points.txt").decode().split("\n")[1] == "tensorviz = tensorviz.edges.cli:main"
        assert f"{info}/licenses/LICENSE" in opened.namelist()
    assert "License-Expression: Apache-2.0\n" in metadata
    assert "Requires-Python: >=3.10\n" in metadata
    assert [line for line in metadata.splitlines() if line.startswith("Requires-Dist: torch")] == [
        "Requires-Dist: torch>=2.4; extra == 'torch'"
    ]


def test_a_wheel_without_the_page_is_refused_with_the_reason(tmp_path: Path) -> None:
    done = build_wheel(copy_of_the_tree(tmp_path), tmp_path / "dist")
    assert done.returncode != 0
    assert "backend/tensorviz/page/index.html is missing" in done.stdout + done.stderr
    assert not list(tmp_path.glob("dist/*.whl"))


def test_an_editable_install_needs_no_page(tmp_path: Path) -> None:
    tree = copy_of_the_tree(tmp_path)
    program = "import sys; from hatchling.build import build_editable; print(build_editable(sys.argv[1]))"
    command = [sys.executable, "-c", program, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=tree)
    assert done.returncode == 0, done.stderr
    assert not [name for name in zipfile.ZipFile(next(tmp_path.glob("*.whl"))).namelist() if "schemas" in name]


def test_the_installed_command_says_its_version_without_torch_anywhere(installed: Path, tmp_path: Path) -> None:
    done = run_installed(installed, "--version", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert version(PACKAGE) in done.stdout
    assert not list(installed.glob("lib/python*/site-packages/torch"))


def test_the_installed_command_captures_with_another_interpreter(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "tiny.py").write_text(
        "import torch\n\n\nclass Tiny(torch.nn.Module):\n    def forward(self, x):\n        return x.relu()\n\n\n"
        "def get_inputs():\n    return [torch.ones(2)]\n"
    )
    done = run_installed(
        installed, "capture", "tiny.py:Tiny", "--python", sys.executable, "--out", "tiny.json", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "tiny.json").stat().st_size > 0
