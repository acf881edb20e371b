"""What every argument and result tree must satisfy."""

from collections.abc import Iterator

from tensorviz.contracts.arguments import NamedTupleArgument
from tensorviz.contracts.relations.index import MAX_NESTING, PLACES, Capture, Fault, Rule
from tensorviz.contracts.trees import CONTAINERS, is_counted, walk


def names_are_used_once(capture: Capture) -> Iterator[Fault]:
    for letter in ("c", "o"):
        for index, record in enumerate(capture.lists[letter]):
            names: set[str] = set()
            for place, named in enumerate(record.kwargs):
                if named.name in names:
                    yield Fault((*PLACES[letter], index, "kwargs", place, "name"), "argument", "is given twice")
                names.add(named.name)


def named_tuples_name_every_item(capture: Capture) -> Iterator[Fault]:
    for tree in capture.containers:
        for path, node, _ in walk(tree.node, tree.path):
            if isinstance(node, NamedTupleArgument) and len(node.fields) != len(node.items):
                yield Fault((*path, "fields"), "argument", "one name belongs to each item")


def trees_stay_within_budgets(capture: Capture) -> Iterator[Fault]:
    limits = capture.snapshot.limits
    for tree in capture.containers:
        items = depth = levels = 0
        for path, node, around in walk(tree.node, tree.path):
            is_container = type(node) in CONTAINERS
            items += is_counted(node)
            depth = max(depth, around + is_container)
            levels = max(levels, len(path) + 1 + is_container)
        if items > limits.argumentItems:
            yield Fault(tree.path, "limit", f"{items} items; the limit is {limits.argumentItems}")
        if depth > limits.argumentDepth:
            yield Fault(tree.path, "limit", f"{depth} levels of containers; the limit is {limits.argumentDepth}")
        if levels >= MAX_NESTING:
            yield Fault(tree.path, "nesting", f"{levels} levels of JSON; there must be fewer than {MAX_NESTING}")


RULES: tuple[Rule, ...] = (
    names_are_used_once,
    named_tuples_name_every_item,
    trees_stay_within_budgets,
)
