/** What the rules share: faults, and a capture with what several of them look up. */
import type {
  Argument,
  CaptureSnapshot,
  Definition,
  Diagnostic,
  Invocation,
  Limits,
  Location,
  ModuleInstance,
  NamedTupleArgument,
  Operation,
  Producer,
  SourceFile,
  State,
  Value,
} from "../generated/types";
import { isContainer, isCounted, roots, walk, type Path } from "../trees";

/** JSON levels of an encoded capture, the outermost object being the first. */
export const MAX_NESTING = 64;
export const NEVER = 2 ** 53;
const FIRST = -1;

export interface Lists {
  f: SourceFile[];
  l: Location[];
  d: Definition[];
  m: ModuleInstance[];
  p: State[];
  c: Invocation[];
  o: Operation[];
  v: Value[];
  x: Diagnostic[];
}
export type Letter = keyof Lists;

export const PLACES: Readonly<Record<Letter, Path>> = {
  f: ["source", "files"],
  l: ["locations"],
  d: ["definitions"],
  m: ["modules"],
  p: ["state"],
  c: ["invocations"],
  o: ["operations"],
  v: ["values"],
  x: ["diagnostics"],
};

/** What a budget is when a capture leaves it out; the schema says the same. */
export const DEFAULT_LIMITS: Required<Limits> = {
  bytes: 16 * 2 ** 20,
  operations: 50_000,
  invocations: 20_000,
  values: 200_000,
  argumentDepth: 32,
  argumentItems: 10_000,
  text: 4096,
  parameterReads: 100_000,
};

/** One place where a document is wrong. `code` is stable; `message` is for people. */
export interface Fault {
  path: Path;
  code: string;
  message: string;
}

/** A tensor node: where it stands, its value, and the sequence number before which that value was made. */
export interface Use {
  path: Path;
  value: string;
  before: number;
}

/** The measures of a tree whose root is a container: items, levels of containers, levels of JSON. */
export interface Measures {
  path: Path;
  items: number;
  depth: number;
  levels: number;
}

/** A capture with what several rules look up. */
export class Capture {
  readonly snapshot: CaptureSnapshot;
  readonly size: number | null;
  readonly limits: Required<Limits>;
  readonly lists: Lists;
  readonly ids: ReadonlySet<string>;
  readonly uses: Use[] = [];
  readonly containers: Measures[] = [];
  readonly namedTuples: [Path, NamedTupleArgument][] = [];
  hasOpaque = false;
  #made: Map<string, number> | undefined;

  constructor(snapshot: CaptureSnapshot, size: number | null) {
    this.snapshot = snapshot;
    this.size = size;
    this.limits = { ...DEFAULT_LIMITS, ...snapshot.limits };
    this.lists = toLists(snapshot);
    this.ids = new Set(Object.values(this.lists).flatMap((records: { id: string }[]) => records.map(({ id }) => id)));
    this.#collect();
  }

  /** The record of this id. References have been checked. */
  at<L extends Letter>(letter: L, name: string): Lists[L][number] {
    return this.lists[letter][Number(name.slice(1))] as Lists[L][number];
  }

  /** When each value came to be: the sequence number of its producer. References have been checked. */
  get made(): ReadonlyMap<string, number> {
    this.#made ??= new Map(this.snapshot.values.map((value) => [value.id, this.#madeAt(value.producer)]));
    return this.#made;
  }

  #madeAt(producer: Producer): number {
    if (producer.kind === "output" || producer.kind === "effect") return this.at("o", producer.operation).sequence;
    return producer.kind === "input" ? this.at("c", producer.invocation).entry : FIRST;
  }

  #collect(): void {
    for (const [index, operation] of this.snapshot.operations.entries()) {
      const path = ["operations", index];
      for (const [at, node] of roots(operation, path)) this.#sortOut(at, node, operation.sequence);
      if (operation.output !== null) this.#sortOut([...path, "output"], operation.output, operation.sequence + 1);
    }
    for (const [index, call] of this.snapshot.invocations.entries()) {
      const path = ["invocations", index];
      for (const [at, node] of roots(call, path)) this.#sortOut(at, node, call.entry + 1);
      if (call.output !== null) this.#sortOut([...path, "output"], call.output, call.exit ?? NEVER);
    }
  }

  #sortOut(path: Path, node: Argument, before: number): void {
    if (node.kind === "tensor") this.uses.push({ path, value: node.value, before });
    else if (isContainer(node)) this.#measure(path, node, before);
    else if (node.kind === "opaque") this.hasOpaque = true;
  }

  #measure(path: Path, root: Argument, before: number): void {
    const measures = { path, items: 0, depth: 0, levels: 0 };
    for (const [at, node, around] of walk(root, path)) {
      const own = isContainer(node) ? 1 : 0;
      measures.items += isCounted(node) ? 1 : 0;
      measures.depth = Math.max(measures.depth, around + own);
      measures.levels = Math.max(measures.levels, at.length + 1 + own);
      if (node.kind === "namedtuple") this.namedTuples.push([at, node]);
      else if (own === 0) this.#sortOut(at, node, before);
    }
    this.containers.push(measures);
  }
}

export type Rule = (capture: Capture) => Iterable<Fault>;

export const isUnobserved = (producer: Producer): boolean =>
  producer.kind === "external" && producer.reason === "unobserved_write";

export const fault = (path: Path, code: string, message: string): Fault => ({ path, code, message });

function toLists(snapshot: CaptureSnapshot): Lists {
  return {
    f: snapshot.source.files,
    l: snapshot.locations,
    d: snapshot.definitions,
    m: snapshot.modules,
    p: snapshot.state,
    c: snapshot.invocations,
    o: snapshot.operations,
    v: snapshot.values,
    x: snapshot.diagnostics,
  };
}
