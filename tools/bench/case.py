"""One model at one size: ``python -m bench.case`` reads a Request on its standard input and prints a Result.

The model is built once. Then every peer gets a process of its own by fork, so that what it does to torch reaches
nobody else, and the processes take turns, one at a time, in an order that changes with each round. Each turn begins
after a full run of the cyclic collector, which stays on.
"""

import dataclasses
import gc
import importlib
import json
import logging
import multiprocessing
import os
import platform
import random
import resource
import signal
import sys
import tracemalloc
import warnings
from dataclasses import dataclass
from importlib import metadata
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Any

import torch

from .models import Case, Size, build, rehearsal
from .peers import BASELINES, LOAD_COMPILER, PEERS, Clock, Counting, record

_PATIENCE = 120.0  # seconds that one answer may take
_SHORT = 0.1  # a run shorter than this is repeated within its turn
_REPEATS = 3
_LEAST_TURNS = 3
_KIB = 1 if sys.platform == "darwin" else 1024


@dataclass(frozen=True)
class Request:
    model: str
    size: Size
    peers: tuple[str, ...]
    rounds: int
    budget: float  # seconds for all turns of one peer, who gets fewer when it is slow
    grad: bool
    journal: str  # where a journal of ours is left for the host's measurements


@dataclass(frozen=True)
class Measured:
    """What one peer did. Each of ``turns`` is the CPU seconds of the eager run, the empty mode and this peer."""

    failure: str | None = None
    first: float = 0.0
    loading: int = 0  # bytes resident after the rehearsal, at most
    peak: int = 0  # bytes resident after the first run, at most
    turns: list[tuple[float, float, float]] = dataclasses.field(default_factory=list)
    register: float | None = None


@dataclass(frozen=True)
class Held:
    """Bytes of Python's that recording held at the end of the forward, and at most at any moment; and the journal's."""

    python: int
    peak: int
    journal: int


@dataclass(frozen=True)
class Result:
    model: str
    size: str
    operations: int
    peers: dict[str, Measured]
    held: Held | None
    versions: dict[str, str]


# ---------------------------------------------------------------- in the process of a peer


def serve(pipe: Connection, name: str, case: Case) -> None:
    """Tells of the first run, then answers each number of runs with the seconds that they took."""
    try:
        pipe.send(_first(name, case))
        while repeats := pipe.recv():
            if name not in BASELINES:  # those leave nothing to collect
                gc.collect()
            pipe.send([_run(name, case) for _ in range(repeats)])
    except Exception as error:
        pipe.send(describe(error))


def _first(name: str, case: Case) -> dict[str, float]:
    _run(name, rehearsal())
    loading = _peak()
    gc.collect()
    return _run(name, case) | {"loading": loading, "peak": _peak()}


def _run(name: str, case: Case) -> dict[str, float]:
    clock = Clock()
    PEERS[name](case, clock)
    return clock.seconds


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _KIB


def _be_silent() -> None:
    warnings.simplefilter("ignore")
    logging.disable()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (1, 2):
        os.dup2(nowhere, descriptor)


def describe(error: BaseException) -> str:
    first = (str(error).strip().splitlines() or [""])[0]
    return f"{type(error).__name__}: {first}"[:200]


def serve_held(pipe: Connection, path: str, case: Case) -> None:
    try:
        pipe.send(_held(case, Path(path)))
    except Exception as error:
        pipe.send(describe(error))


def _held(case: Case, path: Path) -> Held:
    """Allocations of Python's, which torch's memory is not among."""
    case.forward()  # what the model allocates at its first call is no longer counted
    _run("ours", rehearsal())
    tracemalloc.start()
    gc.collect()
    before = tracemalloc.get_traced_memory()[0]
    at_end: list[int] = []
    journal = record(case, Clock(), path, lambda: at_end.append(tracemalloc.get_traced_memory()[0]))
    return Held(at_end[0] - before, tracemalloc.get_traced_memory()[1] - before, journal)


# ---------------------------------------------------------------- in the process that they were forked from


class Process:
    """A forked process at the other end of a pipe. Whatever it does, or does not do, becomes an answer.

    Not one of multiprocessing's own: TorchLens refuses to work in those.
    """

    def __init__(self, target: Any, what: str, case: Case) -> None:
        self._pipe, far = multiprocessing.Pipe()
        self._pid = os.fork()
        if self._pid == 0:
            try:
                _be_silent()
                target(far, what, case)
            finally:
                os._exit(0)
        far.close()

    def ask(self, repeats: int) -> Any:
        self._pipe.send(repeats)
        return self.answer()

    def answer(self) -> Any:
        """A string is a failure."""
        if not self._pipe.poll(_PATIENCE):
            return f"TimeoutError: no answer within {_PATIENCE:.0f} s"
        try:
            return self._pipe.recv()
        except EOFError:
            return "ProcessDied: it ended without an answer"

    def close(self) -> None:
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        self._pipe.close()


class Peer:
    """One peer's part in the rounds: it drops out when it fails."""

    def __init__(self, name: str, case: Case) -> None:
        self._process = Process(serve, name, case)
        self._registered: list[float] = []
        self._turns: list[tuple[float, float, float]] = []
        answer = self._process.answer()
        self.failure: str | None = answer if isinstance(answer, str) else None
        self._first: dict[str, float] = {} if isinstance(answer, str) else answer
        self.is_short = self._first.get("run", 0.0) < _SHORT
        self._repeats = 1 + _REPEATS if self.is_short else 1

    def take(self) -> float:
        """CPU seconds of the peer's next turn."""
        answer = self._process.ask(self._repeats)
        if isinstance(answer, str):
            self.failure = answer
            return 0.0
        timed = answer[1:] or answer  # of several, the first only brings the caches back
        self._registered += [run["register"] for run in timed if "register" in run]
        return median(run["run"] for run in timed)

    def keep(self, eager: float, empty: float, own: float) -> None:
        if self.failure is None:
            self._turns.append((eager, empty, own))

    def goes_on(self, budget: float) -> bool:
        """Whether there is time for another turn. It is estimated, so that other work does not make for fewer."""
        if self.failure is not None:
            return False
        return (len(self._turns) + 1) * self._repeats * self._first["run"] < budget or len(self._turns) < _LEAST_TURNS

    def finish(self) -> Measured:
        self._process.close()
        if self.failure is not None:
            return Measured(self.failure)
        first = self._first
        register = median(self._registered) if self._registered else None
        return Measured(None, first["run"], int(first["loading"]), int(first["peak"]), self._turns, register)


def measure(request: Request) -> Result:
    case = build(request.model, request.size)
    gc.collect()
    peers = _start(request.peers, case)
    for number in range(request.rounds):
        _round(peers, random.Random(number), request.budget)
    measured = {name: peer.finish() for name, peer in peers.items()}
    held = _ask_once(serve_held, request.journal, case) if "ours" in request.peers else None
    return Result(
        request.model,
        request.size,
        _operations(case),
        measured,
        held if isinstance(held, Held) else None,
        _versions(),
    )


def _versions() -> dict[str, str]:
    installed = {name: _version(name) for name in ("torch", "transformers", "torchlens", "torchview")}
    return {"python": platform.python_version()} | {name: found for name, found in installed.items() if found}


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _start(names: tuple[str, ...], case: Case) -> dict[str, Peer]:
    """The compiler, which takes seconds to load, is loaded once for all peers that load it; the others are without."""
    peers = {name: Peer(name, case) for name in names if name not in LOAD_COMPILER}
    importlib.import_module("torch._dynamo")
    return {name: peers.get(name) or Peer(name, case) for name in names}


def _round(peers: dict[str, Peer], order: random.Random, budget: float) -> None:
    """A turn for each. Where that is cheap, each turn has baselines of its own just before; else the round has them."""
    baselines = [peers[name] for name in BASELINES]
    own_baselines = all(peer.is_short for peer in baselines)
    eager, empty = (peer.take() for peer in baselines)
    for name in order.sample(list(peers), len(peers)):
        peer = peers[name]
        if not peer.goes_on(budget):
            continue
        if own_baselines:
            eager, empty = (each.take() for each in baselines)
        own = {"eager": eager, "empty": empty}.get(name)
        peer.keep(eager, empty, peer.take() if own is None else own)


def _ask_once(target: Any, what: str, case: Case) -> Any:
    process = Process(target, what, case)
    try:
        return process.answer()
    finally:
        process.close()


def _operations(case: Case) -> int:
    with Counting() as counting:
        case.forward()
    return counting.operations


def main() -> None:
    words = json.load(sys.stdin)
    request = Request(**words | {"peers": tuple(words["peers"])})
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    with torch.set_grad_enabled(request.grad):
        print(json.dumps(dataclasses.asdict(measure(request))))


if __name__ == "__main__":
    main()
