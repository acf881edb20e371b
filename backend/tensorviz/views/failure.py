"""What failed and why, in words: the operation that an exception came from, and what its operands violate."""

from collections.abc import Iterator

from tensorviz.constraints.call import parse_schema
from tensorviz.contracts.base import Path
from tensorviz.contracts.capture import (
    AtMost,
    Between,
    Broadcast,
    CaptureSnapshot,
    Constraint,
    Diagnostic,
    Divisible,
    DtypeClass,
    Equal,
    Measure,
    Operation,
    Raised,
    Same,
    Trait,
)

_EQUAL = {
    "inner": "inner sizes",
    "batch": "batch sizes",
    "channels": "channels",
    "features": "features",
    "classes": "classes",
    "rank": "numbers of dimensions",
    "elements": "numbers of elements",
    "split": "the parts and the whole",
    "square": "the sizes of a square matrix",
}
_CLASSES = {"floating": "a floating or complex dtype", "integral": "an integral dtype", "index": "int32 or int64"}


def ending(capture: CaptureSnapshot) -> list[Diagnostic]:
    """The exception that ended the run, the one in whose place it was raised, and so on; empty when none did."""
    found: list[Diagnostic] = []
    name = capture.termination.diagnostic if isinstance(capture.termination, Raised) else None
    while name is not None:
        found.append(capture.diagnostics[int(name[1:])])
        name = found[-1].cause
    return found


def operation(capture: CaptureSnapshot) -> Operation | None:
    """The operation from which the exception came that ended the run, or the one in flight when the worker ended."""
    if capture.operations and capture.operations[-1].status == "in_flight":
        return capture.operations[-1]
    names = [diagnostic.operation for diagnostic in ending(capture) if diagnostic.operation is not None]
    return capture.operations[int(names[-1][1:])] if names else None


def demands(capture: CaptureSnapshot, operation: Operation) -> Iterator[str]:
    """Each demand of a failed operation that its operands violate, as a sentence."""
    if operation.diagnostic is None:
        return
    words = _Words(capture, operation)
    for constraint in capture.diagnostics[int(operation.diagnostic[1:])].constraints or ():
        yield words.sentence(constraint)


class _Words:
    def __init__(self, capture: CaptureSnapshot, operation: Operation) -> None:
        schema = next((o.operatorSchema for o in capture.operators if o.target == operation.target), None)
        self._names = [parameter.name for parameter in parse_schema(schema or "")]
        self._operation = operation

    def sentence(self, constraint: Constraint) -> str:
        match constraint:
            case Equal(what=what, left=left, right=right):
                return f"{_EQUAL.get(what, 'sizes')} must be equal: {self._is(left)}, {self._is(right)}"
            case AtMost(left=left, right=right):
                return f"{self._is(left)}, which exceeds {self._of(right)}: {right.number}"
            case Divisible(left=left, right=right):
                return f"{self._is(left)}, which is no multiple of {self._of(right)}: {right.number}"
            case Broadcast(stretches="either", left=left, right=right):
                return f"sizes do not broadcast: {self._is(left)}, {self._is(right)}"
            case Broadcast(left=left, right=right):
                return f"{self._is(left)}, which does not stretch to {self._of(right)}: {right.number}"
            case Between(left=left):
                return f"{self._is(left)}, where {_range(constraint)} is wanted"
            case Same(left=left, right=right):
                return f"{left.of}s must be the same: {self._trait(left)}, {self._trait(right)}"
            case DtypeClass(left=left, wanted=wanted):
                return f"{self._trait(left)}, where {_CLASSES[wanted]} is wanted"

    def _is(self, measure: Measure) -> str:
        return f"{self._of(measure)} is {measure.number}"

    def _of(self, measure: Measure) -> str:
        name, dim = self._argument(measure.path), measure.dim
        at = f"{name}.shape[{dim}]"
        return {
            "size": at,
            "rank": f"{name}.ndim",
            "elements": f"{name}.numel()",
            "value": name,
            "squared": f"{name} squared",
            "sum": f"sum({name})",
            "product": f"prod({name})",
            "known": f"prod({name}) without its -1",
            "length": f"len({name})",
            "padded": f"{at} with padding",
            "extent": f"the kernel's extent along {name}[{dim}]",
            "grouped": f"{at} of all groups",
        }[measure.of]

    def _trait(self, trait: Trait) -> str:
        return f"{self._argument(trait.path)} is {trait.name.removeprefix('torch.')}"

    def _argument(self, path: Path) -> str:
        """``mat2``, or ``tensors[1]`` for an item."""
        place = int(path[1])
        if path[0] == "kwargs":
            name = self._operation.kwargs[place].name
        else:
            name = self._names[place] if place < len(self._names) else f"args[{place}]"
        return name + "".join(f"[{step}]" for step in path[2:] if isinstance(step, int))


def _range(constraint: Between) -> str:
    low, high = constraint.minimum, constraint.maximum
    if low is None or high is None:
        return f"at most {high}" if low is None else f"at least {low}"
    return f"{low}" if low == high else f"{low} or {high}" if low + 1 == high else f"{low} to {high}"
