"""Small model files that the tests write, and the command run on them."""

import os
import subprocess
import sys
from pathlib import Path

BACKEND = Path(__file__).resolve().parents[2] / "backend"

GOOD = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 8)
        self.second = nn.Linear(8, 2)

    def forward(self, x):
        return self.second(self.first(x).neg())


def example_inputs():
    return (torch.ones(3, 4),)


def half():
    return (torch.ones(1, 4),)
"""
BAD = GOOD.replace("nn.Linear(8, 2)", "nn.Linear(9, 2)")
LOOP = GOOD.replace("return self.second(self.first(x).neg())", "x = self.first(x)\n        while True: x = x + 0")


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    return folder


def environment(temporary: Path, **more: str) -> dict[str, str]:
    given = {name: value for name, value in os.environ.items() if name not in ("TENSORVIZ_DEBUG", "FORCE_COLOR")}
    temporary.mkdir(exist_ok=True)
    fixed = {"PYTHONPATH": str(BACKEND), "TENSORVIZ_PYTHON": sys.executable, "TMPDIR": str(temporary)}
    return given | fixed | {"XDG_RUNTIME_DIR": str(temporary)} | more


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "tensorviz", *arguments]


def tensorviz(folder: Path, *arguments: str, **more: str) -> "subprocess.CompletedProcess[str]":
    """Runs the command in the folder. It leaves nothing in the temporary folder, and no traceback of ours."""
    temporary = folder / ".temporary"
    done = subprocess.run(
        command(*arguments),
        cwd=folder,
        env=environment(temporary, **more),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert [item.name for item in temporary.iterdir()] == []
    assert "tensorviz/" not in done.stderr.replace("tensorviz/issues", "")
    return done
