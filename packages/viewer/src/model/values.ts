import type { Value } from "@tensorviz/contracts";
import { position, type CaptureModel } from "./capture";
import { callTensors, eachValue, type Path } from "./walk";

/** Who reads a value, what becomes of it, and who shares its memory. Made when the first tensor is inspected. */
export interface ValueIndex {
  /** Positions of the operations that take the value as an argument, each once, in order. */
  consumers(value: string): readonly number[];
  /** The next observed version of the same tensor object. */
  next(value: string): Value | undefined;
  /** Other tensor objects seen on the same storage: one value for each object. */
  aliases(value: Value): readonly Value[];
}

const indexes = new WeakMap<CaptureModel, ValueIndex>();

export function valueIndex(model: CaptureModel): ValueIndex {
  const known = indexes.get(model);
  if (known) return known;
  const made = build(model);
  indexes.set(model, made);
  return made;
}

function build(model: CaptureModel): ValueIndex {
  const readers = readersByValue(model);
  const { next, byStorage } = relations(model);
  return {
    consumers: (value) => readers[position(value)] ?? [],
    next: (value) => next.get(value),
    aliases: (value) => {
      const objects = value.storage === null ? undefined : byStorage.get(value.storage);
      return objects ? [...objects.values()].filter((other) => other.object !== value.object) : [];
    },
  };
}

function readersByValue({ snapshot }: CaptureModel): number[][] {
  const readers: number[][] = [];
  snapshot.operations.forEach((operation, i) => {
    const note = (value: string) => {
      const list = (readers[position(value)] ??= []);
      if (list.at(-1) !== i) list.push(i);
    };
    for (const argument of operation.args) eachValue(argument, note);
    for (const keyword of operation.kwargs) eachValue(keyword.value, note);
  });
  return readers;
}

function relations({ snapshot }: CaptureModel) {
  const next = new Map<string, Value>();
  const byStorage = new Map<string, Map<string, Value>>();
  for (const value of snapshot.values) {
    if (value.previousVersion !== null) next.set(value.previousVersion, value);
    if (value.storage === null) continue;
    const objects = byStorage.get(value.storage) ?? new Map<string, Value>();
    byStorage.set(value.storage, objects);
    if (!objects.has(value.object)) objects.set(value.object, value);
  }
  return { next, byStorage };
}

/** The argument paths at which an operation reads a value. */
export function usePaths(model: CaptureModel, operation: number, value: string): Path[] {
  const record = model.snapshot.operations[operation];
  const paths: Path[] = [];
  if (record) callTensors(record, (id, path) => id === value && paths.push(path));
  return paths;
}
