"""``python -m contracts.measure [FILE]`` in ``tests``: what CPU time reading a 10 MB capture takes.

With FILE the capture is left there, for ``npm run measure -- FILE`` in ``packages/contracts``.
"""

import gc
import json
import sys
from collections.abc import Callable
from pathlib import Path
from time import process_time

from pydantic_core import from_json

from tensorviz.contracts.capture import CaptureSnapshot
from tensorviz.contracts.relations import check
from tensorviz.contracts.validate import parse_capture

from .captures import large

OPERATIONS = 13_000


def best(step: Callable[[], object], times: int = 5) -> str:
    taken = []
    for _ in range(times):
        start = process_time()
        step()
        taken.append(process_time() - start)
    return f"{min(taken) * 1000:7.0f} ms"


def main() -> None:
    data = json.dumps(large(OPERATIONS), separators=(",", ":")).encode()
    print(f"{len(data) / 1e6:.1f} MB, {OPERATIONS} operations")
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_bytes(data)
    document = from_json(data, cache_strings="keys")
    capture = CaptureSnapshot.model_validate(document)
    print("parse_capture         ", best(lambda: parse_capture(data)))
    for collector in ("off", "on"):
        gc.disable() if collector == "off" else gc.enable()
        print(f"collector {collector}: JSON      ", best(lambda: from_json(data, cache_strings="keys")))
        print(f"collector {collector}: structure ", best(lambda: CaptureSnapshot.model_validate(document)))
        print(f"collector {collector}: relations ", best(lambda: check(capture)))


if __name__ == "__main__":
    main()
