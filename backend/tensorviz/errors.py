"""The exceptions of the host.

    Exception
    └── TensorvizError
        └── Refused            there is no capture; its Problem says why and what to do
    contracts.validate.ContractError   a document that does not satisfy the contract (contracts import nothing of ours)

Anything else that leaves a function is a defect of ours. Edges turn it into the Problem ``internal_error``.
"""

from tensorviz.contracts.problem import Fault, Problem, ProblemCode

_MAX_TEXT = 4096


class TensorvizError(Exception):
    """Base of everything that we raise on purpose."""


class Refused(TensorvizError):
    def __init__(self, problem: Problem) -> None:
        super().__init__(f"{problem.title}: {problem.detail}")
        self.problem = problem

    def __reduce__(self) -> tuple[type["Refused"], tuple[Problem]]:
        return Refused, (self.problem,)


TITLES: dict[ProblemCode, tuple[str, str | None]] = {
    # refused before anything ran
    "invalid_request": ("The request is not valid", "mend the fields named and send it again"),
    "file_not_found": ("The file cannot be read", "check the path; only saved files are run"),
    "file_outside_workspace": (
        "The file is outside the workspace",
        "start tensorviz in the folder that holds the file, or name that folder as the workspace",
    ),
    "interpreter_not_found": ("There is no such Python interpreter", "name one that exists with --python EXE"),
    "interpreter_unusable": (
        "The Python interpreter cannot be used",
        "choose an interpreter with Python 3.10 or newer with --python EXE",
    ),
    "torch_missing": (
        "The Python interpreter has no torch",
        "choose the interpreter that runs your model with --python EXE, or install torch into this one",
    ),
    "torch_too_old": ("The installed torch is too old", "install torch 2.4 or newer into that interpreter"),
    # the worker ran, and there is nothing to capture
    "source_changed": ("The file changed meanwhile", "run it again"),
    "syntax_error": ("The file is not valid Python", "mend the line named and run it again"),
    "import_failed": ("The file could not be imported", "the attempt's log has the traceback"),
    "import_exited": (
        "The file ended the program while it was imported",
        "keep work that ends the process behind if __name__ == '__main__':",
    ),
    "import_shadowed": (
        "Another file of that name was imported",
        "another copy of the package comes first on the import path; uninstall it or install this one editable",
    ),
    "target_not_found": ("There is no such target in the file", "name a class, module or function: FILE.py:NAME"),
    "target_ambiguous": ("The file holds several models", "name one of them: FILE.py:NAME"),
    "target_unsupported": (
        "The target cannot be run",
        "name an nn.Module class, a module or a function that returns one, or FILE.py:__main__ for the whole script",
    ),
    "target_failed": ("The model could not be constructed", "the attempt's log has the traceback"),
    "inputs_missing": (
        "Nothing supplies the model's inputs",
        "add a function example_inputs() to the file, or name one with --inputs FILE.py:FUNCTION",
    ),
    "inputs_failed": ("The inputs could not be made", "the attempt's log has the traceback"),
    "nothing_recorded": (
        "The program ran and there was nothing to record",
        "name the target that calls the model, or FILE.py:__main__ for the whole script",
    ),
    "worker_failed": ("The worker ended before it recorded anything", "the attempt's log has what it printed"),
    "output_not_written": (
        "The capture could not be written",
        "choose another file, or make room, and run it again",
    ),
    "capture_rejected": (
        "What the worker wrote is not a valid capture",
        "run it again; if it happens again, please report it with the file",
    ),
    "timed_out": ("The deadline passed before anything was recorded", "allow more time with --timeout SECONDS"),
    "cancelled": ("The attempt was cancelled", None),
    # the host
    "unauthorized": (
        "The token is missing or wrong",
        "use the address that tensorviz printed when it started, with its token",
    ),
    "forbidden_host": ("This host does not answer to that name", "use http://127.0.0.1 with the port of this host"),
    "forbidden_origin": ("Requests of other sites are refused", "use the page that this host serves"),
    "not_found": ("There is no such thing here", "it may have been removed to make room; list what there is"),
    "method_not_allowed": ("The method is not allowed here", "docs/http.md lists every route and its methods"),
    "unsupported_media_type": ("The body has the wrong content type", "send Content-Type: application/json"),
    "body_too_large": ("The body is too large", "a request has at most 64 KiB"),
    "busy": ("Too much is going on", "wait until an attempt has ended, or cancel one"),
    "invalid_capture": ("The document is not a valid capture", "tensorviz validate FILE.json lists every fault"),
    "internal_error": (
        "tensorviz itself failed",
        "please report it, with what TENSORVIZ_DEBUG=1 shows; your files were not changed",
    ),
}
"""Title and usual hint of every problem code. docs/problems.md documents each."""


def problem(code: ProblemCode, detail: str, hint: str | None = None, faults: tuple[Fault, ...] = ()) -> Problem:
    """A problem with the code's own title, and its usual hint unless a better one is given."""
    title, usual = TITLES[code]
    return Problem(code=code, title=title, detail=bounded(detail), hint=bounded(hint) if hint else usual, faults=faults)


def refusal(code: ProblemCode, detail: str, hint: str | None = None, faults: tuple[Fault, ...] = ()) -> Refused:
    return Refused(problem(code, detail, hint, faults))


def bounded(text: str) -> str:
    """Text that fits a field of the contract: no lone surrogates, at most 4,096 characters."""
    text = text.encode("utf-8", "replace").decode()
    return text if len(text) <= _MAX_TEXT else text[: _MAX_TEXT - 1] + "…"
