"""CaptureSnapshot v1: what one execution did, as far as it was observed, and what was not observed and why.

Identifiers are a letter and the position in their own list (``o0`` is ``operations[0]``), so every reference resolves
in one step. ``sequence``, ``entry`` and ``exit`` number one common order of events.
"""

from typing import Annotated, Any, Literal

from pydantic import Field
from typing_extensions import TypeAliasType

from tensorviz.contracts.arguments import Argument, NamedArgument, OpaqueArgument, TensorArgument, ValueId
from tensorviz.contracts.base import MAX_SAFE, Count, Many, Model, Name, Path, Sha256, Text, Version1, absent

_INDEX = r"(0|[1-9][0-9]{0,9})$"
OperationId = Annotated[str, Field(pattern="^o" + _INDEX)]
InvocationId = Annotated[str, Field(pattern="^c" + _INDEX)]
ModuleId = Annotated[str, Field(pattern="^m" + _INDEX)]
DefinitionId = Annotated[str, Field(pattern="^d" + _INDEX)]
StateId = Annotated[str, Field(pattern="^p" + _INDEX)]
LocationId = Annotated[str, Field(pattern="^l" + _INDEX)]
FileId = Annotated[str, Field(pattern="^f" + _INDEX)]
DiagnosticId = Annotated[str, Field(pattern="^x" + _INDEX)]
ObjectId = Annotated[str, Field(pattern="^t" + _INDEX)]
StorageId = Annotated[str, Field(pattern="^s" + _INDEX)]
CaptureId = Annotated[str, Field(pattern=r"^cap-[0-9a-f]{16}$")]
AttemptId = Annotated[str, Field(pattern=r"^att-[0-9a-f]{16}$")]

Dimension = (
    Annotated[int, Field(ge=-(2**53) + 1, le=2**53 - 1)]
    | Annotated[str, Field(pattern=r"^[A-Za-z(*+-][^\n]*$", max_length=256)]
)
"""A size, stride or offset: a number, or the text of a symbolic expression where torch knows no number.

``*`` is a size that differs from row to row. A number that JavaScript would round, beyond 2**53, is text with its sign.
"""

ReasonCode = Literal[
    "run_failed",  # the program raised
    "data_dependent",  # an operation needed the values of tensors, which a fake run does not have
    "fake_unsupported",  # an operation has no rule for fake tensors
    "worker_exited",  # the worker's process ended by itself before the run did
    "worker_killed",  # the worker's process was ended by a signal
    "timed_out",
    "cancelled",
    "operation_limit",
    "invocation_limit",
    "value_limit",
    "byte_limit",
    "location_limit",  # the share of the byte budget for source locations was spent; later places are not told
    "path_limit",  # more registered paths than are listed
    "argument_limit",  # depth, items or text of an argument tree
    "unsupported_argument",  # an object that the recorder does not read
    "unsupported_tensor",  # a tensor whose metadata could not be read
    "dynamic_state",  # a parameter that was created during the run
    "failed_write",  # a kernel failed while it may have been writing
    "unobserved_write",  # a tensor changed without a recorded operation
    "escaped_storage",  # the memory of a tensor was handed out, as by numpy(); what is done there is not seen
    "compiled_region",  # compiled code ran, whose kernels the dispatcher does not show
    "unobserved_process",  # work may have run in a process that was started, which was not recorded
    "unobserved_thread",  # work may have run on a thread that was not recorded
    "unobserved_operation",  # work on tensors was done where the dispatcher does not show it to the recorder
    "unobserved_call",  # modules may have been called in a way that was not recorded
    "lazy_state",  # a parameter or buffer without a value at entry
    "instrumentation_error",  # the recorder itself failed; the program was not disturbed
]


class SourceFile(Model):
    """A file that a location cites. ``digest`` is SHA-256 of the saved bytes; null when they could not be read."""

    id: FileId
    root: Literal["workspace", "library", "external", "generated"]
    path: Name
    digest: Sha256 | None


class SourceSnapshot(Model):
    """The files the capture cites, never the whole import graph. ``digest`` identifies those of the workspace."""

    digest: Sha256
    scope: Literal["partial"]
    files: Many[SourceFile]


class Location(Model):
    """A place in the code, and the way it was reached. One-based lines, zero-based UTF-16 columns.

    Columns are null where the interpreter does not tell them, or the saved file cannot count them. ``caller`` is the
    next frame outwards within the same module call that is neither torch's nor the recorder's; it is null where the
    module call itself is next, whose own ``location`` goes on from there, or the program's entry. At most 64 frames
    are kept: ``callersOmitted`` stands at the outermost one when there were more.

    ``binding`` is how the place meets the saved file. ``exact``: the range is that of one expression, statement or
    function definition, in code that is equal to what the saved bytes compile to. ``candidate``: only the line is
    known, and one expression of it can be meant. ``ambiguous``: several can. ``unmapped``: none is claimed, since the
    file is not of the workspace, could not be read, or is not what ran.
    """

    id: LocationId
    file: FileId
    function: Name
    line: Annotated[int, Field(ge=1, le=2**31 - 1)]
    endLine: Annotated[int, Field(ge=1, le=2**31 - 1)] | None
    column: Count | None
    endColumn: Count | None
    binding: Literal["exact", "candidate", "ambiguous", "unmapped"]
    caller: LocationId | None
    callersOmitted: Literal[True] = absent


class PlannedSetup(Model):
    """An isolated run of a resolved execution plan."""

    kind: Literal["planned"]
    planDigest: Sha256


class InProcessSetup(Model):
    """A recording made by the caller inside its own process; there is no plan to identify."""

    kind: Literal["in_process"]


Setup = TypeAliasType("Setup", Annotated[PlannedSetup | InProcessSetup, Field(discriminator="kind")])


class InputSource(Model):
    """Where the inputs of the run came from. ``name`` is the function, attribute or convention that supplied them."""

    kind: Literal["function", "convention", "caller", "none"]
    name: Name | None


class Execution(Model):
    """What was run and how. Grad mode and training mode change what is dispatched, so they are facts of a capture.

    ``file`` is the saved file that was run; null for a recording inside the caller's own process.
    """

    file: FileId | None
    target: Name
    targetKind: Literal["class", "factory", "instance", "script"]
    inputs: InputSource
    mode: Literal["eval", "train", "as_is"]
    fake: bool
    gradEnabled: bool
    inferenceMode: bool


class SandboxFact(Model):
    """What one confinement mechanism did for this run."""

    mechanism: Name
    state: Literal["enforced", "degraded", "unavailable"]
    reason: Text | None


class Environment(Model):
    python: Name
    implementation: Name
    torch: Name
    platform: Name
    threads: Count
    sandbox: Many[SandboxFact]


class RegisteredPath(Model):
    """The path of a module, parameter or buffer below a root module. The root's own path is ``""``."""

    root: ModuleId
    path: Annotated[str, Field(max_length=4096)]


class Definition(Model):
    """A module class. ``location`` is its ``forward``."""

    id: DefinitionId
    type: Name
    location: LocationId | None


class ModuleInstance(Model):
    """A module object. ``paths`` is empty for a module that no root registers."""

    id: ModuleId
    definition: DefinitionId
    paths: Many[RegisteredPath]
    training: bool


class State(Model):
    """A registered parameter or buffer object, under every path that registers it."""

    id: StateId
    kind: Literal["parameter", "buffer"]
    paths: Many[RegisteredPath]
    value: ValueId | None
    unavailable: Literal["uninitialized", "unsupported_tensor", "value_limit"] = absent


class InputProducer(Model):
    """First seen as an argument of a root call, at ``path`` (``['args', 0]``, ``['kwargs', 1, 'value']``)."""

    kind: Literal["input"]
    invocation: InvocationId
    path: Path


class StateProducer(Model):
    """The value of a parameter or buffer when its root was entered."""

    kind: Literal["state"]
    state: StateId


class OutputProducer(Model):
    """``path`` addresses the operation's ``output`` tree."""

    kind: Literal["output"]
    operation: OperationId
    path: Path


class EffectProducer(Model):
    """``path`` addresses the operation's ``effects`` array, for example ``[0, 'after']``."""

    kind: Literal["effect"]
    operation: OperationId
    path: Path


class ExternalProducer(Model):
    """Not made by anything recorded: a tensor from before the run, or the result of work that was not observed."""

    kind: Literal["external"]
    reason: Literal["first_use", "unobserved_write"]


Producer = TypeAliasType(
    "Producer",
    Annotated[
        InputProducer | StateProducer | OutputProducer | EffectProducer | ExternalProducer, Field(discriminator="kind")
    ],
)


class Value(Model):
    """One tensor object at one version. ``strides`` count elements; ``logicalBytes`` is ``numel() * element_size()``.

    ``object`` and ``storage`` are identities: equal shapes say nothing. ``version`` is torch's counter, null where
    torch refuses to tell it. It and ``requiresGrad`` are null where the tensor was gone before autograd completed them.
    ``logicalVersion`` numbers this object's retained observations.
    """

    id: ValueId
    object: ObjectId
    storage: StorageId | None
    version: Count | None
    logicalVersion: Count
    previousVersion: ValueId | None
    producer: Producer
    type: Name
    shape: Many[Dimension]
    strides: Many[Dimension] | None
    storageOffset: Dimension | None
    dtype: Name
    device: Name
    layout: Name
    requiresGrad: bool | None
    state: StateId | None
    logicalBytes: Count = absent


class Operator(Model):
    """A dispatcher target and its operator schema, which is null for a higher-order operator: those have none."""

    target: Name
    operatorSchema: Annotated[str, Field(max_length=16384)] | None


class Effect(Model):
    """A schema-declared write: the operand at ``argument``, or an alias of it that was already observed."""

    argument: Path
    relation: Literal["operand", "alias"]
    before: ValueId
    after: Annotated[TensorArgument | OpaqueArgument, Field(discriminator="kind")]


class Operation(Model):
    """One call of a dispatcher target. ``output`` is null unless the call completed."""

    id: OperationId
    sequence: Count
    target: Name
    status: Literal["completed", "failed", "in_flight"]
    invocation: InvocationId | None
    args: Many[Argument]
    kwargs: Many[NamedArgument]
    output: Argument | None
    effects: Many[Effect]
    location: LocationId | None
    diagnostic: DiagnosticId | None


class Invocation(Model):
    """One call of a module. ``exit`` is null when the run ended inside the call.

    ``stopped``: torch itself left the call early, as checkpoint does when it has recomputed all it needs.
    """

    id: InvocationId
    module: ModuleId
    parent: InvocationId | None
    entry: Count
    exit: Count | None
    status: Literal["completed", "failed", "stopped", "in_flight"]
    args: Many[Argument]
    kwargs: Many[NamedArgument]
    output: Argument | None
    location: LocationId | None
    diagnostic: DiagnosticId | None
    parameterCount: Count = absent
    parameterCountUnavailable: Literal["unsupported_metadata", "read_limit"] = absent


class Measure(Model):
    """A number that is read of the argument at ``path`` of a failed operation.

    ``dim`` is the dimension, or the place in a list, where one is meant. ``known`` is the product of a shape without
    its -1, ``padded`` a size with the call's padding, ``extent`` that of a dilated kernel, ``grouped`` a size times
    the call's groups.
    """

    path: Path
    of: Literal[
        "size",
        "rank",
        "elements",
        "value",
        "squared",
        "sum",
        "product",
        "known",
        "length",
        "padded",
        "extent",
        "grouped",
    ]
    dim: Count | None
    number: Annotated[int, Field(ge=-MAX_SAFE, le=MAX_SAFE)]


class Trait(Model):
    """The dtype or device of the tensor at ``path`` of a failed operation."""

    path: Path
    of: Literal["dtype", "device"]
    name: Name


What = Literal[
    "inner",  # the sizes that a product sums over
    "batch",
    "channels",
    "groups",
    "features",
    "classes",
    "kernel",
    "padding",
    "shape",
    "square",
    "rank",
    "elements",
    "split",
    "index",  # a position within a dimension
    "dimension",  # the number of a dimension
    "amount",
]
"""What a compared number means to the operator."""


class Equal(Model):
    """The operator wants both to be equal."""

    kind: Literal["equal"]
    what: What
    left: Measure
    right: Measure


class AtMost(Model):
    """The operator wants ``left`` not to exceed ``right``."""

    kind: Literal["at_most"]
    what: What
    left: Measure
    right: Measure


class Divisible(Model):
    """The operator wants ``left`` to be a multiple of ``right``."""

    kind: Literal["divisible"]
    what: What
    left: Measure
    right: Measure


class Broadcast(Model):
    """The operator wants equal sizes, or a size 1 that it can stretch: on either side, or on the left alone."""

    kind: Literal["broadcast"]
    stretches: Literal["either", "left"]
    left: Measure
    right: Measure


class Between(Model):
    """The operator wants ``left`` within these bounds; null where there is none."""

    kind: Literal["between"]
    what: What
    left: Measure
    minimum: Annotated[int, Field(ge=-MAX_SAFE, le=MAX_SAFE)] | None
    maximum: Annotated[int, Field(ge=-MAX_SAFE, le=MAX_SAFE)] | None


class Same(Model):
    """The operator wants one dtype, or one device, for both."""

    kind: Literal["same"]
    left: Trait
    right: Trait


class DtypeClass(Model):
    """The operator wants a dtype of this class; ``floating`` includes complex ones, ``index`` is int32 or int64."""

    kind: Literal["dtype"]
    left: Trait
    wanted: Literal["floating", "integral", "index"]


Constraint = TypeAliasType(
    "Constraint",
    Annotated[
        Equal | AtMost | Divisible | Broadcast | Between | Same | DtypeClass,
        Field(discriminator="kind"),
    ],
)


class Diagnostic(Model):
    """An exception, by type alone: its message may say anything and is kept in the attempt's log.

    ``constraints`` are what the recorded operands of the failed operation provably violate; null when they were not
    examined, because too many operations failed. ``cause`` is the earlier exception in whose place this one was
    raised, and that one is ``replaced``. ``control_flow`` is how torch itself leaves a call early: not a failure.
    """

    id: DiagnosticId
    exception: Name
    operation: OperationId | None
    invocation: InvocationId | None
    location: LocationId | None
    disposition: Literal["propagated", "suppressed", "replaced", "control_flow", "unknown"]
    constraints: Many[Constraint] | None
    cause: DiagnosticId | None


class EventCoverage(Model):
    """``omitted`` is null when events are known to be missing but were not counted."""

    recorded: Count
    omitted: Count | None
    reason: ReasonCode | None


class ModuleCoverage(Model):
    """Only of the executed path: ``not_observed`` is a module without a recorded call."""

    module: ModuleId
    state: Literal["observed", "failed", "not_observed", "capture_limited", "static_only", "unresolved", "state"]


class Coverage(Model):
    operations: EventCoverage
    invocations: EventCoverage
    values: EventCoverage
    modules: Many[ModuleCoverage]


class Reason(Model):
    """Why a capture is partial. ``subject`` is the first record concerned, ``count`` how many there are."""

    code: ReasonCode
    count: Annotated[int, Field(ge=1, le=MAX_SAFE)]
    subject: OperationId | InvocationId | StateId | ValueId | None
    detail: Text | None


class Returned(Model):
    kind: Literal["returned"]


class Raised(Model):
    kind: Literal["raised"]
    diagnostic: DiagnosticId


class Exited(Model):
    """The process ended with this status before the run did."""

    kind: Literal["exited"]
    code: Annotated[int, Field(ge=-(2**31), lt=2**32)]


class Killed(Model):
    kind: Literal["killed"]
    signal: Name


class TimedOut(Model):
    kind: Literal["timed_out"]
    seconds: Annotated[float, Field(gt=0)]


class Cancelled(Model):
    kind: Literal["cancelled"]


Termination = TypeAliasType(
    "Termination",
    Annotated[Returned | Raised | Exited | Killed | TimedOut | Cancelled, Field(discriminator="kind")],
)


class Limits(Model):
    """The budgets of a capture. Each is independent; a run that hits one keeps a valid prefix and says which."""

    bytes: Count = 16 * 2**20
    operations: Count = 50_000
    invocations: Count = 20_000
    values: Count = 200_000
    argumentDepth: Annotated[int, Field(ge=1, le=32)] = 32
    argumentItems: Count = 10_000
    text: Annotated[int, Field(ge=64, le=4096)] = 4096
    parameterReads: Count = 100_000

    def model_post_init(self, _: Any) -> None:
        """Budgets are always written in full: a later default must not change what an earlier capture says."""
        self.__pydantic_fields_set__.update(type(self).model_fields)


Normalization = Literal[
    "dict_storage",  # dict subclasses show the entries in their storage
    "declared_write_versions",  # logical versions count schema-declared writes
    "fake_device_reads",  # prim.device calls of fake tensors are not recorded
]


class CaptureSnapshot(Model):
    schemaVersion: Version1
    id: CaptureId
    attempt: AttemptId
    status: Literal["complete", "partial"]
    termination: Termination
    reasons: Many[Reason]
    setup: Setup
    execution: Execution
    environment: Environment
    limits: Limits
    normalizations: Many[Normalization]
    source: SourceSnapshot
    locations: Many[Location]
    definitions: Many[Definition]
    modules: Many[ModuleInstance]
    state: Many[State]
    operators: Many[Operator]
    invocations: Many[Invocation]
    operations: Many[Operation]
    values: Many[Value]
    diagnostics: Many[Diagnostic]
    coverage: Coverage
    valuesUnavailable: Literal["fake_tensor"] = absent
