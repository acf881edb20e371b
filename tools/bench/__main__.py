"""Measures what recording costs, ours and others', and prints tables of ratios.

Every peer runs the same models, in turns, one thread, in processes of its own. `make bench` prepares the peers'
environment first. docs/benchmarks.md says what the columns mean.
"""

import argparse
import dataclasses
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from . import report, targets
from .case import Request
from .models import MODELS
from .peers import BASELINES, PEERS

ROOT = Path(__file__).resolve().parents[2]
SIZES = ("tiny", "full")
_DEADLINE = 900.0


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "python -m bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", type=_names(MODELS), default=tuple(MODELS), help=", ".join(MODELS))
    parser.add_argument("--sizes", type=_names(SIZES), default=SIZES, help="tiny: small tensors, full: real ones")
    parser.add_argument("--peers", type=_names(PEERS), default=tuple(PEERS), help=", ".join(PEERS))
    parser.add_argument("--rounds", type=int, default=15, help="turns of each peer at most (default: %(default)s)")
    parser.add_argument(
        "--budget", type=float, default=2.5, help="seconds of turns for a peer and case (default: %(default)s)"
    )
    parser.add_argument("--quick", action="store_true", help="tiny models, few rounds, none of the host's rows")
    parser.add_argument("--grad", action="store_true", help="with autograd on; without, as under torch.no_grad()")
    parser.add_argument("--check", action="store_true", help="compare with the targets; status 1 when one is missed")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything that was measured")
    parser.add_argument(
        "--python", default=_interpreter(".venv-bench"), help="interpreter that has torch and the peers"
    )
    parser.add_argument("--host-python", default=_interpreter(".venv"), help="interpreter that has what the host needs")
    parser.add_argument("--backend", type=Path, default=ROOT / "backend", help="folder of the recorder to measure")
    return parser.parse_args(words)


def _interpreter(environment: str) -> str:
    made = ROOT / environment / "bin/python"
    return str(made) if made.exists() else sys.executable


def _names(known: Any) -> Any:
    def parse(text: str) -> tuple[str, ...]:
        chosen = tuple(text.split(","))
        unknown = ", ".join(name for name in chosen if name not in known)
        if unknown:
            raise argparse.ArgumentTypeError(f"{unknown}: not among {', '.join(known)}")
        return chosen

    return parse


def measure(request: Request, options: argparse.Namespace) -> dict[str, Any]:
    done = subprocess.run(
        [options.python, "-m", "bench.case"],
        input=json.dumps(dataclasses.asdict(request)),
        env=os.environ | environment(options.backend),
        stdout=subprocess.PIPE,
        text=True,
        timeout=_DEADLINE,
        check=True,
    )
    return json.loads(done.stdout)


def environment(backend: Path) -> dict[str, str]:
    """One thread, nothing from the network, and the recorder from the working tree."""
    return {
        "PYTHONPATH": os.pathsep.join([str(backend), str(ROOT / "tools")]),
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }


def requests(options: argparse.Namespace, folder: str) -> list[Request]:
    sizes = ("tiny",) if options.quick else options.sizes
    peers = tuple(dict.fromkeys(BASELINES + options.peers))
    rounds, budget = (5, 1.0) if options.quick else (options.rounds, options.budget)
    return [
        Request(model, size, peers, rounds, budget, options.grad, os.path.join(folder, f"{model}-{size}"))
        for size in sizes
        for model in options.models
    ]


def measure_host(options: argparse.Namespace, journals: list[str]) -> dict[str, Any]:
    """In the environment that the host runs in, which has no need of torch."""
    path = os.pathsep.join(map(str, (options.backend, ROOT / "tools", ROOT / "tests")))
    done = subprocess.run(
        [options.host_python, "-m", "bench.host", options.python, *journals],
        env=os.environ | environment(options.backend) | {"PYTHONPATH": path},
        stdout=subprocess.PIPE,
        text=True,
        timeout=_DEADLINE,
        check=True,
    )
    return json.loads(done.stdout)


def main() -> int:
    options = arguments()
    load = [os.getloadavg()[0]]
    with tempfile.TemporaryDirectory() as folder:
        cases = list(measured_cases(options, folder))
        journals = sorted(map(str, Path(folder).iterdir()))
        host = None if options.quick else measure_host(options, journals)
    print("\n".join([*report.failures(cases), *report.host(host or {}), report.versions(cases)]), end="\n\n")
    found = list(targets.targets(cases, host))
    if options.check:
        print("\n".join(targets.table(found)))
    if options.json:
        load.append(os.getloadavg()[0])
        write(
            options.json, {"machine": {"processors": os.cpu_count(), "load": load}, "host": host, "cases": cases}, found
        )
    return int(options.check and any(target.verdict == "missed" for target in found))


def measured_cases(options: argparse.Namespace, folder: str) -> Iterator[dict[str, Any]]:
    for request in requests(options, folder):
        case = measure(request, options)
        print("\n".join(report.table(case)), end="\n\n", flush=True)
        yield case


def write(path: Path, measured: dict[str, Any], found: list[targets.Target]) -> None:
    rows = [
        dataclasses.asdict(row) | {"model": case["model"], "size": case["size"]}
        for case in measured["cases"]
        for row in report.rows(case)
    ]
    checked = [dataclasses.asdict(target) | {"verdict": target.verdict} for target in found]
    path.write_text(json.dumps({"rows": rows, "targets": checked, **measured}, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
