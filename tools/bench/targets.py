"""What was measured, against what was aimed at. What was not measured is neither reached nor missed."""

from collections.abc import Iterator
from dataclasses import dataclass

from .report import Json, Row, rows

TRANSFORMERS = ("gpt2", "bert", "t5", "whisper")
FULL = ("gpt2", "bert", "t5", "whisper", "resnet50")
_GIB = 2**30


@dataclass(frozen=True)
class Target:
    """``measured`` is None when the run left it out, or when ``fails`` names the peer that has no figure to give."""

    what: str
    measured: float | None
    limit: float
    at_most: bool = True
    unit: str = "x"
    fails: str | None = None

    @property
    def verdict(self) -> str:
        if self.fails:
            return "missed" if self.fails == "ours" else f"{self.fails} fails"
        if self.measured is None:
            return "not measured"
        reached = self.measured <= self.limit if self.at_most else self.measured >= self.limit
        return "reached" if reached else "missed"


def targets(cases: list[Json], host: Json | None) -> Iterator[Target]:
    found = {(case["model"], case["size"]): {row.peer: row for row in rows(case)} for case in cases}
    tiny, full = ({model: peers for (model, at), peers in found.items() if at == size} for size in ("tiny", "full"))
    for model in ("mlp", *TRANSFORMERS):
        limit = 2.5 if model == "mlp" else 1.8
        yield _target(f"ours, against an empty mode: {model}", tiny.get(model), "ours", "empty", limit)
    for peer, limit in (("debug_mode", 2.0), ("execution_trace", 1.7), ("torchlens", 60.0)):
        for model in ("mlp", *TRANSFORMERS):
            yield _target(f"{peer}, against ours: {model}", tiny.get(model), peer, "ours", limit, at_most=False)
    for model in FULL:
        yield _target(f"ours, against eager, full size: {model}", full.get(model), "ours", "eager", 1.15)
    yield from _memory(cases, host)
    yield from _host(host or {})


def _target(
    what: str, peers: dict[str, Row] | None, above: str, below: str, limit: float, at_most: bool = True
) -> Target:
    """The ratio of two peers that ran the same case, over the empty mode that each had beside it."""
    if peers is None or above not in peers or below not in peers:
        return Target(what, None, limit, at_most)
    fails = next((name for name in (below, above) if peers[name].failure), None)
    if fails:
        return Target(what, None, limit, at_most, fails=fails)
    top, bottom = peers[above], peers[below]
    ratio = top.over_eager if below == "eager" else top.over_empty / bottom.over_empty
    return Target(what, ratio, limit, at_most)


def _memory(cases: list[Json], host: Json | None) -> Iterator[Target]:
    for case in cases:
        held, capture = case["held"], (host or {}).get("ingest", {}).get(f"{case['model']}-{case['size']}")
        measured = (held["python"] + held["journal"]) / capture["bytes"] if held and capture else None
        yield Target(f"memory held, against the capture: {case['model']}, {case['size']}", measured, 3.0)


def _host(host: Json) -> Iterator[Target]:
    llama, validate = host.get("llama", {}), host.get("validate", {})
    complete = float(llama.get("status") == "complete") if llama else None
    yield Target("Llama 70B under --fake is complete (1: yes)", complete, 1.0, False, "")
    resident = llama["resident"] / _GIB if "resident" in llama else None
    yield Target("Llama 70B under --fake, resident memory of the worker", resident, 1.0, unit=" GiB")
    seconds = validate["validate"] + validate["index"] if validate else None
    yield Target("validate and retain a capture of 10 MB", seconds, 0.35, unit=" s")


def table(found: list[Target]) -> Iterator[str]:
    width = max(len(target.what) for target in found)
    for target in found:
        measured = "" if target.measured is None else f"{target.measured:.2f}{target.unit}"
        limit = f"{'<=' if target.at_most else '>='} {target.limit:g}{target.unit}"
        yield f"{target.what:<{width}} {measured:>10}  {limit:<11} {target.verdict}"
