/** Where values come from, how versions follow each other, what was written, and how large it all is. */
import type { Operation, TensorArgument, Value } from "../generated/types";
import { resolve, type Path, type Step } from "../trees";
import { fault, isUnobserved, type Capture, type Fault, type Rule } from "./lookup";

function* valuesAreMadeBeforeTheyAreUsed(capture: Capture): Generator<Fault> {
  const { made } = capture;
  for (const { path, value, before } of capture.uses) {
    if ((made.get(value) as number) >= before) yield fault([...path, "value"], "use", `${value} is made later`);
  }
}

function* producersNameTheirValue(capture: Capture): Generator<Fault> {
  for (const [index, value] of capture.snapshot.values.entries()) {
    const { producer } = value;
    const path = ["values", index, "producer"];
    if (producer.kind === "input") {
      const call = capture.at("c", producer.invocation);
      if (call.parent !== null) yield fault([...path, "invocation"], "producer", `${call.id} is not a root call`);
      yield* named(path, value, resolve(call, producer.path));
    } else if (producer.kind === "output") {
      yield* named(path, value, resolve(capture.at("o", producer.operation).output, producer.path));
    } else if (producer.kind === "effect") {
      yield* named(path, value, effectResult(capture.at("o", producer.operation), producer.path));
    } else if (producer.kind === "state" && value.state !== producer.state) {
      yield fault([...path, "state"], "producer", `${value.id} is not a value of ${producer.state}`);
    }
  }
}

function* named(path: Path, value: Value, node: unknown): Generator<Fault> {
  if (!(isTensor(node) && node.value === value.id)) {
    yield fault([...path, "path"], "producer", `does not lead to ${value.id}`);
  }
}

function effectResult(operation: Operation, path: Path): unknown {
  const [place, field] = path;
  if (path.length !== 2 || field !== "after" || typeof place !== "number") return undefined;
  return operation.effects[place]?.after;
}

const isTensor = (node: unknown): node is TensorArgument =>
  typeof node === "object" && node !== null && Object.hasOwn(node, "kind") && (node as TensorArgument).kind === "tensor";

function* versionsFollowEachOther(capture: Capture): Generator<Fault> {
  const first = new Set<string>();
  const succeeded = new Set<string>();
  for (const [index, value] of capture.snapshot.values.entries()) {
    const path = ["values", index];
    const previous = value.previousVersion;
    if (previous === null) {
      if (value.logicalVersion !== 0) {
        yield fault([...path, "logicalVersion"], "version", "a first version has number 0");
      }
      if (first.has(value.object)) {
        yield fault([...path, "object"], "version", `${value.object} has another first version`);
      }
      first.add(value.object);
    } else {
      const before = capture.at("v", previous);
      if (before.object !== value.object) {
        yield fault([...path, "previousVersion"], "version", `${previous} is another object`);
      }
      if (before.logicalVersion + 1 !== value.logicalVersion) {
        yield fault([...path, "logicalVersion"], "version", `does not follow that of ${previous}`);
      }
      if (succeeded.has(previous)) {
        yield fault([...path, "previousVersion"], "version", `${previous} has another successor`);
      }
      succeeded.add(previous);
    }
  }
}

function* originsMatchVersions(capture: Capture): Generator<Fault> {
  const written = new Set<string>();
  for (const { id, effects } of capture.snapshot.operations) {
    for (const { after } of effects) if (after.kind === "tensor") written.add(`${id} ${after.value}`);
  }
  for (const [index, { id, producer, previousVersion }] of capture.snapshot.values.entries()) {
    const path = ["values", index, "producer"];
    const later = previousVersion !== null;
    if (producer.kind === "output") {
      if (later && !written.has(`${producer.operation} ${id}`)) {
        yield fault(path, "version", `no effect of ${producer.operation} leaves ${id}`);
      }
    } else if (later !== (producer.kind === "effect" || isUnobserved(producer))) {
      yield fault(path, "version", later ? "a later version needs a write" : "a write needs a version before");
    }
  }
}

function* stateAndValuesAgree(capture: Capture): Generator<Fault> {
  const owners = new Map<string, string>();
  for (const [index, state] of capture.snapshot.state.entries()) {
    const path = ["state", index];
    if ((state.value === null) !== (state.unavailable !== undefined)) {
      yield fault([...path, "value"], "state", "either a value or why it is unavailable");
    }
    if (state.value !== null) {
      const held = capture.at("v", state.value).object;
      if (owners.has(held)) yield fault([...path, "value"], "state", `${held} is ${owners.get(held)} already`);
      owners.set(held, state.id);
    }
  }
  for (const [index, value] of capture.snapshot.values.entries()) {
    const owner = owners.get(value.object) ?? null;
    if (owner !== value.state) {
      yield fault(["values", index, "state"], "state", `${value.object} is ${owner ?? "no state"}`);
    }
  }
}

function* sizesFitShapes(capture: Capture): Generator<Fault> {
  for (const [index, { shape, strides, logicalBytes }] of capture.snapshot.values.entries()) {
    const path = ["values", index];
    if (strides !== null && strides.length !== shape.length) {
      yield fault([...path, "strides"], "shape", "one stride belongs to each dimension");
    }
    if (shape.some((size) => typeof size === "number" && size < 0)) {
      yield fault([...path, "shape"], "shape", "a size is negative");
    } else if (logicalBytes !== undefined && !fits(logicalBytes, shape)) {
      yield fault([...path, "logicalBytes"], "shape", "does not fit the shape");
    }
  }
}

function fits(size: number, shape: readonly Step[]): boolean {
  if (!shape.every((dimension) => typeof dimension === "number")) return true;
  if (shape.includes(0)) return size === 0;
  let count = 1;
  for (const dimension of shape) {
    count *= dimension;
    if (count > size) return false;
  }
  return size > 0 && size % count === 0;
}

function* effectsCiteTheirOperand(capture: Capture): Generator<Fault> {
  for (const [index, operation] of capture.snapshot.operations.entries()) {
    for (const [place, effect] of operation.effects.entries()) {
      const path = ["operations", index, "effects", place];
      const operand = resolve(operation, effect.argument);
      if ((capture.made.get(effect.before) as number) >= operation.sequence) {
        yield fault([...path, "before"], "use", `${effect.before} is made later`);
      }
      if (!isTensor(operand)) {
        yield fault([...path, "argument"], "effect", "does not lead to a tensor");
      } else if (effect.relation === "operand" && operand.value !== effect.before) {
        yield fault([...path, "argument"], "effect", `does not lead to ${effect.before}`);
      } else if (effect.relation === "alias" && !mayAlias(capture.at("v", operand.value), capture.at("v", effect.before))) {
        yield fault([...path, "argument"], "effect", `${effect.before} has another storage`);
      }
    }
  }
}

function* effectsLeaveASuccessor(capture: Capture): Generator<Fault> {
  for (const [index, operation] of capture.snapshot.operations.entries()) {
    for (const [place, { before, after }] of operation.effects.entries()) {
      const path = ["operations", index, "effects", place, "after"];
      if (after.kind === "tensor") {
        const { previousVersion, producer } = capture.at("v", after.value);
        if (previousVersion !== before || (producer.kind !== "output" && producer.kind !== "effect")) {
          yield fault(path, "effect", `${after.value} does not follow ${before}`);
        } else if (producer.operation !== operation.id) {
          yield fault(path, "effect", `${after.value} is made by ${producer.operation}`);
        }
      }
      const failed = after.kind === "opaque" && after.reason === "failed_write";
      if (failed !== (operation.status === "failed")) {
        yield fault(path, "effect", "a failed operation, and no other, leaves a failed write");
      }
    }
  }
}

const mayAlias = (one: Value, other: Value): boolean =>
  one.storage === null || other.storage === null || one.storage === other.storage;

export const RULES: readonly Rule[] = [
  valuesAreMadeBeforeTheyAreUsed,
  producersNameTheirValue,
  versionsFollowEachOther,
  originsMatchVersions,
  stateAndValuesAgree,
  sizesFitShapes,
  effectsCiteTheirOperand,
  effectsLeaveASuccessor,
];
