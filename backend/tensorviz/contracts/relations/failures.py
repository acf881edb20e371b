"""How failures are told apart, and that what is called violated is violated, by the numbers of the capture itself."""

from collections.abc import Callable, Iterator
from math import prod
from typing import Any

from tensorviz.contracts.arguments import IntArgument, SequenceArgument, TensorArgument
from tensorviz.contracts.capture import (
    AtMost,
    Between,
    Broadcast,
    Constraint,
    Divisible,
    DtypeClass,
    Equal,
    Measure,
    Raised,
    Returned,
    Same,
    Trait,
)
from tensorviz.contracts.dtypes import is_of_class
from tensorviz.contracts.relations.lookup import Capture, Fault, Rule
from tensorviz.contracts.trees import resolve


def diagnostics_match_the_end(capture: Capture) -> Iterator[Fault]:
    snapshot = capture.snapshot
    raised = snapshot.termination.diagnostic if isinstance(snapshot.termination, Raised) else None
    for index, diagnostic in enumerate(snapshot.diagnostics):
        path = ("diagnostics", index)
        if diagnostic.operation is not None and capture.at(diagnostic.operation).status != "failed":
            yield Fault((*path, "operation"), "diagnostic", f"{diagnostic.operation} did not fail")
        if diagnostic.id == raised and diagnostic.disposition != "propagated":
            yield Fault((*path, "disposition"), "diagnostic", "this exception ended the run")
        if isinstance(snapshot.termination, Returned) and diagnostic.disposition == "propagated":
            yield Fault((*path, "disposition"), "diagnostic", "the run returned")


def causes_are_replaced(capture: Capture) -> Iterator[Fault]:
    diagnostics = capture.snapshot.diagnostics
    causes = {diagnostic.cause for diagnostic in diagnostics}
    for index, diagnostic in enumerate(diagnostics):
        path, disposition = ("diagnostics", index), diagnostic.disposition
        if diagnostic.cause is not None and int(diagnostic.cause[1:]) >= index:
            yield Fault((*path, "cause"), "diagnostic", f"{diagnostic.cause} is not earlier")
        if disposition == "replaced" and diagnostic.id not in causes:
            yield Fault((*path, "disposition"), "diagnostic", "it is the cause of no other exception")
        if disposition in ("suppressed", "unknown") and diagnostic.id in causes:
            yield Fault((*path, "disposition"), "diagnostic", "another exception was raised in its place")


def stopped_calls_were_left_by_torch(capture: Capture) -> Iterator[Fault]:
    for index, call in enumerate(capture.snapshot.invocations):
        if call.diagnostic is not None:
            left = capture.at(call.diagnostic).disposition == "control_flow"
            if left != (call.status == "stopped"):
                yield Fault(("invocations", index, "status"), "status", "control flow stops a call, a failure fails it")


def constraints_are_violated(capture: Capture) -> Iterator[Fault]:
    for index, diagnostic in enumerate(capture.snapshot.diagnostics):
        path = ("diagnostics", index, "constraints")
        if diagnostic.operation is None and diagnostic.constraints:
            yield Fault(path, "constraint", "no operation failed")
            continue
        for place, constraint in enumerate(diagnostic.constraints or ()):
            operation = capture.at(str(diagnostic.operation))
            if not all(_is_true(capture, operation, side) for side in _sides(constraint)):
                yield Fault((*path, place), "constraint", "is not what the arguments say")
            elif not _VIOLATED[type(constraint)](constraint):
                yield Fault((*path, place), "constraint", "is satisfied")


def _sides(constraint: Constraint) -> Iterator[Measure | Trait]:
    yield constraint.left
    right = getattr(constraint, "right", None)
    if right is not None:
        yield right


def _is_true(capture: Capture, operation: Any, side: Measure | Trait) -> bool:
    node = resolve(operation, side.path)
    if isinstance(side, Trait):
        return isinstance(node, TensorArgument) and getattr(capture.at(node.value), side.of) == side.name
    if isinstance(node, TensorArgument):
        return _is_true_of_tensor(side, capture.at(node.value).shape)
    if isinstance(node, SequenceArgument):
        return _is_true_of_list(side, node)
    return isinstance(node, IntArgument) and side.number == _of_integer(side.of, int(node.value))


def _of_integer(of: str, number: int) -> int | None:
    return {"value": number, "squared": number**2}.get(of)


def _is_true_of_tensor(measure: Measure, shape: tuple[int | str, ...]) -> bool:
    of, dim, number = measure.of, measure.dim, measure.number
    if of == "rank":
        return dim is None and number == len(shape)
    sizes = [size for size in shape if isinstance(size, int)]
    if of == "elements":
        return dim is None and len(sizes) == len(shape) and number == prod(sizes)
    if dim is None or dim >= len(shape) or not isinstance(size := shape[dim], int):
        return False
    return number == size if of == "size" else of in ("padded", "extent", "grouped")


def _is_true_of_list(measure: Measure, node: SequenceArgument) -> bool:
    if measure.of == "length":
        return measure.number == len(node.items)
    numbers = [int(item.value) for item in node.items if isinstance(item, IntArgument)]
    if len(numbers) != len(node.items):
        return False
    if measure.of == "extent":
        return measure.dim is not None and measure.dim < len(numbers)
    return measure.number == _of_integers(measure.of, numbers)


def _of_integers(of: str, numbers: list[int]) -> int | None:
    if of == "known":
        return -prod(numbers) if numbers.count(-1) == 1 else None
    return {"sum": sum(numbers), "product": prod(numbers)}.get(of)


def _cannot_stretch(constraint: Broadcast) -> bool:
    left, right = constraint.left.number, constraint.right.number
    return left not in (1, right) and (constraint.stretches == "left" or right != 1)


def _is_outside(constraint: Between) -> bool:
    number, low, high = constraint.left.number, constraint.minimum, constraint.maximum
    return (low is not None and number < low) or (high is not None and number > high)


_VIOLATED: dict[type, Callable[[Any], bool]] = {
    Equal: lambda it: it.left.number != it.right.number,
    AtMost: lambda it: it.left.number > it.right.number,
    Divisible: lambda it: it.right.number != 0 and it.left.number % it.right.number != 0,
    Broadcast: _cannot_stretch,
    Between: _is_outside,
    Same: lambda it: it.left.of == it.right.of and it.left.name != it.right.name,
    DtypeClass: lambda it: is_of_class(it.left.name, it.wanted) is False,
}

RULES: tuple[Rule, ...] = (
    diagnostics_match_the_end,
    causes_are_replaced,
    stopped_calls_were_left_by_torch,
    constraints_are_violated,
)
