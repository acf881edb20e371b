"""The Python API: records in the caller's own process, with the worker's recorder and the host's reader.

    run = tensorviz.capture(model, *args, **kwargs)      # one call
    with tensorviz.record(model) as run:                 # anything
        model(x)

Nothing is confined and nothing is killed here; a process that dies takes its recording with it.
"""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import torch

from tensorviz.contracts.capture import CaptureSnapshot, Exited, Limits
from tensorviz.contracts.validate import parse_capture
from tensorviz.errors import Refused
from tensorviz.ingest import Ingested, Origin, assemble
from tensorviz.output import write_whole
from tensorviz.views.outline import to_html, to_text
from tensorviz_worker import budget
from tensorviz_worker.journal import MemoryJournal, to_json
from tensorviz_worker.launch import environment
from tensorviz_worker.recorder import Recorder

_UNCONFINED = {"mechanism": "sandbox", "state": "unavailable", "reason": "recorded in the caller's own process"}


class Recording:
    """What was recorded. ``result`` is what the model returned, and raises what the model raised."""

    def __init__(self) -> None:
        self._ingested: Ingested | None = None
        self._refused: Refused | None = None
        self._snapshot: CaptureSnapshot | None = None
        self._returned: Any = None
        self.error: BaseException | None = None

    @property
    def snapshot(self) -> CaptureSnapshot:
        """The validated capture."""
        if self._snapshot is None:
            self._snapshot = parse_capture(self._done().data)
        return self._snapshot

    @property
    def status(self) -> Literal["complete", "partial"]:
        return self._done().summary.status

    @property
    def result(self) -> Any:
        if self.error is not None:
            raise self.error
        return self._returned

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes the canonical JSON, whole or not at all. Raises Refused when it cannot be written."""
        write_whole(Path(path), self._done().data)
        return Path(path)

    def __repr__(self) -> str:
        if self._ingested is None:
            return f"<tensorviz recording, {'not finished' if self._refused is None else 'nothing captured'}>"
        return to_text(self.snapshot)

    def _repr_html_(self) -> str:
        return to_html(self.snapshot)

    def _done(self) -> Ingested:
        if self._refused is not None:
            raise self._refused
        if self._ingested is None:
            raise RuntimeError("the recording has not finished: leave the 'with tensorviz.record(...)' block first")
        return self._ingested


def capture(model: torch.nn.Module, /, *args: Any, limits: Limits | None = None, **kwargs: Any) -> Recording:
    """Calls ``model(*args, **kwargs)`` once and records it. An exception of the model's is kept in ``error``."""
    run = Recording()
    try:
        with record(model, limits=limits, into=run):
            run._returned = model(*args, **kwargs)
    except Exception as error:
        if run._ingested is None:
            raise
        run.error = error
    return run


@contextmanager
def record(
    model: torch.nn.Module | None = None, *, limits: Limits | None = None, into: Recording | None = None
) -> Iterator[Recording]:
    """Records everything this thread runs inside the block.

    The parameters and modules of ``model`` have their names from the start; those of any other, once it is called.

    An exception leaves the block as it would without us, after what was seen is safe in the recording.
    """
    run = into if into is not None else Recording()
    limits = limits or Limits()
    journal = MemoryJournal()
    recorder = Recorder(journal, budget.Limits(**limits.model_dump()), os.getcwd())
    journal.write(f'{{"environment":{to_json(environment())}}}')
    journal.write(f'{{"execution":{to_json(_execution(model))}}}')
    if model is not None:
        recorder.describe(model)
    recorder.start()
    failure: BaseException | None = None
    try:
        yield run
    except BaseException as error:
        failure = error
        raise
    finally:
        recorder.stop(failure)
        origin = Origin(f"att-{secrets.token_hex(8)}", {"kind": "in_process"}, limits, (_UNCONFINED,))
        try:
            run._ingested = assemble(journal.getvalue(), Exited(kind="exited", code=0), origin)
        except Refused as error:  # told to those who ask for the capture; the program goes on
            run._refused = error.with_traceback(None)


def _execution(model: torch.nn.Module | None) -> dict[str, Any]:
    return {
        "file": None,
        "target": "block" if model is None else type(model).__qualname__,
        "targetKind": "script" if model is None else "instance",
        "inputs": {"kind": "caller", "name": None},
        "mode": "as_is",
        "fake": False,
        "gradEnabled": torch.is_grad_enabled(),
        "inferenceMode": torch.is_inference_mode_enabled(),
    }
