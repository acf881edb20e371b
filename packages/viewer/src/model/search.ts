import { inputTokens, outputTokens, type Token } from "../format/argument";
import { className, owner, parentOf, place, RUN, valueOf, type CaptureModel } from "./capture";
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
  const dtypes = new Map<string, string>();
  return model.snapshot.operations.map((operation, index) => {
    const at = owner(operation);
    const where = at === RUN ? "" : `${model.paths[at]}`;
    const tensors = [...inputTokens(model, operation), ...outputTokens(model, operation.output)];
    const long = longDtypes(model, operation.output, dtypes);
    const source = place(model, operation.location)?.full ?? "";
    return {
      kind: "op",
      index,
      order: operation.sequence,
      text: normalize(`${operation.target} ${where} ${tensors.map(tokenText).join(" ")} ${long} ${source}`),
    };
  });
}

function tokenText({ name, text }: Token): string {
  return name ? `${name} ${text}` : text;
}

/** Somebody may search for `float32` as well as for `f32`. */
function longDtypes(model: CaptureModel, output: Parameters<typeof outputTokens>[1], seen: Map<string, string>): string {
  const names = new Set<string>();
  if (output) {
    eachValue(output, (id) => {
      const dtype = valueOf(model, id)?.dtype ?? "";
      const name = seen.get(dtype) ?? dtype.replace(/^torch\./, "");
      seen.set(dtype, name);
      names.add(name);
    });
  }
  return [...names].join(" ");
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
