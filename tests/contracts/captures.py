"""The valid captures of the corpus, one per feature. ``python -m contracts.captures`` in ``tests`` writes them."""

import json
from pathlib import Path
from typing import Any

from .builder import Builder, Json, Node, Old, new

CORPUS = Path(__file__).parents[1] / "corpus"


def linear() -> Json:
    """A root with one child, a parameter, and source locations."""
    b = Builder()
    file = b.file()
    line = b.location(file, 12)
    net = b.module("net.Net", ("m0", ""), location=line)
    fc = b.module("torch.nn.Linear", ("m0", "fc"))
    weight = b.state("parameter", new(3, 2), ("m0", "fc.weight"))
    b.document["execution"]["file"] = file
    b.enter(net, new(4, 2))
    b.find("c0")["parameterCount"] = 6
    x = b.find("c0")["args"][0]["value"]
    b.enter(fc, _old(x), location=line)
    out = b.op("aten.linear.default", _old(x), _old(weight), out=new(4, 3), location=line)
    b.leave(out)
    b.leave(out)
    return b.finish()


def nested_outputs() -> Json:
    """Tensors inside tuples, lists, dicts, named tuples and dataclasses of results."""
    b, x = _called()
    first = b.op("aten.split.Tensor", x, 2, 1, out=[new(4, 1), new(4, 1)])
    name = b.begin("aten.max.dim", first, 0)
    values = b.value(new(1), {"kind": "output", "operation": name, "path": ["items", 0]})
    indices = b.value(new(1, dtype="torch.int64"), {"kind": "output", "operation": name, "path": ["items", 1]})
    items = [{"kind": "tensor", "value": value} for value in (values, indices)]
    node = Node(kind="namedtuple", type="torch.return_types.max", fields=["values", "indices"], items=items)
    b.end(name, node)
    fields = [{"name": "hidden", "value": {"kind": "tensor", "value": str(first)}}]
    outer = Node(kind="dataclass", type="net.Result", fields=fields)
    b.leave({"logits": (first, [None, _old(values)]), 3: outer})
    return b.finish()


def stored_dict() -> Json:
    """A dict subclass shows the entries in its storage."""
    b, x = _called()
    out = b.op("aten.relu.default", x, out=new(4, 2))
    entries = [{"key": {"kind": "string", "value": "last"}, "value": {"kind": "tensor", "value": str(out)}}]
    b.leave(Node(kind="dict", type="transformers.utils.generic.ModelOutput", entries=entries))
    b.document["normalizations"] = ["dict_storage"]
    return b.finish()


def keyword_inputs() -> Json:
    """Inputs by keyword and inside a container."""
    b = Builder()
    net = b.module("net.Net", ("m0", ""))
    b.enter(net, [new(2), new(2)], mask=new(2, dtype="torch.bool"))
    call = b.find("c0")
    left, right = (item["value"] for item in call["args"][0]["items"])
    mask = call["kwargs"][0]["value"]["value"]
    total = b.op("aten.add.Tensor", _old(left), _old(right), alpha=2, out=new(2))
    b.leave(b.op("aten.masked_fill.Scalar", total, _old(mask), 0.5, out=new(2)))
    return b.finish()


def repeated_operands() -> Json:
    """The same tensor three times: as two operands and twice in a list."""
    b, x = _called()
    y = b.op("aten.mul.Tensor", x, x, out=new(4, 2))
    b.leave(b.op("aten.cat.default", [x, y, x], 0, out=new(12, 2)))
    return b.finish()


def scalars() -> Json:
    """Every scalar kind, with numbers that JavaScript could not hold."""
    b, x = _called()
    numbers = [0, -1, 2**53 + 1, -(10**40)]
    floats = [0.1, -0.0, float("inf"), float("-inf"), float("nan"), 1e-45, 1.7976931348623157e308]
    torch_kinds = [
        Node(kind="dtype", value="torch.float16"),
        Node(kind="device", value="cuda:0"),
        Node(kind="layout", value="torch.strided"),
        Node(kind="memory_format", value="torch.channels_last"),
    ]
    rest = [
        Node(kind="complex", real="1.5", imag="-0"),
        Node(kind="generator", device="cpu"),
        Node(kind="enum", type="net.Mode", name="FAST"),
        Node(kind="symbolic", type="int", expression="s0*2 + 1"),
        Node(kind="slice", start=_int(1), stop={"kind": "none"}, step=_int(-1)),
        ...,
        True,
        "text with \u2028 and \U0001f600",
        "",
    ]
    b.leave(b.op("my.everything.default", x, numbers, floats, torch_kinds, tuple(rest), [], {}, out=new()))
    return b.finish()


def sizes() -> Json:
    """Scalar, empty, complex and symbolic shapes."""
    b, x = _called()
    b.op("aten.sum.default", x, out=new())
    b.op("aten.empty.memory_format", [0, 3], out=new(0, 3))
    b.op("aten.fft_fft.default", x, out=new(4, 2, dtype="torch.complex64"))
    b.op("aten.slice.Tensor", x, 0, 0, Node(kind="symbolic", type="int", expression="s0"), out=new("s0", 2))
    nested = b.op("aten._nested_tensor_from_mask.default", x, out=new(2, "j1"))
    b.find(nested).update(layout="torch.jagged", storage=None, strides=None, storageOffset=None)
    b.leave(None)
    return b.finish()


def in_place() -> Json:
    """A mutation that returns its operand, and one that returns nothing."""
    b, x = _called()
    y = b.op("aten.relu.default", x, out=new(4, 2))
    y = b.mutate("aten.add_.Tensor", y, x)
    name = b.begin("my.scale_.default", y, y)
    y = b.effect(name, ["args", 0], y)
    again = {"argument": ["args", 1], "relation": "operand", "before": b.find(y)["previousVersion"]}
    b.find(name)["effects"].append({**again, "after": {"kind": "tensor", "value": str(y)}})
    b.end(name, None)
    b.leave(y)
    return b.finish()


def alias() -> Json:
    """A write to a base is seen by a view of it that was observed before."""
    b, x = _called()
    base = b.op("aten.clone.default", x, out=new(4, 2))
    view = b.op("aten.view.default", base, [8], out=new(8))
    b.find(view)["storage"] = b.find(base)["storage"]
    name = b.begin("aten.fill_.Scalar", base, 1)
    base_after = b.successor(base, {"kind": "output", "operation": name, "path": []})
    node = {"kind": "tensor", "value": base_after}
    effect = {"argument": ["args", 0], "relation": "operand", "before": str(base), "after": node}
    b.find(name)["effects"].append(effect)
    view_after = b.effect(name, ["args", 0], view, "alias")
    b.end(name, _old(base_after))
    b.leave(view_after)
    return b.finish()


def buffer_update() -> Json:
    """A buffer is written: every version of it is the buffer's."""
    b = Builder()
    net = b.module("net.Net", ("m0", ""))
    count = b.state("buffer", new(dtype="torch.int64"), ("m0", "count"))
    b.enter(net)
    later = b.mutate("aten.add_.Tensor", _old(count), 1)
    b.leave(b.op("aten.mul.Tensor", later, 2, out=new(dtype="torch.int64")))
    return b.finish()


def shared_modules() -> Json:
    """A module under two paths that is called twice, a tied parameter, and a second root."""
    b = Builder()
    net = b.module("net.Net", ("m0", ""))
    shared = b.module("torch.nn.Linear", ("m0", "a"), ("m0", "b"), ("m2", "inner"))
    other = b.module("net.Other", ("m2", ""))
    tied = b.state("parameter", new(2, 2), ("m0", "a.weight"), ("m0", "b.weight"), ("m2", "inner.weight"))
    x = new(4, 2)
    for root in (net, other):
        name = b.enter(root, x)
        x = _old(b.find(name)["args"][0]["value"])
        for _ in range(2 if root == net else 1):
            b.enter(shared, x)
            x = b.op("aten.mm.default", x, _old(tied), out=new(4, 2))
            b.leave(x)
        b.leave(x)
    return b.finish()


def unregistered_module() -> Json:
    """A module made during the call, one that is registered and not called, and an operation outside any call."""
    b = Builder("script.py")
    b.document["execution"]["targetKind"] = "script"
    b.document["setup"] = {"kind": "in_process"}
    x = b.op("aten.ones.default", [2], out=new(2))
    net = b.module("net.Net", ("m0", ""))
    b.module("torch.nn.Dropout", ("m0", "unused"))
    b.enter(net, x)
    relu = b.module("torch.nn.ReLU")
    b.enter(relu, x)
    out = b.op("aten.relu.default", x, out=new(2))
    b.leave(out)
    b.leave(out)
    return b.finish()


def external_values() -> Json:
    """A tensor from before the run, and a capture under inference mode, where there is no version."""
    b = Builder()
    b.document["execution"]["inferenceMode"] = True
    net = b.module("net.Net", ("m0", ""))
    b.enter(net)
    out = b.op("aten.mul.Tensor", new(3), new(3), out=new(3))
    b.leave(out)
    for value in b.document["values"]:
        value["version"] = None
    return b.finish()


def failing_operation() -> Json:
    """An operation fails, and with it the calls around it."""
    b = Builder()
    net, fc = b.module("net.Net", ("m0", "")), b.module("torch.nn.Linear", ("m0", "fc"))
    b.enter(net, new(4, 2))
    x = _old(b.find("c0")["args"][0]["value"])
    b.enter(fc, x)
    name = b.begin("aten.mm.default", x, x)
    diagnostic = b.diagnostic(name, "propagated")
    b.find(name).update(status="failed", diagnostic=diagnostic)
    b.leave_failed(diagnostic)
    b.leave_failed(diagnostic)
    b.document["termination"] = {"kind": "raised", "diagnostic": diagnostic}
    b.partial("run_failed", name)
    return b.finish()


def replaced_failure() -> Json:
    """The program raises an exception of its own in the place of an operation's; the operands violate two demands."""
    b, x = _called()
    file = b.file()
    name = b.begin("aten.bmm.default", x, x, location=b.location(file, 3))
    violated = [
        {"kind": "between", "what": "rank", "left": _of(0, "rank", 2), "minimum": 3, "maximum": 3},
        {"kind": "equal", "what": "batch", "left": _of(0, "size", 4, 0), "right": _of(0, "size", 2, 1)},
    ]
    first = b.diagnostic(name, "replaced", constraints=violated)
    b.find(name).update(status="failed", diagnostic=first)
    second = b.diagnostic(None, "propagated", exception="builtins.ValueError", cause=first)
    b.leave_failed(second)
    b.document["termination"] = {"kind": "raised", "diagnostic": second}
    b.partial("run_failed", "c0")
    return b.finish()


def unlike_operands() -> Json:
    """Lists, literals and dtypes among the demands, and a failure that was not examined."""
    b, x = _called()
    left, right = new(2, 6), new(2, 6, dtype="torch.int64")
    name = b.begin("my.everything.default", left, right, [2, -1, 5], [3, 4], 3)
    violated = [
        {"kind": "same", "left": _trait(0, "torch.float32"), "right": _trait(1, "torch.int64")},
        {"kind": "dtype", "left": _trait(1, "torch.int64"), "wanted": "floating"},
        {"kind": "divisible", "what": "elements", "left": _of(0, "elements", 12), "right": _of(2, "known", 10)},
        {"kind": "equal", "what": "split", "left": _of(3, "sum", 7), "right": _of(3, "product", 12)},
        {"kind": "equal", "what": "rank", "left": _of(3, "length", 2), "right": _of(4, "squared", 9)},
        {"kind": "between", "what": "padding", "left": _of(4, "value", 3), "minimum": None, "maximum": 2},
        {"kind": "at_most", "what": "kernel", "left": _of(2, "extent", 9, 1), "right": _of(1, "padded", 8, 1)},
        {"kind": "broadcast", "stretches": "left", "left": _of(0, "size", 2, 0), "right": _of(1, "size", 6, 1)},
    ]
    b.find(name).update(status="failed", diagnostic=b.diagnostic(name, "suppressed", constraints=violated))
    again = b.begin("my.everything.default", left)
    b.find(again).update(status="failed", diagnostic=b.diagnostic(again, "suppressed", constraints=None))
    b.leave(x)
    return b.finish()


def stopped_call() -> Json:
    """Checkpoint leaves a call as soon as it has recomputed what it needs: nothing failed."""
    b, x = _called()
    b.enter(b.module("net.Block", ("m0", "block")), x)
    b.op("aten.relu.default", x, out=new(4, 2))
    exception = "torch.utils.checkpoint._StopRecomputationError"
    b.leave_failed(b.diagnostic(None, "control_flow", exception=exception), "stopped")
    b.leave(x)
    return b.finish()


def suppressed_failure() -> Json:
    """The program survives a failing operation: nothing is missing."""
    b, x = _called()
    name = b.begin("aten.mm.default", x, x)
    b.find(name).update(status="failed", diagnostic=b.diagnostic(name, "suppressed"))
    b.leave(b.op("aten.relu.default", x, out=new(4, 2)))
    return b.finish()


def failed_write() -> Json:
    """A kernel fails while it may have been writing."""
    b, x = _called()
    name = b.begin("aten.add_.Tensor", x, new(3, 5))
    b.find(name).update(status="failed", diagnostic=b.diagnostic(name, "suppressed"))
    after = {"kind": "opaque", "type": "torch.Tensor", "reason": "failed_write"}
    effect = {"argument": ["args", 0], "relation": "operand", "before": str(x), "after": after}
    b.find(name)["effects"].append(effect)
    b.partial("failed_write", name)
    b.leave(x)
    return b.finish()


def in_flight() -> Json:
    """The worker died inside an operation."""
    b, x = _called()
    y = b.op("aten.relu.default", x, out=new(4, 2))
    name = b.begin("my.crash.default", y)
    b.document["termination"] = {"kind": "killed", "signal": "SIGSEGV"}
    b.partial("worker_killed", name)
    return b.finish()


def budget_cut() -> Json:
    """The operation budget was spent: the rest is counted, and modules may have been called unseen."""
    b = Builder()
    b.document["limits"]["operations"] = 1
    net = b.module("net.Net", ("m0", ""))
    b.module("torch.nn.ReLU", ("m0", "act"))
    b.enter(net, new(2))
    out = b.op("aten.relu.default", _old(b.find("c0")["args"][0]["value"]), out=new(2))
    b.leave(out)
    b.partial("operation_limit")
    document = b.finish()
    document["coverage"]["operations"].update(omitted=7, reason="operation_limit")
    document["coverage"]["values"].update(omitted=None, reason="operation_limit")
    document["coverage"]["modules"][1]["state"] = "capture_limited"
    return document


def opaque_arguments() -> Json:
    """Objects that are not read, and an uninitialized parameter."""
    b = Builder()
    net = b.module("net.Net", ("m0", ""))
    lazy = {"kind": "parameter", "paths": [{"root": "m0", "path": "weight"}], "value": None}
    b.add("state", "p", **lazy, unavailable="uninitialized")
    cache = Node(kind="opaque", type="net.Cache", reason="unsupported_type")
    b.enter(net, new(2), cache=cache)
    b.find("c0")["parameterCountUnavailable"] = "unsupported_metadata"
    b.leave(_old(b.find("c0")["args"][0]["value"]))
    b.partial("unsupported_argument", "c0")
    b.partial("lazy_state", "p0")
    return b.finish()


def unobserved_write() -> Json:
    """A tensor changed between two uses and no operation says so."""
    b, x = _called()
    later = b.successor(x, {"kind": "external", "reason": "unobserved_write"})
    b.leave(b.op("aten.relu.default", _old(later), out=new(4, 2)))
    b.partial("unobserved_write", later)
    return b.finish()


def fake_tensors() -> Json:
    """A capture without values: shapes alone."""
    b, x = _called()
    b.leave(b.op("aten.relu.default", x, out=new(4, 2)))
    b.document["execution"]["fake"] = True
    b.document["normalizations"] = ["fake_device_reads"]
    return b.finish() | {"valuesUnavailable": "fake_tensor"}


def interrupted_recorder() -> Json:
    """The recorder itself failed: what was open stays open, though the program went on and returned."""
    b, x = _called()
    b.op("aten.relu.default", x, out=new(4, 2))
    b.partial("instrumentation_error")
    document = b.finish()
    for table in ("operations", "invocations", "values"):
        document["coverage"][table].update(omitted=None, reason="instrumentation_error")
    return document


def deep_arguments() -> Json:
    """Containers as deep as the contract allows."""
    b, x = _called()
    tree: Any = [x]
    for _ in range(27):
        tree = [tree]
    b.leave(b.op("my.deep.default", tree, out=new(1)))
    return b.finish()


def source_ways() -> Json:
    """Places with the way to each, every kind of binding, and a way that was cut."""
    b = Builder()
    files = [b.file(), b.file("helpers.py"), b.file("torchvision/ops/misc.py", "library")]
    line = {"endLine": None, "column": None, "endColumn": None}
    forward = b.location(files[0], 12)
    library = b.location(files[2], 80, "apply", binding="unmapped", caller=forward)
    helper = b.location(files[1], 3, "scale", caller=library, endLine=4, endColumn=2)
    plain = b.location(files[1], 9, "shift", caller=helper, binding="candidate", **line)
    crowded = b.location(files[1], 9, "shift", caller=helper, binding="ambiguous", **line)
    deep = b.location(files[1], 20, "again", binding="unmapped", callersOmitted=True, **line)
    b.enter(b.module("net.Net", ("m0", ""), location=b.location(files[0], 10)), new(4, 2))
    x = _old(b.find("c0")["args"][0]["value"])
    for place in (helper, plain, crowded, b.location(files[1], 21, "again", caller=deep)):
        x = b.op("aten.relu.default", x, out=new(4, 2), location=place)
    b.leave(x)
    b.partial("location_limit")
    return b.finish()


def deep_way() -> Json:
    """A way of as many frames as the contract allows."""
    b, x = _called()
    file, line = b.file(), None
    for _ in range(64):
        line = b.location(file, 7, "again", caller=line)
    b.leave(b.op("aten.relu.default", x, out=new(4, 2), location=line))
    return b.finish()


VALID = (
    linear, nested_outputs, stored_dict, keyword_inputs, repeated_operands, scalars, sizes, in_place, alias,
    buffer_update, shared_modules, unregistered_module, external_values, failing_operation, replaced_failure,
    unlike_operands, stopped_call, suppressed_failure,
    failed_write, in_flight, budget_cut, opaque_arguments, unobserved_write, fake_tensors, interrupted_recorder,
    deep_arguments, source_ways, deep_way,
)  # fmt: skip


def large(operations: int) -> Json:
    """A capture of a deep network of this many operations, for measurements: about 480 bytes for each of them."""
    b = Builder()
    net = b.module("net.Net", ("m0", ""))
    b.enter(net, new(8, 64))
    x = _old(b.find("c0")["args"][0]["value"])
    file = b.file()
    for layer in range(operations // 10):
        line = b.location(file, layer + 1)
        block = b.module("net.Block", ("m0", f"blocks.{layer}"))
        weight = _old(b.state("parameter", new(64, 64), ("m0", f"blocks.{layer}.weight")))
        b.enter(block, x, location=line)
        y = x
        for _ in range(3):
            x = b.op("aten.mm.default", x, weight, out=new(8, 64), location=line)
            y = b.op("aten.view.default", x, [2, 4, 64], out=new(2, 4, 64), location=line)
            y = b.op("aten.clone.default", y, memory_format=None, out=new(2, 4, 64), location=line)
        x = b.mutate("aten.mul_.Scalar", x, 0.5)
        b.leave((x, y))
    b.leave(x)
    return b.finish()


def _called() -> tuple[Builder, Any]:
    """A root call with one input."""
    b = Builder()
    b.enter(b.module("net.Net", ("m0", "")), new(4, 2))
    return b, _old(b.find("c0")["args"][0]["value"])


def _old(name: str) -> Any:
    return Old(name)


def _of(argument: int, of: str, number: int, dim: int | None = None) -> Json:
    return {"path": ["args", argument], "of": of, "dim": dim, "number": number}


def _trait(argument: int, dtype: str) -> Json:
    return {"path": ["args", argument], "of": "dtype", "name": dtype}


def _int(value: int) -> Json:
    return {"kind": "int", "value": str(value)}


def text_of(document: Json) -> str:
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for make in VALID:
        (CORPUS / "valid" / f"{make.__name__}.json").write_text(text_of(make()), encoding="utf-8")
