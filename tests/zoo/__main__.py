"""Records and replays every model of the zoo, prints the table and writes docs/zoo.md. `make zoo` runs it.

    python -m zoo [--family NAME ...]     some families alone: what the document says of the others stays

Each family runs in a process of its own, with bounded memory; a model that takes its process down is a row too.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from zoo.examination import Row, row_of
from zoo.families import FAMILIES, entries_of
from zoo.table import DOCUMENT, document, line, summary, tables, written

TESTS = Path(__file__).resolve().parents[1]
ROOT = TESTS.parent
PYTHON = {"timm_models": os.environ.get("TENSORVIZ_ZOO_PYTHON") or str(ROOT / ".venv-zoo/bin/python")}
QUIET = {**os.environ, "TRANSFORMERS_VERBOSITY": "error", "HF_HUB_OFFLINE": "1"}
SECONDS = 600
BYTES = 8 * 2**30


def rows(family: str) -> Iterator[Row]:
    """The rows of a family. A process that ends early is replaced by one that goes on after the model it ended at."""
    done = 0
    entries = entries_of(family)
    while done < len(entries):
        command = [PYTHON.get(family, sys.executable), "-m", "zoo", "--child", family, str(done)]
        with subprocess.Popen(command, cwd=TESTS, env=QUIET, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for text in process.stdout:
                done += 1
                yield Row(**json.loads(text))
        if done < len(entries):
            entry = entries[done]
            done += 1
            yield Row(
                entry.name, entry.family, "none", "", 0, "", f"ended its process with status {process.returncode}"
            )


def child(family: str, start: int) -> None:
    """One line of JSON for each entry; whatever else is printed goes to standard error."""
    import resource
    import signal
    import warnings

    import torch

    resource.setrlimit(resource.RLIMIT_DATA, (BYTES, BYTES))
    signal.alarm(SECONDS)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    out, sys.stdout = sys.stdout, sys.stderr
    for entry in entries_of(family)[start:]:
        print(json.dumps(asdict(row_of(entry))), file=out, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m zoo", description=__doc__)
    parser.add_argument("--family", action="append", choices=FAMILIES)
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.child:
        child(chosen.child[0], int(chosen.child[1]))
        return 0
    found = []
    for family in chosen.family or FAMILIES:
        for row in rows(family):
            found.append(row)
            print(line(row), flush=True)
    kept = written() if chosen.family else {}
    DOCUMENT.write_text(document(kept | tables(found)))
    failures = [row for row in found if row.failure]
    print(summary(tables(found)))
    for row in failures:
        print(f"zoo: {row.name} {row.failure}", file=sys.stderr)
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
