import { describe, expect, it } from "vitest";
import { readdirSync, readFileSync } from "node:fs";
import { explain, terminationText, type ReasonCode } from "../src/model/reasons";
import { ancestors, callName, callsInside, isWithin, operationsOf, place, relativeName, requestOf, rootCaller, RUN } from "../src/model/capture";
import { argumentName, effectNames } from "../src/model/effects";
import { causes, demands } from "../src/model/failure";
import { bindingText, rangeText, wayOut } from "../src/model/places";
import { schemaNames } from "../src/model/schema";
import { hitsPerCall, normalize, searchIndex } from "../src/model/search";
import { GROUP, initiallyOpen, openTo, treeRows, uncalledModules } from "../src/model/tree";
import { usePaths, valueIndex } from "../src/model/values";
import { corpus, hostile, modelOf } from "./captures";

const valid = readdirSync(new URL("../../../tests/corpus/valid", import.meta.url)).map((name) => name.replace(".json", ""));

/** The sentences about captures of the corpus; Python's terminal says the same. */
const DEMANDS = JSON.parse(readFileSync(new URL("../../../tests/corpus/demands.json", import.meta.url), "utf8")) as Record<string, string[]>;

describe("a failure", () => {
  const sentences = (name: string) => {
    const model = modelOf(corpus(name));
    return model.snapshot.operations.flatMap((operation) => demands(model, operation));
  };

  it("is told by what the operands violate, in the words of the terminal", () => {
    expect(Object.fromEntries(Object.keys(DEMANDS).map((name) => [name, sentences(name)]))).toEqual(DEMANDS);
  });

  it("leads from the exception that ended the run to the operation where it began", () => {
    const model = modelOf(corpus("replaced_failure"));
    const [first, last] = model.snapshot.diagnostics;
    expect(last && causes(model, last)).toEqual([first]);
    expect(model.culprit).toBe(0);
  });
});

describe("the way to a place", () => {
  const model = modelOf(corpus("source_ways"));
  const { locations, operations } = model.snapshot;
  const lines = (op: number) =>
    wayOut(model, operations[op]?.location ?? null, 0).map(({ place, into, cut }) => `${place.text}${into === null ? "" : ` calls ${into}`}${cut ? " …" : ""}`);

  it("leads through the callers of an operation, in the order outwards", () => {
    expect(lines(0)).toEqual(["misc.py:80", "net.py:12"]);
    expect(lines(1)).toEqual(["helpers.py:3", "misc.py:80", "net.py:12"]);
  });

  it("says where it was cut", () => {
    expect(lines(3)).toEqual(["helpers.py:20 …"]);
  });

  it("goes on at the place where each call around it was made", () => {
    const snapshot = corpus("source_ways");
    const made = structuredClone(snapshot.invocations[0]);
    if (!made) throw new Error("there is a call");
    snapshot.invocations = [made, { ...made, id: "c1", parent: "c0", location: "l2" }, { ...made, id: "c2", parent: "c1", location: "l4" }];
    const nested = modelOf(snapshot);
    const steps = wayOut(nested, "l3", 2).map(({ place, into }) => [place.location.id, into]);
    expect(steps).toEqual([["l2", null], ["l1", null], ["l0", null], ["l4", 2], ["l2", null], ["l1", null], ["l0", null], ["l2", 1], ["l1", null], ["l0", null]]);
    const within = wayOut(nested, "l4", 2).map(({ place, into }) => [place.location.id, into]);
    expect(within).toEqual([["l2", null], ["l1", null], ["l0", null], ["l2", 1], ["l1", null], ["l0", null]]);
  });

  it("tells every kind of binding in words of its own", () => {
    const texts = locations.map((location) => bindingText(model, location).text);
    expect(texts).toEqual(["exact expression", "library code", "exact expression", "one candidate", "several candidates", "not in the saved file", "exact expression", "exact expression"]);
    expect(locations.map(rangeText)).toEqual([
      "columns 8 to 20", "columns 8 to 20", "columns 8 to 4:2", "", "", "", "columns 8 to 20", "columns 8 to 20",
    ]);
  });

  it("ends where the capture tells no more", () => {
    expect(wayOut(model, null, RUN)).toEqual([]);
    expect(wayOut(modelOf(corpus("deep_way")), "l63", RUN)).toHaveLength(63);
  });
});

describe("every capture of the corpus", () => {
  it.each(valid)("%s: each operation belongs to one call and is listed by all around it", (name) => {
    const model = modelOf(corpus(name));
    const { invocations, operations } = model.snapshot;
    const listed = [...model.outside, ...model.own.flat()].sort((a, b) => a - b);
    expect(listed).toEqual(operations.map((_, i) => i));
    invocations.forEach((_, call) => {
      const deep = operationsOf(model, call, true);
      expect(deep).toHaveLength(model.below[call] ?? -1);
      expect(deep).toEqual([...deep].sort((a, b) => a - b));
      for (const outer of ancestors(model, call)) expect(isWithin(model, call, outer)).toBe(true);
    });
    expect(operationsOf(model, RUN, true)).toHaveLength(operations.length);
  });

  it.each(valid)("%s: an open tree has a row for every call", (name) => {
    const model = modelOf(corpus(name));
    const all = new Set([RUN, ...model.snapshot.invocations.keys()]);
    const calls = treeRows(model, all, []).filter((row) => row.kind === "call");
    expect(calls.map((row) => row.kind === "call" && row.call)).toEqual([...model.snapshot.invocations.keys()]);
  });

  it.each(valid)("%s: every reader of a value really reads it", (name) => {
    const model = modelOf(corpus(name));
    const index = valueIndex(model);
    for (const { id } of model.snapshot.values) {
      for (const reader of index.consumers(id)) expect(usePaths(model, reader, id).length).toBeGreaterThan(0);
    }
  });

  it.each(valid)("%s: says how it ended, and why it is partial", (name) => {
    const snapshot = corpus(name);
    expect(terminationText(snapshot)).toMatch(/\.$/);
    for (const { code } of snapshot.reasons) expect(explain(code).missing).toMatch(/\.$/);
  });
});

describe("a shared module", () => {
  const model = modelOf(corpus("shared_modules"));

  it("counts its calls in the whole run, and apart from that those beside each other", () => {
    expect(Math.max(...model.occurrences)).toBe(3);
    expect(Math.max(...model.nth)).toBe(2);
  });
});

describe("the hostile capture", () => {
  const model = modelOf(hostile());

  it("names calls under their parents, as text", () => {
    expect(model.labels).toEqual([
      "Hostile",
      "blocks.0.a_module_with_quite_a_long_name_that_does_not_end",
      "evil\u202e\u2066txt",
      "__proto__",
    ]);
    expect(callName(model, 2)).toBe("evil\\u{202e}\\u{2066}txt");
    expect(relativeName(model, 3, 0)).toBe("__proto__");
    expect(callsInside(model, 0)).toBe(3);
  });

  it("finds the operation that failed", () => {
    expect(model.culprit).toBe(4);
    expect(terminationText(model.snapshot)).toBe("The run raised RuntimeError.");
  });

  it("tells a container from a module that was not called", () => {
    expect(uncalledModules(model).map(({ path, container }) => [path, container])).toEqual([
      ["drop", false],
      ["blocks", true],
    ]);
  });

  it("names what is written", () => {
    const copy = model.snapshot.operations[1];
    expect(copy && effectNames(model, copy)).toEqual(["args[0] (cache)"]);
  });

  it("names arguments by keyword, by schema, or by path", () => {
    const [everything, , cat] = model.snapshot.operations;
    if (!everything || !cat) throw new Error("the fixture is too short");
    expect(argumentName(model, everything, ["kwargs", 0, "value"])).toBe("temperature");
    expect(argumentName(model, everything, ["args", 6, "entries", 1, "value"])).toBe("table[1]");
    expect(argumentName(model, cat, ["args", 0, "items", 2])).toBe("args[0].items[2]");
  });

  it("shows a file's name with its line, escaped, and keeps the exact one", () => {
    expect(place(model, "l1")).toMatchObject({
      text: "hostile\\u{202e}gpj.py:11",
      full: "models/hostile\\u{202e}gpj.py:11",
      exact: "models/hostile\u202egpj.py:11",
    });
    expect(place(model, null)).toBeNull();
  });

  it("explains each of its reasons in words of its own", () => {
    const said = model.snapshot.reasons.map(({ code }) => explain(code as ReasonCode).happened);
    expect(new Set(said).size).toBe(said.length);
    expect(explain("constructor").happened).toBe("Reason constructor.");
  });
});

describe("the tree", () => {
  const model = modelOf(hostile());
  const rows = (open: number[]) => treeRows(model, new Set(open), uncalledModules(model)).map((row) => row.key);

  it("opens and closes", () => {
    expect(rows([])).toEqual(["c0", "group"]);
    expect(rows([0])).toEqual(["c0", "c1", "c2", "c3", "group"]);
    expect(rows([0, GROUP])).toEqual(["c0", "c1", "c2", "c3", "group", "m4", "m5"]);
  });

  it("opens as much as can be seen at a glance", () => {
    expect(initiallyOpen(model).has(0)).toBe(true);
    expect(openTo(model, new Set(), 3)).toEqual(new Set([0, RUN]));
  });
});

describe("search", () => {
  const model = modelOf(hostile());
  const find = (query: string) => searchIndex(model).find(query).map(({ kind, index }) => `${kind}${index}`);

  it("finds shapes however they are written", () => {
    for (const query of ["12x8", "12×8", "[12, 8]", "12,8"]) expect(find(query)).toEqual(["op2"]);
  });

  it("finds operations, modules, dtypes, parameters and source lines, in order", () => {
    expect(find("addmm")).toEqual(["op4"]);
    expect(find("__proto__")).toEqual(["call3", "op3", "op4"]);
    expect(find("gpj.py:13")).toEqual(["op3", "op4"]);
    expect(find("bool[4,8]")).toEqual(["op0"]);
    expect(find("float32 cat")).toEqual(["op2"]);
    expect(find("cache copy_")).toEqual(["op1"]);
    expect(find("   ")).toEqual([]);
  });

  it("counts what lies in each call", () => {
    const counts = hitsPerCall(model, searchIndex(model).find("__proto__"));
    expect([counts.get(3), counts.get(0), counts.get(RUN), counts.get(1)]).toEqual([3, 3, 3, undefined]);
  });

  it("normalizes only what stands between digits", () => {
    expect(normalize("Max x 2 x 3")).toBe("max x 2,3");
  });
});

describe("operator schemas", () => {
  it("give names to positions and results", () => {
    expect(schemaNames("aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor")).toEqual({
      args: ["self", "other", "alpha"],
      returns: [],
    });
    expect(schemaNames("aten::split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]").args).toEqual([
      "self",
      "split_size",
      "dim",
    ]);
    expect(schemaNames("aten::max.dim(Tensor self, int dim) -> (Tensor values, Tensor indices)").returns).toEqual([
      "values",
      "indices",
    ]);
    expect(schemaNames("ns::f(int[2] a=[1, 2], str b=\"x\") -> ()")).toEqual({ args: ["a", "b"], returns: [] });
    expect(schemaNames(null)).toEqual({ args: [], returns: [] });
    expect(schemaNames("nonsense(((")).toEqual({ args: [], returns: [] });
  });
});

describe("what a capture tells of its making", () => {
  it("is as much of the request as it knows, and nothing where no file was run", () => {
    expect(requestOf(modelOf(corpus("linear")))).toEqual({ file: expect.any(String), target: "Net", mode: "eval", fake: false });
    expect(requestOf(modelOf(corpus("unregistered_module")))).toBeUndefined();
  });

  it("is who made a root call", () => {
    expect(rootCaller(corpus("linear"))).toContain("tensorviz made this call itself");
    expect(rootCaller(corpus("unregistered_module"))).toContain("outside of the recorded code");
  });
});
