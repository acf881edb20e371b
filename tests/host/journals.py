"""A journal as the worker writes it: recorded once, by the real one."""

import sys
import tempfile
from functools import cache
from pathlib import Path

from tensorviz import planning, supervisor
from tensorviz.contracts.attempt import CaptureRequest

MODEL = """
import torch

class Double(torch.nn.Module):
    def forward(self, x):
        return x.neg()

example_inputs = (torch.ones(2),)
"""


@cache
def small() -> bytes:
    """One call of a module with one operation."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "double.py").write_text(MODEL)
        request = CaptureRequest(file="double.py", python=sys.executable)
        plan = planning.resolve(request, Path(folder), "att-0123456789abcdef")
        run = supervisor.run(plan)
    assert b'{"finish"' in run.journal, run.log
    return run.journal


def refusing(code: str) -> bytes:
    return f'{{"problem":{{"code":"{code}","detail":"nothing","hint":null}}}}\n'.encode()
