"""What a failed operation's recorded operands provably violate. No exception text is read, and nothing is run.

    table.py    operator -> checks
    checks.py   one demand each: inner sizes, broadcasting, ranks, dtypes ...
    call.py     the arguments by name, and measures of them

A claim is made only of what the records say exactly. What is symbolic, opaque or no plain tensor leads to no claim.
"""

from collections.abc import Sequence
from contextlib import suppress

from tensorviz.constraints.call import Call, Json, Unknown
from tensorviz.constraints.table import NAMES, checks_of

__all__ = ["MOST", "NAMES", "violated"]

MOST = 8
"""The most constraints that one failure carries."""


def violated(operation: Json, schema: str | None, values: Sequence[Json]) -> list[Json]:
    """The demands of the operator that these operands do not meet, as far as they can be proven."""
    if schema is None or not operation["target"].startswith("aten."):
        return []
    call = Call(operation, schema, values)
    if not call.is_plain:
        return []
    found: list[Json] = []
    for check in checks_of(call.base):
        with suppress(Unknown):  # what the check yielded before stands
            for constraint in check(call):
                if constraint not in found:
                    found.append(constraint)
        if any(constraint.get("what") == "rank" for constraint in found):
            break  # of tensors with the wrong number of dimensions there is nothing more to say
    return found[:MOST]
