"""What every argument and result tree must satisfy."""

from collections.abc import Iterator

from tensorviz.contracts.relations.lookup import MAX_NESTING, PLACES, Capture, Fault, Rule


def names_are_used_once(capture: Capture) -> Iterator[Fault]:
    for letter in ("c", "o"):
        for index, record in enumerate(capture.lists[letter]):
            names: set[str] = set()
            for place, named in enumerate(record.kwargs):
                if named.name in names:
                    yield Fault((*PLACES[letter], index, "kwargs", place, "name"), "argument", "is given twice")
                names.add(named.name)


def named_tuples_name_every_item(capture: Capture) -> Iterator[Fault]:
    for path, node in capture.named_tuples:
        if len(node.fields) != len(node.items):
            yield Fault((*path, "fields"), "argument", "one name belongs to each item")


def trees_stay_within_budgets(capture: Capture) -> Iterator[Fault]:
    limits = capture.snapshot.limits
    for path, items, depth, levels in capture.containers:
        if items > limits.argumentItems:
            yield Fault(path, "limit", f"{items} items; the limit is {limits.argumentItems}")
        if depth > limits.argumentDepth:
            yield Fault(path, "limit", f"{depth} levels of containers; the limit is {limits.argumentDepth}")
        if levels >= MAX_NESTING:
            yield Fault(path, "nesting", f"{levels} levels of JSON; there must be fewer than {MAX_NESTING}")


RULES: tuple[Rule, ...] = (
    names_are_used_once,
    named_tuples_name_every_item,
    trees_stay_within_budgets,
)
