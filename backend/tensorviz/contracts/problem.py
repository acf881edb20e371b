"""Problem: the one shape of every error that leaves tensorviz, on HTTP, in attempts and from the command line."""

from typing import Annotated, Literal

from pydantic import Field

from tensorviz.contracts.base import Many, Model, Path, Text

ProblemCode = Literal[
    # refused before anything ran
    "invalid_request",  # a field of the request is missing, unknown or out of range
    "file_not_found",
    "file_outside_workspace",
    "interpreter_not_found",
    "interpreter_unusable",  # it does not start, or its Python is too old
    "torch_missing",
    "torch_too_old",
    # the worker ran, and there is nothing to capture
    "source_changed",  # the file is no longer the one that the plan was made for
    "syntax_error",
    "import_failed",
    "import_exited",
    "import_shadowed",  # the import found another file of that name
    "target_not_found",
    "target_ambiguous",
    "target_unsupported",
    "target_failed",  # constructing the model raised
    "inputs_missing",
    "inputs_failed",
    "nothing_recorded",
    "worker_failed",  # the worker ended before it recorded anything
    "output_not_written",  # there is a capture, and the file asked for cannot hold it
    "capture_rejected",  # what the worker wrote is not a valid capture
    "timed_out",
    "cancelled",
    # the host
    "unauthorized",
    "forbidden_host",
    "forbidden_origin",
    "not_found",
    "method_not_allowed",
    "unsupported_media_type",
    "body_too_large",
    "busy",
    "invalid_capture",  # a document that does not satisfy the contract
    "internal_error",
]


class Fault(Model):
    """One place where a document or request is wrong."""

    path: Path
    message: Text


class Problem(Model):
    """``detail`` says what went wrong, ``hint`` what to do next; ``faults`` name the fields concerned."""

    code: ProblemCode
    title: Annotated[str, Field(min_length=1, max_length=256)]
    detail: Text
    hint: Text | None
    faults: Many[Fault]
