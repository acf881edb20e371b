/** Every id is a position in its own list, and everything that is cited exists. */
import type { CaptureSnapshot, Producer } from "../generated/types";
import type { Path } from "../trees";
import { fault, PLACES, type Capture, type Fault, type Letter, type Rule } from "./lookup";

function* idsArePositions(capture: Capture): Generator<Fault> {
  for (const [letter, records] of Object.entries(capture.lists) as [Letter, { id: string }[]][]) {
    for (const [index, record] of records.entries()) {
      if (record.id !== `${letter}${index}`) {
        yield fault([...PLACES[letter], index, "id"], "id", `${record.id} stands where ${letter}${index} belongs`);
      }
    }
  }
}

const FIELDS: readonly [Letter, readonly string[]][] = [
  ["l", ["file", "caller"]],
  ["d", ["location"]],
  ["m", ["definition"]],
  ["p", ["value"]],
  ["c", ["module", "parent", "location", "diagnostic"]],
  ["o", ["invocation", "location", "diagnostic"]],
  ["v", ["previousVersion", "state"]],
  ["x", ["operation", "invocation", "location", "cause"]],
];

function* referencesResolve(capture: Capture): Generator<Fault> {
  for (const [letter, fields] of FIELDS) {
    for (const field of fields) {
      for (const [index, record] of capture.lists[letter].entries()) {
        const name = (record as unknown as Record<string, string | null>)[field] ?? null;
        if (name !== null && !capture.ids.has(name)) yield missing([...PLACES[letter], index, field], name);
      }
    }
  }
}

function* producersExist(capture: Capture): Generator<Fault> {
  for (const [index, { producer }] of capture.snapshot.values.entries()) {
    const [field, name] = cited(producer);
    if (name !== null && !capture.ids.has(name)) yield missing(["values", index, "producer", field], name);
  }
}

function cited(producer: Producer): [string, string | null] {
  switch (producer.kind) {
    case "input":
      return ["invocation", producer.invocation];
    case "state":
      return ["state", producer.state];
    case "output":
    case "effect":
      return ["operation", producer.operation];
    case "external":
      return ["", null];
  }
}

function* registrationsExist(capture: Capture): Generator<Fault> {
  for (const letter of ["m", "p"] as const) {
    for (const [index, record] of capture.lists[letter].entries()) {
      for (const [place, registered] of record.paths.entries()) {
        if (!capture.ids.has(registered.root)) {
          yield missing([...PLACES[letter], index, "paths", place, "root"], registered.root);
        }
      }
    }
  }
}

function* valuesUsedExist(capture: Capture): Generator<Fault> {
  const { ids } = capture;
  for (const use of capture.uses) if (!ids.has(use.value)) yield missing([...use.path, "value"], use.value);
  for (const [index, operation] of capture.snapshot.operations.entries()) {
    for (const [place, effect] of operation.effects.entries()) {
      const path = ["operations", index, "effects", place];
      if (!ids.has(effect.before)) yield missing([...path, "before"], effect.before);
      if (effect.after.kind === "tensor" && !ids.has(effect.after.value)) {
        yield missing([...path, "after", "value"], effect.after.value);
      }
    }
  }
}

function* summariesCiteWhatExists(capture: Capture): Generator<Fault> {
  for (const [path, name] of citations(capture.snapshot)) {
    if (name !== null && !capture.ids.has(name)) yield missing(path, name);
  }
}

function* citations(snapshot: CaptureSnapshot): Generator<[Path, string | null]> {
  yield [["execution", "file"], snapshot.execution.file];
  if (snapshot.termination.kind === "raised") yield [["termination", "diagnostic"], snapshot.termination.diagnostic];
  for (const [index, covered] of snapshot.coverage.modules.entries()) {
    yield [["coverage", "modules", index, "module"], covered.module];
  }
  for (const [index, reason] of snapshot.reasons.entries()) yield [["reasons", index, "subject"], reason.subject];
}

function* operatorsAreListedOnce(capture: Capture): Generator<Fault> {
  const known = new Set<string>();
  for (const [index, { target }] of capture.snapshot.operators.entries()) {
    if (known.has(target)) yield fault(["operators", index, "target"], "operator", `${target} is listed twice`);
    known.add(target);
  }
  for (const [index, { target }] of capture.snapshot.operations.entries()) {
    if (!known.has(target)) {
      yield fault(["operations", index, "target"], "reference", `${target} is not among the operators`);
    }
  }
}

const missing = (path: Path, name: string): Fault => fault(path, "reference", `there is no ${name}`);

export const IDENTITY: readonly Rule[] = [idsArePositions];
export const REFERENCES: readonly Rule[] = [
  referencesResolve,
  producersExist,
  registrationsExist,
  valuesUsedExist,
  summariesCiteWhatExists,
  operatorsAreListedOnce,
];
