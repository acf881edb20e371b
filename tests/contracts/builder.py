"""Writes captures the way a recorder would: events in order, ids by position, values as they are first seen."""

from typing import Any

Json = dict[str, Any]

_SIZES = {"torch.float32": 4, "torch.int64": 8, "torch.bool": 1, "torch.complex64": 8}


class New(tuple[Any, ...]):
    """A tensor of this shape that is first seen where it stands."""

    dtype = "torch.float32"


class Old(str):
    """A tensor that was seen before, by its value's id."""


class Node(dict[str, Any]):
    """An argument node, written out."""


def new(*shape: Any, dtype: str = "torch.float32") -> New:
    made = New(shape)
    made.dtype = dtype
    return made


class Builder:
    """One capture in the making. Methods return the id of what they add."""

    def __init__(self, target: str = "Net", **top: Any) -> None:
        self._sequence = 0
        self._objects = 0
        self._storages = 0
        self.open: list[str] = []
        self.document: Json = {
            "schemaVersion": 1,
            "id": "cap-00000000000000aa",
            "attempt": "att-00000000000000aa",
            "status": "complete",
            "termination": {"kind": "returned"},
            "reasons": [],
            "setup": {"kind": "planned", "planDigest": "a" * 64},
            "execution": {
                "file": None,
                "target": target,
                "targetKind": "class",
                "inputs": {"kind": "convention", "name": "example_inputs"},
                "mode": "eval",
                "fake": False,
                "gradEnabled": True,
                "inferenceMode": False,
            },
            "environment": {
                "python": "3.12.1",
                "implementation": "CPython",
                "torch": "2.13.0",
                "platform": "linux",
                "threads": 1,
                "sandbox": [],
            },
            "limits": {
                "bytes": 16777216,
                "operations": 50000,
                "invocations": 20000,
                "values": 200000,
                "argumentDepth": 32,
                "argumentItems": 10000,
                "text": 4096,
                "parameterReads": 100000,
            },
            "normalizations": [],
            "source": {"digest": "b" * 64, "scope": "partial", "files": []},
            "locations": [],
            "definitions": [],
            "modules": [],
            "state": [],
            "operators": [],
            "invocations": [],
            "operations": [],
            "values": [],
            "diagnostics": [],
            "coverage": {},
        } | top

    # -- tables

    def add(self, table: str, letter: str, **record: Any) -> str:
        records = self.document["source"]["files"] if table == "files" else self.document[table]
        name = f"{letter}{len(records)}"
        records.append({"id": name, **record})
        return name

    def file(self, path: str = "net.py", root: str = "workspace") -> str:
        return self.add("files", "f", root=root, path=path, digest="c" * 64)

    def location(self, file: str, line: int, function: str = "Net.forward", **facts: Any) -> str:
        place = {"line": line, "endLine": line, "column": 8, "endColumn": 20, "binding": "exact", "caller": None}
        return self.add("locations", "l", file=file, function=function, **place | facts)

    def module(self, kind: str, *paths: tuple[str, str], location: str | None = None) -> str:
        """``paths`` are (root, path); a module without any is registered nowhere."""
        known = [record["id"] for record in self.document["definitions"] if record["type"] == kind]
        definition = known[0] if known else self.add("definitions", "d", type=kind, location=location)
        registered = [{"root": root, "path": path} for root, path in paths]
        return self.add("modules", "m", definition=definition, paths=registered, training=False)

    def state(self, kind: str, tensor: New, *paths: tuple[str, str]) -> str:
        name = f"p{len(self.document['state'])}"
        value = self.value(tensor, {"kind": "state", "state": name}, type="torch.nn.parameter.Parameter", state=name)
        registered = [{"root": root, "path": path} for root, path in paths]
        self.add("state", "p", kind=kind, paths=registered, value=value)
        return value

    def diagnostic(self, operation: str | None, disposition: str, **facts: Any) -> str:
        call = self.open[-1] if self.open else None
        told = {"exception": "builtins.RuntimeError", "operation": operation, "invocation": call, "location": None}
        more = {"disposition": disposition, "constraints": [], "cause": None}
        return self.add("diagnostics", "x", **(told | more | facts))

    # -- values

    def value(self, tensor: New, producer: Json, **facts: Any) -> str:
        sizes = [size for size in tensor if isinstance(size, int)]
        record = {
            "object": self._count("_objects", "t"),
            "storage": facts.pop("storage", None) or self._count("_storages", "s"),
            "version": 0,
            "logicalVersion": 0,
            "previousVersion": None,
            "producer": producer,
            "type": "torch.Tensor",
            "shape": list(tensor),
            "strides": _strides(tensor),
            "storageOffset": 0,
            "dtype": tensor.dtype,
            "device": "cpu",
            "layout": "torch.strided",
            "requiresGrad": False,
            "state": None,
        }
        if len(sizes) == len(tensor):
            record["logicalBytes"] = _product(sizes) * _SIZES[tensor.dtype]
        return self.add("values", "v", **(record | facts))

    def successor(self, name: str, producer: Json) -> str:
        before = self.find(name)
        version = None if before["version"] is None else before["version"] + 1
        later = {"version": version, "logicalVersion": before["logicalVersion"] + 1, "previousVersion": name}
        record = {**before, **later, "producer": producer}
        del record["id"]
        return self.add("values", "v", **record)

    def find(self, name: str) -> Json:
        table = {"v": "values", "o": "operations", "c": "invocations", "m": "modules"}[name[0]]
        return self.document[table][int(name[1:])]

    def _count(self, counter: str, letter: str) -> str:
        number = getattr(self, counter)
        setattr(self, counter, number + 1)
        return f"{letter}{number}"

    def tick(self) -> int:
        self._sequence += 1
        return self._sequence - 1

    # -- trees

    def tree(self, value: Any, producer: Json, path: list[Any]) -> Json:
        """The node of a Python value. Tensors first seen in it are produced by ``producer`` at their path."""
        if isinstance(value, Node):
            return dict(value)
        if isinstance(value, Old):
            return {"kind": "tensor", "value": str(value)}
        if isinstance(value, New):
            made = producer if producer["kind"] == "external" else {**producer, "path": path}
            return {"kind": "tensor", "value": self.value(value, made)}
        if isinstance(value, (list, tuple)):
            items = [self.tree(item, producer, [*path, "items", index]) for index, item in enumerate(value)]
            return {"kind": type(value).__name__, "items": items}
        if isinstance(value, dict):
            return {"kind": "dict", "type": None, "entries": self._entries(value, producer, path)}
        return _scalar(value)

    def _entries(self, value: Json, producer: Json, path: list[Any]) -> list[Json]:
        return [
            {
                "key": self.tree(key, producer, [*path, "entries", index, "key"]),
                "value": self.tree(item, producer, [*path, "entries", index, "value"]),
            }
            for index, (key, item) in enumerate(value.items())
        ]

    def _trees(self, args: Any, kwargs: Json, producer: Json) -> Json:
        return {
            "args": [self.tree(value, producer, ["args", index]) for index, value in enumerate(args)],
            "kwargs": [
                {"name": name, "value": self.tree(value, producer, ["kwargs", index, "value"])}
                for index, (name, value) in enumerate(kwargs.items())
            ],
        }

    # -- events

    def enter(self, module: str, *args: Any, location: str | None = None, **kwargs: Any) -> str:
        name = f"c{len(self.document['invocations'])}"
        parent = self.open[-1] if self.open else None
        entry = self.tick()
        producer = {"kind": "external", "reason": "first_use"}
        trees = self._trees(args, kwargs, producer if self.open else {"kind": "input", "invocation": name})
        ends = {"exit": None, "status": "in_flight", "output": None, "location": location, "diagnostic": None}
        self.add("invocations", "c", module=module, parent=parent, entry=entry, **{**trees, **ends})
        self.open.append(name)
        return name

    def leave(self, output: Any) -> None:
        producer = {"kind": "external", "reason": "first_use"}
        ends = {"exit": self.tick(), "status": "completed", "output": self.tree(output, producer, [])}
        self.find(self.open.pop()).update(ends)

    def leave_failed(self, diagnostic: str, status: str = "failed") -> None:
        ends = {"exit": self.tick(), "status": status, "diagnostic": diagnostic}
        self.find(self.open.pop()).update(ends)

    def begin(self, target: str, *args: Any, location: str | None = None, **kwargs: Any) -> str:
        """An operation that stays in flight unless it is ended."""
        if target not in [operator["target"] for operator in self.document["operators"]]:
            self.document["operators"].append({"target": target, "operatorSchema": f"{target.split('.')[1]}(...)"})
        call = self.open[-1] if self.open else None
        trees = self._trees(args, kwargs, {"kind": "external", "reason": "first_use"})
        ends = {"output": None, "effects": [], "location": location, "diagnostic": None}
        common = {"sequence": self.tick(), "target": target, "status": "in_flight", "invocation": call}
        return self.add("operations", "o", **common, **trees, **ends)

    def end(self, name: str, output: Any) -> Json:
        """Completes the operation and returns its output tree."""
        tree = self.tree(output, {"kind": "output", "operation": name}, [])
        self.find(name).update(status="completed", output=tree)
        return tree

    def op(self, target: str, *args: Any, out: Any, location: str | None = None, **kwargs: Any) -> Old:
        """A completed operation; returns the first tensor of its output."""
        tree = self.end(self.begin(target, *args, location=location, **kwargs), out)
        return Old(tree.get("value") or next(item["value"] for item in tree["items"] if item["kind"] == "tensor"))

    def effect(self, operation: str, argument: list[Any], before: str, relation: str = "operand") -> Old:
        """A write that leaves a value which the operation does not return."""
        effects = self.find(operation)["effects"]
        after = self.successor(before, {"kind": "effect", "operation": operation, "path": [len(effects), "after"]})
        node = {"kind": "tensor", "value": after}
        effects.append({"argument": argument, "relation": relation, "before": str(before), "after": node})
        return Old(after)

    def mutate(self, target: str, operand: Old, *rest: Any) -> Old:
        """An operation that writes its first operand and returns it."""
        name = self.begin(target, operand, *rest)
        after = self.successor(operand, {"kind": "output", "operation": name, "path": []})
        node = {"kind": "tensor", "value": after}
        effect = {"argument": ["args", 0], "relation": "operand", "before": str(operand), "after": node}
        self.find(name)["effects"].append(effect)
        self.end(name, Old(after))
        return Old(after)

    # -- the end

    def partial(self, code: str, subject: str | None = None) -> None:
        self.document["status"] = "partial"
        self.document["reasons"].append({"code": code, "count": 1, "subject": subject, "detail": None})

    def finish(self) -> Json:
        """Counts the coverage and returns the document."""
        document = self.document
        calls: dict[str, set[str]] = {}
        for call in document["invocations"]:
            calls.setdefault(call["module"], set()).add(call["status"])
        states = {name: "failed" if "failed" in found else "observed" for name, found in calls.items()}
        document["coverage"] = {
            **{
                table: {"recorded": len(document[table]), "omitted": 0, "reason": None}
                for table in ("operations", "invocations", "values")
            },
            "modules": [
                {"module": module["id"], "state": states.get(module["id"], "not_observed")}
                for module in document["modules"]
            ],
        }
        return document


def _scalar(value: Any) -> Json:
    if value is None:
        return {"kind": "none"}
    if value is Ellipsis:
        return {"kind": "ellipsis"}
    if isinstance(value, bool):
        return {"kind": "bool", "value": value}
    if isinstance(value, int):
        return {"kind": "int", "value": str(value)}
    if isinstance(value, float):
        return {"kind": "float", "value": "-0" if str(value) == "-0.0" else str(value)}
    return {"kind": "string", "value": value}


def _strides(shape: New) -> list[int] | None:
    if not all(isinstance(size, int) for size in shape):
        return None
    return [_product(max(size, 1) for size in shape[index + 1 :]) for index in range(len(shape))]


def _product(sizes: Any) -> int:
    total = 1
    for size in sizes:
        total *= size
    return total
