import type { Argument } from "@tensorviz/contracts";
import { literalText } from "../format/argument";
import { tensorText } from "../format/tensor";
import { className, owner, parentOf, place, RUN, statePath, valueOf, type CaptureModel } from "./capture";
import { eachValue } from "./walk";

/** One thing that matches: a call or an operation, in the order of events. */
export interface Hit {
  kind: "call" | "op";
  index: number;
}

/** Lower-case text of every call and operation, made once per capture. */
export interface SearchIndex {
  find(query: string): Hit[];
}

interface Entry extends Hit {
  order: number;
  text: string;
}

const indexes = new WeakMap<CaptureModel, SearchIndex>();

export function searchIndex(model: CaptureModel): SearchIndex {
  const known = indexes.get(model);
  if (known) return known;
  const entries = [...callEntries(model), ...operationEntries(model)].sort((a, b) => a.order - b.order);
  const made: SearchIndex = {
    find(query) {
      const terms = normalize(query).split(" ").filter(Boolean);
      if (terms.length === 0) return [];
      return entries.filter((entry) => terms.every((term) => entry.text.includes(term)));
    },
  };
  indexes.set(model, made);
  return made;
}

/** Shapes match however they are written: `1x6x64`, `1×6×64`, `[1, 6, 64]`, `(1,6,64)`. */
export function normalize(text: string): string {
  return text
    .toLowerCase()
    .replace(/(?<=\d)\s*[x×]\s*(?=\d)/g, ",")
    .replace(/,\s+/g, ",")
    .replace(/\s+/g, " ")
    .trim();
}

function callEntries(model: CaptureModel): Entry[] {
  const { invocations } = model.snapshot;
  return invocations.map((call, index) => ({
    kind: "call",
    index,
    order: call.entry,
    text: normalize(`${model.paths[index]} ${className(model.snapshot, call.module)}`),
  }));
}

function operationEntries(model: CaptureModel): Entry[] {
  const valueText = remembered((id: string) => describe(model, id));
  const placeText = remembered((id: string) => normalize(place(model, id)?.full ?? ""));
  const paths = model.paths.map(normalize);
  return model.snapshot.operations.map((operation, index) => {
    const parts = [normalize(operation.target), paths[owner(operation)] ?? ""];
    const add = (argument: Argument) => parts.push(argumentText(argument, valueText));
    operation.args.forEach(add);
    operation.kwargs.forEach((keyword) => add(keyword.value));
    if (operation.output) add(operation.output);
    if (operation.location !== null) parts.push(placeText(operation.location));
    return { kind: "op", index, order: operation.sequence, text: parts.join(" ") };
  });
}

/** The tensors of an argument, or what it says where it holds none. */
function argumentText(argument: Argument, valueText: (id: string) => string): string {
  const found: string[] = [];
  eachValue(argument, (id) => found.push(valueText(id)));
  return found.length > 0 ? found.join(" ") : normalize(literalText(argument));
}

/** Somebody may search for `f32`, `float32` or the whole path of a parameter. */
function describe(model: CaptureModel, id: string): string {
  const value = valueOf(model, id);
  if (!value) return "";
  const name = value.state === null ? "" : statePath(model, value.state);
  return normalize(`${name} ${tensorText(value)} ${value.dtype.replace(/^torch\./, "")}`);
}

function remembered(make: (id: string) => string): (id: string) => string {
  const known = new Map<string, string>();
  return (id) => {
    const text = known.get(id) ?? make(id);
    known.set(id, text);
    return text;
  };
}

/** How many matching operations and calls lie in each call, itself counted; `RUN` counts all. */
export function hitsPerCall(model: CaptureModel, hits: readonly Hit[]): ReadonlyMap<number, number> {
  const counts = new Map<number, number>();
  for (const hit of hits) {
    const operation = hit.kind === "op" ? model.snapshot.operations[hit.index] : undefined;
    let call = hit.kind === "call" ? hit.index : operation ? owner(operation) : RUN;
    for (;;) {
      counts.set(call, (counts.get(call) ?? 0) + 1);
      if (call === RUN) break;
      call = parentOf(model, call);
    }
  }
  return counts;
}
