"""Who may import whom: the rules that import-linter (see pyproject.toml) cannot say."""

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

BACKEND = Path(__file__).resolve().parent.parent / "backend"
WORKER_FILES = sorted((BACKEND / "tensorviz_worker").rglob("*.py"))


def imported_roots(file: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name.partition(".")[0], node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.partition(".")[0], node.lineno


@pytest.mark.parametrize("file", WORKER_FILES, ids=lambda file: file.name)
def test_the_worker_imports_only_the_standard_library_torch_and_itself(file: Path) -> None:
    allowed = sys.stdlib_module_names | {"torch", "tensorviz_worker"}
    strangers = [f"{file.name}:{line}: {root}" for root, line in imported_roots(file) if root not in allowed]
    assert strangers == []


def test_importing_every_host_module_loads_neither_torch_nor_numpy_nor_the_worker() -> None:
    program = """
import importlib, json, pkgutil, sys, tensorviz
names = [m.name for m in pkgutil.walk_packages(tensorviz.__path__, "tensorviz.") if "inprocess" not in m.name]
for name in names:
    if not name.endswith("__main__"):
        importlib.import_module(name)
print(json.dumps({"imported": names, "loaded": sorted({"torch", "numpy", "tensorviz_worker"} & set(sys.modules))}))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["loaded"] == []
    assert "tensorviz.contracts.capture" in seen["imported"]
