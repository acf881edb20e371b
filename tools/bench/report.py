"""Results as numbers and as tables. A ratio is a median over turns, each with baselines of its own."""

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median, quantiles
from typing import Any

Json = dict[str, Any]

COLUMNS = (
    ("peer", "{:<16}"),
    ("x eager", "{:>9}"),
    ("x empty", "{:>9}"),
    ("spread", "{:>7}"),
    ("us/op", "{:>9}"),
    ("ms", "{:>9}"),
    ("first ms", "{:>9}"),
    ("register ms", "{:>12}"),
    ("peak MB", "{:>9}"),
    ("load MB", "{:>8}"),
    ("rounds", "{:>7}"),
)


@dataclass(frozen=True)
class Row:
    """One peer at one case. Megabytes are beyond what the eager run's process had at its peak."""

    peer: str
    failure: str | None
    over_eager: float = 0.0
    over_empty: float = 0.0
    spread: float = 0.0  # half the distance between the quartiles of over_eager, relative to it
    microseconds: float = 0.0  # for each operation, over eager
    milliseconds: float = 0.0
    first: float = 0.0
    register: float | None = None
    peak: float = 0.0
    loading: float = 0.0
    rounds: int = 0


def rows(case: Json) -> list[Row]:
    return [_row(case, name, measured) for name, measured in case["peers"].items()]


def _row(case: Json, name: str, measured: Json) -> Row:
    if measured["failure"] is not None:
        return Row(name, measured["failure"])
    eager, turns = case["peers"]["eager"], measured["turns"]
    against = [own / eager for eager, _, own in turns]
    return Row(
        name,
        None,
        over_eager=median(against),
        over_empty=median(own / empty for _, empty, own in turns),
        spread=_spread(against),
        microseconds=median(own - eager for eager, _, own in turns) / case["operations"] * 1e6,
        milliseconds=median(own for _, _, own in turns) * 1e3,
        first=measured["first"] * 1e3,
        register=None if measured["register"] is None else measured["register"] * 1e3,
        peak=(measured["peak"] - eager["peak"]) / 2**20,
        loading=(measured["loading"] - eager["loading"]) / 2**20,
        rounds=len(turns),
    )


def _spread(values: list[float]) -> float:
    if len(values) < 2:
        return 0.0
    low, middle, high = quantiles(values, n=4)
    return (high - low) / 2 / middle


def table(case: Json) -> Iterator[str]:
    yield f"{case['model']}, {case['size']}: {case['operations']} operations"
    yield " ".join(form.format(title) for title, form in COLUMNS)
    for row in rows(case):
        cells = [row.peer, f"FAILS  {row.failure}"] if row.failure else _cells(row)
        yield " ".join(form.format(cell) for cell, (_, form) in zip(cells, COLUMNS, strict=False)).rstrip()
    if case["held"]:
        end, most, journal = (case["held"][key] / 2**20 for key in ("python", "peak", "journal"))
        yield f"ours holds {end:.1f} MB after the forward, {most:.1f} MB at most, and {journal:.1f} MB of journal"


def _cells(row: Row) -> list[str]:
    return [
        row.peer,
        f"{row.over_eager:.2f}",
        f"{row.over_empty:.2f}",
        f"±{row.spread:.0%}",
        f"{row.microseconds:.2f}",
        f"{row.milliseconds:.2f}",
        f"{row.first:.1f}",
        "" if row.register is None else f"{row.register:.2f}",
        f"{row.peak:.1f}",
        f"{row.loading:.1f}",
        f"{row.rounds}",
    ]


def failures(cases: list[Json]) -> Iterator[str]:
    """Each peer's failures, the models that share one together."""
    seen: dict[tuple[str, str], list[str]] = {}
    for case in cases:
        for name, measured in case["peers"].items():
            if measured["failure"] is not None:
                seen.setdefault((name, measured["failure"]), []).append(f"{case['model']} ({case['size']})")
    for (name, failure), models in seen.items():
        yield f"{name} fails on {', '.join(models)}: {failure}"


def versions(cases: list[Json]) -> str:
    return ", ".join(f"{name} {version}" for name, version in cases[0]["versions"].items())


def host(measured: Json) -> Iterator[str]:
    for name, read in measured.get("ingest", {}).items():
        reasons = f" ({', '.join(read['reasons'])})" if read["reasons"] else ""
        yield (
            f"host reads {name}: {read['seconds'] * 1e3:.0f} ms, {read['bytes'] / 1e6:.2f} MB, "
            f"{read['operations']} operations, {read['status']}{reasons}"
        )
    if "llama" in measured:
        yield f"Llama 70B under --fake: {_llama(measured['llama'])}"
    if "validate" in measured:
        seen = measured["validate"]
        yield (
            f"host validates {seen['bytes'] / 1e6:.1f} MB in {seen['validate'] * 1e3:.0f} ms, "
            f"and finds where its items start in {seen['index'] * 1e3:.0f} ms"
        )


def _llama(seen: Json) -> str:
    if "failure" in seen:
        return f"FAILS  {seen['failure']}"
    return (
        f"{seen['status']}, {seen['operations']} operations, {seen['bytes'] / 1e6:.1f} MB, "
        f"{seen['resident'] / 2**20:.0f} MiB resident, {seen['seconds']:.1f} s CPU with start and imports"
    )
