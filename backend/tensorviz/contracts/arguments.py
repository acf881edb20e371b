"""The typed tree of everything that a dispatcher call, a module call or their results can carry.

Integers are canonical decimal strings and floats are Python's shortest round-trip text, so no reader can round them.
Symbolic expressions are descriptions, never code. An opaque node names a type and the reason why it was not read.
"""

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypeAliasType

from tensorviz.contracts.base import Many, Model, Name, Text

ValueId = Annotated[str, Field(pattern=r"^v(0|[1-9][0-9]{0,9})$")]
IntText = Annotated[str, Field(pattern=r"^(0|-?[1-9][0-9]*)$", max_length=4096)]
FloatText = Annotated[str, Field(pattern=r"^(nan|-?inf|-0|-?[0-9]+(\.[0-9]+)?(e[+-][0-9]+)?)$", max_length=32)]

OpaqueReason = Literal[
    "unsupported_type",  # a type the recorder does not read
    "unsupported_tensor",  # a tensor whose metadata could not be read, such as a functorch wrapper
    "cycle",  # a container that contains itself
    "depth_limit",
    "item_limit",
    "value_limit",  # no budget was left for another value
    "text_limit",  # a string, number or type name longer than the contract keeps
    "failed_write",  # the operand of a kernel that failed while it may have been writing
]


class TensorArgument(Model):
    """A reference to a recorded value."""

    kind: Literal["tensor"]
    value: ValueId


class NoneArgument(Model):
    kind: Literal["none"]


class BoolArgument(Model):
    kind: Literal["bool"]
    value: bool


class IntArgument(Model):
    kind: Literal["int"]
    value: IntText


class FloatArgument(Model):
    kind: Literal["float"]
    value: FloatText


class ComplexArgument(Model):
    kind: Literal["complex"]
    real: FloatText
    imag: FloatText


class StringArgument(Model):
    kind: Literal["string"]
    value: Text


class TorchArgument(Model):
    """A dtype, device, layout or memory format, as torch prints it: ``torch.float32``, ``cpu``, ``torch.strided``."""

    kind: Literal["dtype", "device", "layout", "memory_format"]
    value: Name


class GeneratorArgument(Model):
    """A random number generator. Its state is not read."""

    kind: Literal["generator"]
    device: Name


class RecordFunctionArgument(Model):
    """The handle of a profiler range, which torch passes between the operators that open and close it."""

    kind: Literal["record_function"]


class EnumArgument(Model):
    kind: Literal["enum"]
    type: Name
    name: Name


class SymbolicArgument(Model):
    """A SymInt, SymFloat or SymBool: a description, never code to evaluate."""

    kind: Literal["symbolic"]
    type: Literal["int", "float", "bool"]
    expression: Text


class EllipsisArgument(Model):
    kind: Literal["ellipsis"]


class SliceArgument(Model):
    kind: Literal["slice"]
    start: "Argument"
    stop: "Argument"
    step: "Argument"


class SequenceArgument(Model):
    kind: Literal["list", "tuple"]
    items: Many["Argument"]


class NamedTupleArgument(Model):
    kind: Literal["namedtuple"]
    type: Name
    fields: Many[Name]
    items: Many["Argument"]


class Entry(Model):
    key: "Argument"
    value: "Argument"


class DictArgument(Model):
    """A dict, or a subclass named by ``type``: the entries in its storage, in order, whatever its methods say."""

    kind: Literal["dict"]
    type: Name | None
    entries: Many[Entry]


class NamedArgument(Model):
    """A keyword argument, or a field of a dataclass."""

    name: Name
    value: "Argument"


class DataclassArgument(Model):
    kind: Literal["dataclass"]
    type: Name
    fields: Many[NamedArgument]


class OpaqueArgument(Model):
    kind: Literal["opaque"]
    type: Name
    reason: OpaqueReason


Argument = TypeAliasType(
    "Argument",
    Annotated[
        TensorArgument
        | NoneArgument
        | BoolArgument
        | IntArgument
        | FloatArgument
        | ComplexArgument
        | StringArgument
        | TorchArgument
        | GeneratorArgument
        | RecordFunctionArgument
        | EnumArgument
        | SymbolicArgument
        | EllipsisArgument
        | SliceArgument
        | SequenceArgument
        | NamedTupleArgument
        | DictArgument
        | DataclassArgument
        | OpaqueArgument,
        Field(discriminator="kind"),
    ],
)

for _model in (
    SliceArgument,
    SequenceArgument,
    NamedTupleArgument,
    Entry,
    DictArgument,
    NamedArgument,
    DataclassArgument,
):
    _model.model_rebuild()
