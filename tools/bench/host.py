"""What the host does with what was recorded: ``python -m bench.host PEERS_PYTHON JOURNAL...`` prints JSON.

Runs in the host's environment, without torch. Each journal is read into a capture, a capture of 10 MB is validated and
indexed as the host does before it retains one, and Llama 70B is captured by the real worker.
"""

import gc
import json
import os
import resource
import secrets
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from contracts.captures import large
from contracts.measure import OPERATIONS
from tensorviz.contracts.attempt import CaptureRequest
from tensorviz.contracts.capture import Exited, Limits
from tensorviz.contracts.validate import parse_capture
from tensorviz.errors import Refused
from tensorviz.ingest import Origin, assemble, ingest
from tensorviz.ledger import index
from tensorviz.planning import resolve
from tensorviz.supervisor import run

LLAMA = Path(__file__).with_name("llama_70b.py")
_ORIGIN = Origin("att-0000000000000000", {"kind": "in_process"}, Limits(), ())
_KIB = 1 if sys.platform == "darwin" else 1024
_TIMES = 3


def least(step: Callable[[], Any]) -> float:
    """CPU seconds of the fastest of some runs."""
    taken = []
    for _ in range(_TIMES):
        gc.collect()
        start = time.process_time()
        step()
        taken.append(time.process_time() - start)
    return min(taken)


def ingested(journal: bytes) -> dict[str, Any]:
    """A journal becomes a validated capture."""
    done = assemble(journal, Exited(kind="exited", code=0), _ORIGIN)
    document = orjson.loads(done.data)
    return {
        "seconds": least(lambda: assemble(journal, Exited(kind="exited", code=0), _ORIGIN)),
        "bytes": len(done.data),
        "status": done.summary.status,
        "reasons": [reason["code"] for reason in document["reasons"]],
        "operations": len(document["operations"]),
    }


def validated() -> dict[str, Any]:
    """What must be done to a capture before it is retained: structure, relations, where its items start."""
    data = orjson.dumps(large(OPERATIONS))
    document = orjson.loads(data)
    return {
        "bytes": len(data),
        "validate": least(lambda: parse_capture(data)),
        "index": least(lambda: index(data, document, orjson.dumps)),
    }


def llama(python: str) -> dict[str, Any]:
    """Of the children of this process, the worker is the one that holds the most."""
    request = CaptureRequest(file=str(LLAMA), target="llama_70b", python=python, fake=True, timeout=300.0)
    plan = resolve(request, LLAMA.parent, f"att-{secrets.token_hex(8)}")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = run(plan)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        summary = ingest(plan, done).summary
    except Refused as refused:
        return {"failure": str(refused.problem.detail)}
    return {
        "status": summary.status,
        "reasons": list(summary.reasons),
        "operations": summary.operations,
        "bytes": summary.bytes,
        "resident": after.ru_maxrss * _KIB,
        "seconds": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
    }


def main() -> None:
    python, journals = os.path.abspath(sys.argv[1]), sys.argv[2:]
    measured = {
        "llama": llama(python),
        "validate": validated(),
        "ingest": {Path(path).name: ingested(Path(path).read_bytes().rstrip(b"\0")) for path in journals},
    }
    print(json.dumps(measured))


if __name__ == "__main__":
    main()
