"""Where values come from, how versions follow each other, what was written, and how large it all is."""

from collections.abc import Iterator, Sequence
from typing import Any

from tensorviz.contracts.arguments import OpaqueArgument, TensorArgument
from tensorviz.contracts.capture import (
    EffectProducer,
    ExternalProducer,
    InputProducer,
    Operation,
    OutputProducer,
    StateProducer,
    Value,
)
from tensorviz.contracts.relations.lookup import Capture, Fault, Rule, is_unobserved
from tensorviz.contracts.trees import Path, Step, resolve


def values_are_made_before_they_are_used(capture: Capture) -> Iterator[Fault]:
    made = capture.made
    for path, value, before in capture.uses:
        if made[value] >= before:
            yield Fault((*path, "value"), "use", f"{value} is made later")


def producers_name_their_value(capture: Capture) -> Iterator[Fault]:
    for index, value in enumerate(capture.snapshot.values):
        producer, path = value.producer, ("values", index, "producer")
        if isinstance(producer, InputProducer) and capture.at(producer.invocation).parent is not None:
            yield Fault((*path, "invocation"), "producer", f"{producer.invocation} is not a root call")
        if isinstance(producer, StateProducer):
            if value.state != producer.state:
                yield Fault((*path, "state"), "producer", f"{value.id} is not a value of {producer.state}")
        elif not isinstance(producer, ExternalProducer):
            node = _produced(capture, producer)
            if not (isinstance(node, TensorArgument) and node.value == value.id):
                yield Fault((*path, "path"), "producer", f"does not lead to {value.id}")


def _produced(capture: Capture, producer: InputProducer | OutputProducer | EffectProducer) -> Any:
    """The node that a producer cites."""
    if isinstance(producer, InputProducer):
        return resolve(capture.at(producer.invocation), producer.path)
    operation = capture.at(producer.operation)
    if isinstance(producer, OutputProducer):
        return resolve(operation.output, producer.path)
    return _effect_result(operation, producer.path)


def _effect_result(operation: Operation, path: Path) -> Any:
    if len(path) != 2 or path[1] != "after" or not isinstance(path[0], int) or path[0] >= len(operation.effects):
        return None
    return operation.effects[path[0]].after


def versions_follow_each_other(capture: Capture) -> Iterator[Fault]:
    first: set[str] = set()
    succeeded: set[str] = set()
    for index, value in enumerate(capture.snapshot.values):
        path, previous = ("values", index), value.previousVersion
        if previous is None:
            if value.logicalVersion != 0:
                yield Fault((*path, "logicalVersion"), "version", "a first version has number 0")
            if value.object in first:
                yield Fault((*path, "object"), "version", f"{value.object} has another first version")
            first.add(value.object)
        else:
            before = capture.at(previous)
            if before.object != value.object:
                yield Fault((*path, "previousVersion"), "version", f"{previous} is another object")
            if before.logicalVersion + 1 != value.logicalVersion:
                yield Fault((*path, "logicalVersion"), "version", f"does not follow that of {previous}")
            if previous in succeeded:
                yield Fault((*path, "previousVersion"), "version", f"{previous} has another successor")
            succeeded.add(previous)


def origins_match_versions(capture: Capture) -> Iterator[Fault]:
    written = {
        (operation.id, effect.after.value)
        for operation in capture.snapshot.operations
        for effect in operation.effects
        if isinstance(effect.after, TensorArgument)
    }
    for index, value in enumerate(capture.snapshot.values):
        path, producer, later = ("values", index, "producer"), value.producer, value.previousVersion is not None
        if isinstance(producer, OutputProducer):
            if later and (producer.operation, value.id) not in written:
                yield Fault(path, "version", f"no effect of {producer.operation} leaves {value.id}")
        elif later != (isinstance(producer, EffectProducer) or is_unobserved(producer)):
            yield Fault(path, "version", "a later version needs a write" if later else "a write needs a version before")


def state_and_values_agree(capture: Capture) -> Iterator[Fault]:
    owners: dict[str, str] = {}
    for index, state in enumerate(capture.snapshot.state):
        path = ("state", index)
        if (state.value is None) != (state.unavailable is not None):
            yield Fault((*path, "value"), "state", "either a value or why it is unavailable")
        if state.value is not None:
            held = capture.at(state.value).object
            if held in owners:
                yield Fault((*path, "value"), "state", f"{held} is {owners[held]} already")
            owners[held] = state.id
    for index, value in enumerate(capture.snapshot.values):
        if owners.get(value.object) != value.state:
            yield Fault(
                ("values", index, "state"), "state", f"{value.object} is {owners.get(value.object, 'no state')}"
            )


def sizes_fit_shapes(capture: Capture) -> Iterator[Fault]:
    fitting: set[Any] = set()
    for index, value in enumerate(capture.snapshot.values):
        path, shape = ("values", index), value.shape
        facts = (shape, value.logicalBytes)
        if value.strides is not None and len(value.strides) != len(shape):
            yield Fault((*path, "strides"), "shape", "one stride belongs to each dimension")
        if facts in fitting:
            continue
        if any(isinstance(size, int) and size < 0 for size in shape):
            yield Fault((*path, "shape"), "shape", "a size is negative")
        elif value.logicalBytes is not None and not _fits(value.logicalBytes, shape):
            yield Fault((*path, "logicalBytes"), "shape", "does not fit the shape")
        else:
            fitting.add(facts)


def _fits(size: int, shape: Sequence[Step]) -> bool:
    if not all(isinstance(dimension, int) for dimension in shape):
        return True
    if 0 in shape:
        return size == 0
    count = 1
    for dimension in shape:
        count *= int(dimension)
        if count > size:
            return False
    return size > 0 and size % count == 0


def effects_cite_their_operand(capture: Capture) -> Iterator[Fault]:
    for index, operation in enumerate(capture.snapshot.operations):
        for place, effect in enumerate(operation.effects):
            path = ("operations", index, "effects", place)
            operand = resolve(operation, effect.argument)
            if capture.made[effect.before] >= operation.sequence:
                yield Fault((*path, "before"), "use", f"{effect.before} is made later")
            if not isinstance(operand, TensorArgument):
                yield Fault((*path, "argument"), "effect", "does not lead to a tensor")
            elif effect.relation == "operand" and operand.value != effect.before:
                yield Fault((*path, "argument"), "effect", f"does not lead to {effect.before}")
            elif effect.relation == "alias" and not _may_alias(capture.at(operand.value), capture.at(effect.before)):
                yield Fault((*path, "argument"), "effect", f"{effect.before} has another storage")


def effects_leave_a_successor(capture: Capture) -> Iterator[Fault]:
    for index, operation in enumerate(capture.snapshot.operations):
        for place, effect in enumerate(operation.effects):
            path, after = ("operations", index, "effects", place, "after"), effect.after
            if isinstance(after, TensorArgument):
                value = capture.at(after.value)
                if value.previousVersion != effect.before or value.producer.kind not in ("output", "effect"):
                    yield Fault(path, "effect", f"{after.value} does not follow {effect.before}")
                elif value.producer.operation != operation.id:
                    yield Fault(path, "effect", f"{after.value} is made by {value.producer.operation}")
            failed = isinstance(after, OpaqueArgument) and after.reason == "failed_write"
            if failed != (operation.status == "failed"):
                yield Fault(path, "effect", "a failed operation, and no other, leaves a failed write")


def _may_alias(one: Value, other: Value) -> bool:
    return one.storage is None or other.storage is None or one.storage == other.storage


RULES: tuple[Rule, ...] = (
    values_are_made_before_they_are_used,
    producers_name_their_value,
    versions_follow_each_other,
    origins_match_versions,
    state_and_values_agree,
    sizes_fit_shapes,
    effects_cite_their_operand,
    effects_leave_a_successor,
)
