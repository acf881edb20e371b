"""An independent witness: runs a model file under a dispatch mode of its own and prints what was dispatched.

    python tests/models/oracle.py FILE TARGET [--mode eval|train|as_is]

It shares no code with tensorviz and needs nothing but torch, so it runs in any interpreter. Each operation is one line,
``aten.addmm.default(float32[8], float32[4, 16], float32[16, 8]) -> float32[4, 8]``: the tensors among its arguments and
its results, in order; an operation that raised ends in ``-> !ExceptionType``. The last line of standard output is JSON:
these lines as ``operations``, and as ``places`` the file and line of the code that caused each.
"""

import argparse
import importlib.util
import json
import os
import sys


def parse_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("target")
    parser.add_argument("--mode", default="eval", choices=["eval", "train", "as_is"])
    return parser.parse_args()


def load(path):
    path = os.path.abspath(path)
    sys.path[0] = os.path.dirname(path)
    name = os.path.splitext(os.path.basename(path))[0]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def build(module, target, mode):
    """The model that ``target`` names: an instance, or what the class or function makes."""
    import torch

    model = getattr(module, target)
    if not isinstance(model, torch.nn.Module):
        model = model(*getattr(module, "get_init_inputs", list)())
    if mode != "as_is":
        model.train(mode == "train")
    return model


def inputs_of(module, model):
    """``(args, kwargs)`` by the first convention that the file or the model follows."""
    if hasattr(module, "example_inputs"):
        found = module.example_inputs
        found = found() if callable(found) else found
    elif hasattr(module, "get_inputs"):
        found = module.get_inputs()
    elif hasattr(model, "example_input_array"):
        found = model.example_input_array
    else:
        found = model.dummy_inputs
    if isinstance(found, dict):
        return (), found
    if isinstance(found, (list, tuple)):
        return tuple(found), {}
    return (found,), {}


def tensors(tree):
    import torch

    if isinstance(tree, torch.Tensor):
        dtype = str(tree.dtype).replace("torch.", "")
        yield f"{dtype}{list(tree.shape)}"
    elif isinstance(tree, (list, tuple)):
        for item in tree:
            yield from tensors(item)
    elif isinstance(tree, dict):
        for item in tree.values():
            yield from tensors(item)


def place():
    """``resnet.py:46``: the innermost frame that is neither torch's nor of this file."""
    import torch

    hidden = (os.path.dirname(torch.__file__) + os.sep, os.path.abspath(__file__))
    frame = sys._getframe(1)
    while frame is not None and os.path.abspath(frame.f_code.co_filename).startswith(hidden):
        frame = frame.f_back
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}" if frame is not None else None


def watch(call):
    """The lines of all that ``call`` dispatches, where each came from, and the exception that ended it, if any."""
    from torch.utils._python_dispatch import TorchDispatchMode

    lines, places = [], []

    class Witness(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            kwargs = kwargs or {}
            line = f"{func}({', '.join([*tensors(args), *tensors(kwargs)])}) -> "
            number = len(lines)
            lines.append(line + "?")
            places.append(place())
            try:
                result = func(*args, **kwargs)
            except BaseException as error:
                lines[number] = line + "!" + type(error).__name__
                raise
            lines[number] = line + ", ".join(tensors(result))
            return result

    error = None
    with Witness():
        try:
            call()
        except Exception as caught:
            error = caught
    return lines, places, error


def main():
    request = parse_arguments()
    module = load(request.file)
    model = build(module, request.target, request.mode)
    args, kwargs = inputs_of(module, model)
    lines, places, _ = watch(lambda: model(*args, **kwargs))
    sys.stdout.flush()
    print(json.dumps({"operations": lines, "places": places}))


if __name__ == "__main__":
    main()
