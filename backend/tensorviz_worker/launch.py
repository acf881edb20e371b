"""One attempt: plan -> import -> model -> inputs -> recorded run -> end of the journal.

Everything that can go wrong on the way is a problem line in the journal, with what to do next. What the user's code
prints goes to the descriptors it was given; the journal is a file of its own that it never sees.
"""

import contextlib
import hashlib
import json
import os
import platform
import sys
import traceback
from typing import Any

from tensorviz_worker.journal import FileJournal, to_json
from tensorviz_worker.refusal import Refusal

_OWN = os.path.dirname(os.path.abspath(__file__)) + os.sep


def main(plan_path: str) -> None:
    """Runs the plan and ends the process at once: threads and exit handlers of the program must not keep it alive."""
    with open(plan_path, "rb") as stream:
        plan = json.load(stream)
    journal = FileJournal(
        os.path.join(os.path.dirname(os.path.abspath(plan_path)), "journal"), 2 * plan["limits"]["bytes"] + 2**22
    )
    try:
        _attempt(plan, journal)
    except Refusal as refusal:
        problem = {"code": refusal.code, "detail": _bounded(refusal.detail), "hint": refusal.hint}
        journal.write(f'{{"problem":{to_json(problem)}}}')
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(0)


def _attempt(plan: "dict[str, Any]", journal: FileJournal) -> None:
    _stage(journal, "importing")
    _import_torch()
    from tensorviz_worker import fake, target
    from tensorviz_worker.budget import Limits
    from tensorviz_worker.recorder import Recorder

    journal.write(f'{{"environment":{to_json(environment())}}}')
    _verify(plan)
    path, roots, name = plan["file"], list(plan["roots"]), plan["target"]
    recorder = Recorder(journal, Limits(**plan["limits"]), plan["workspace"])
    file = recorder.sources.cite(path)
    script = name == target.SCRIPT
    load = target.script if script else target.load
    loaded = _user_step("import_failed", lambda: load(path, roots))
    with fake.mode(plan["fake"]) as mode:
        if script:
            _execution(journal, plan, file, loaded, ("none", None))
            _run(journal, recorder, loaded.build, is_script=True)
            return
        chosen = target.resolve(loaded, name, path)
        _stage(journal, "preparing")
        model = _user_step("target_failed", lambda: _model(chosen, plan["mode"], mode))
        inputs = _inputs(plan, loaded, model, mode)
        _execution(journal, plan, file, chosen, (inputs.kind, inputs.name))
        recorder.describe(model)
        _run(journal, recorder, lambda: model(*inputs.args, **inputs.kwargs))


def _model(chosen: Any, training: str, mode: Any) -> Any:
    from tensorviz_worker import fake

    model = chosen.build()
    if mode is not None:
        fake.fake_state(mode, model)
    return model if training == "as_is" else model.train(training == "train")


def _import_torch() -> None:
    try:
        import torch  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise Refusal("import_failed", f"torch does not import: {_describe(error)}") from error
        raise Refusal(
            "torch_missing",
            f"{sys.executable} has no torch",
            "choose the interpreter that runs your model with --python EXE, or install torch into this one",
        ) from error
    except Exception as error:
        raise Refusal("import_failed", f"torch does not import: {_describe(error)}") from error


def _verify(plan: "dict[str, Any]") -> None:
    """The file must still be what the plan was made for."""
    try:
        with open(plan["file"], "rb") as stream:
            digest = hashlib.sha256(stream.read()).hexdigest()
    except OSError as error:
        raise Refusal("file_not_found", f"{plan['file']}: {error.strerror}") from error
    if digest != plan["fileDigest"]:
        raise Refusal("source_changed", f"{plan['file']} changed after the plan was made", "run it again")


def environment() -> "dict[str, Any]":
    """Facts of this interpreter, as the contract's Environment has them, without the host's part."""
    import torch

    return {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "torch": str(torch.__version__),
        "platform": platform.platform(),
        "threads": torch.get_num_threads(),
    }


def _inputs(plan: "dict[str, Any]", module: Any, model: Any, mode: Any) -> Any:
    from tensorviz_worker import fake, inputs, target

    asked = plan["inputs"]
    if asked is None:
        found = _user_step("inputs_failed", lambda: inputs.by_convention(module, model))
    else:
        file, name = asked["file"], asked["function"]
        same = os.path.realpath(file) == os.path.realpath(plan["file"])
        source = module if same else _user_step("inputs_failed", lambda: target.load(file, list(plan["roots"])))
        function = getattr(source, name, None)
        if not callable(function):
            raise Refusal("inputs_missing", f"{file} has no function {name}", "check the name after --inputs FILE.py:")
        found = _user_step("inputs_failed", lambda: inputs.from_function(function, name))
    if mode is None:
        return found
    return found._replace(args=fake.fake_values(mode, found.args), kwargs=fake.fake_values(mode, found.kwargs))


def _execution(
    journal: FileJournal, plan: "dict[str, Any]", file: str, chosen: Any, inputs: "tuple[str, str | None]"
) -> None:
    import torch

    record = {
        "file": file,
        "target": chosen.name,
        "targetKind": chosen.kind,
        "inputs": {"kind": inputs[0], "name": inputs[1]},
        "mode": plan["mode"] if chosen.kind != "script" else "as_is",
        "fake": plan["fake"],
        "gradEnabled": torch.is_grad_enabled(),
        "inferenceMode": torch.is_inference_mode_enabled(),
    }
    journal.write(f'{{"execution":{to_json(record)}}}')


def _run(journal: FileJournal, recorder: Any, call: Any, is_script: bool = False) -> None:
    _stage(journal, "running")
    error: BaseException | None = None
    recorder.start()
    try:
        call()
    except SystemExit as exit_:
        error = None if is_script and exit_.code in (None, 0) else exit_
    except BaseException as raised:
        error = raised
    recorder.stop(error)
    if error is not None:
        _print_traceback(error)
    if recorder.failure is not None:
        _print_traceback(recorder.failure)
    _stage(journal, "finishing")


def _user_step(code: str, step: Any) -> Any:
    """Runs code of the user's. What it raises becomes a refusal that says where; the traceback goes to the log."""
    try:
        return step()
    except Refusal:
        raise
    except SyntaxError as error:
        _print_traceback(error)
        place = f"{error.filename}:{error.lineno}" if error.lineno else "the file"
        raise Refusal("syntax_error", f"{error.msg} ({place})", f"mend {place} and run it again") from error
    except SystemExit as error:
        raise Refusal(
            "import_exited" if code == "import_failed" else code,
            f"the program called sys.exit({error.code!r}) before there was a model to run",
            "keep work that ends the process behind if __name__ == '__main__':",
        ) from error
    except BaseException as error:
        _print_traceback(error)
        raise Refusal(code, _describe(error), "the attempt's log has the traceback") from error


def _describe(error: BaseException) -> str:
    """Type, message and innermost place of the user's code."""
    torch_folder = os.path.dirname(getattr(sys.modules.get("torch"), "__file__", None) or _OWN) + os.sep
    place = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        name = frame.f_code.co_filename
        if not name.startswith((_OWN, torch_folder, "<")):
            place = f" ({name}:{line})"
    try:
        message = str(error)
    except Exception:
        message = "(its message cannot be read)"
    return f"{type(error).__name__}: {message}{place}"


def _print_traceback(error: BaseException) -> None:
    """The traceback as Python prints it, without the frames that are ours."""
    with contextlib.suppress(Exception):
        report = traceback.TracebackException.from_exception(error)
        _leave_out_our_frames(report)
        sys.stderr.write("".join(report.format()))


def _leave_out_our_frames(report: Any) -> None:
    """In the exceptions that led to this one, too, and in those of a group."""
    rest = [report]
    while rest:
        one = rest.pop()
        theirs = [frame for frame in one.stack if not frame.filename.startswith(_OWN)]
        one.stack = traceback.StackSummary.from_list(theirs)
        linked = (one.__cause__, one.__context__, *(getattr(one, "exceptions", None) or ()))
        rest.extend(other for other in linked if other is not None)


def _bounded(text: str) -> str:
    text = text.encode("utf-8", "replace").decode()
    return text if len(text) <= 4000 else text[:4000] + "…"


def _stage(journal: FileJournal, name: str) -> None:
    journal.write(f'{{"stage":"{name}"}}')
