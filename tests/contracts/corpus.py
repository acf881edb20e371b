"""Reads ``tests/corpus``, which ``packages/contracts/test`` reads too: valid captures, and patches that break them."""

import copy
import json
from pathlib import Path
from typing import Any

Json = dict[str, Any]

FOLDER = Path(__file__).parents[1] / "corpus"
VALID: dict[str, Json] = {path.stem: json.loads(path.read_bytes()) for path in sorted(FOLDER.glob("valid/*.json"))}
INVALID: list[Json] = json.loads((FOLDER / "invalid.json").read_bytes())
BYTES: list[Json] = json.loads((FOLDER / "bytes.json").read_bytes())


def broken(case: Json) -> Json:
    """The base of a case with its patch applied, step by step: ``set`` a pointer ``to`` a value, or ``remove`` it."""
    document = copy.deepcopy(VALID[case["base"]])
    for step in case["patch"]:
        *above, last = (step.get("set") or step["remove"]).split("/")[1:]
        parent: Any = document
        for name in above:
            parent = parent[int(name) if isinstance(parent, list) else name]
        key: Any = int(last) if isinstance(parent, list) and last != "-" else last
        if "remove" in step:
            del parent[key]
        elif key == "-":
            parent.append(step["to"])
        else:
            parent[key] = step["to"]
    return document


def spelled(case: Json) -> bytes:
    """The bytes of a case: ``text``, ``hex``, or ``repeat``: what opens, how often, and what closes."""
    if "hex" in case:
        return bytes.fromhex(case["hex"])
    if "text" in case:
        return case["text"].encode()
    opening, times, closing = case["repeat"]
    return (opening * times + closing * times).encode()
