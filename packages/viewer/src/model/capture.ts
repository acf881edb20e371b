import type { CaptureRequest, CaptureSnapshot, Invocation, Location, ModuleInstance, Operation, Value } from "@tensorviz/contracts";
import { fileName, lastComponent, visible } from "../format/text";
import { schemaNames, type SchemaNames } from "./schema";

/** Stands for the run itself, above the root calls: it owns what ran outside every module call. */
export const RUN = -1;

/** Records are named by a letter and their position in their list. */
export function position(id: string): number {
  return Number(id.slice(1));
}

/** What the page asks of a capture again and again, worked out once. Calls and operations go by their positions. */
export interface CaptureModel {
  readonly snapshot: CaptureSnapshot;
  readonly roots: readonly number[];
  /** The tree shows the run itself only when it has more to it than one root call. */
  readonly hasRun: boolean;
  readonly children: readonly (readonly number[])[];
  /** Operations of each call itself, and of the run itself, in execution order. */
  readonly own: readonly (readonly number[])[];
  readonly outside: readonly number[];
  /** Operations of each call and of those below it. */
  readonly below: Int32Array;
  /** A call's place in a walk of the tree, and the last place below it. */
  readonly first: Int32Array;
  readonly last: Int32Array;
  readonly paths: readonly string[];
  readonly labels: readonly string[];
  /** Which call of its module this is, from one, and how many there are. */
  readonly occurrence: Int32Array;
  readonly occurrences: Int32Array;
  /** The same within its parent call, and 0 where the module is called only once there. */
  readonly nth: Int32Array;
  readonly schemas: ReadonlyMap<string, { schema: string | null; names: SchemaNames }>;
  /** The operation that failed or was in flight when the run ended, else null. */
  readonly culprit: number | null;
}

export function buildModel(snapshot: CaptureSnapshot): CaptureModel {
  const { invocations, operations } = snapshot;
  const roots: number[] = [];
  const children: number[][] = invocations.map(() => []);
  invocations.forEach((call, i) => (call.parent === null ? roots : children[position(call.parent)])?.push(i));
  const outside: number[] = [];
  const own: number[][] = invocations.map(() => []);
  operations.forEach((op, i) => (op.invocation === null ? outside : own[position(op.invocation)])?.push(i));
  const walk = walkTree(roots, children, own);
  const paths = callPaths(snapshot);
  return {
    snapshot,
    roots,
    hasRun: roots.length !== 1 || outside.length > 0,
    children,
    own,
    outside,
    ...walk,
    paths,
    labels: callLabels(snapshot, paths),
    ...occurrences(invocations, snapshot.modules.length),
    schemas: new Map(
      snapshot.operators.map(({ target, operatorSchema }) => [
        target,
        { schema: operatorSchema, names: schemaNames(operatorSchema) },
      ]),
    ),
    culprit: findCulprit(snapshot),
  };
}

function walkTree(roots: readonly number[], children: number[][], own: number[][]) {
  const first = new Int32Array(children.length);
  const last = new Int32Array(children.length);
  const below = new Int32Array(children.length);
  const order: number[] = [];
  const pending = [...roots].reverse();
  while (pending.length > 0) {
    const call = pending.pop() as number;
    first[call] = order.length;
    order.push(call);
    const below = children[call] ?? [];
    for (let i = below.length - 1; i >= 0; i -= 1) pending.push(below[i] as number);
  }
  for (const call of order.reverse()) {
    const inner = children[call] ?? [];
    below[call] = inner.reduce((sum, child) => sum + (below[child] ?? 0), own[call]?.length ?? 0);
    last[call] = inner.reduce((end, child) => Math.max(end, last[child] ?? 0), first[call] ?? 0);
  }
  return { first, last, below };
}

/** The registered path of each call's module, below the root whose call it happened in; null when it has none. */
function callPaths({ invocations, modules }: CaptureSnapshot): string[] {
  const rootModule: string[] = [];
  return invocations.map((call, i) => {
    rootModule[i] = call.parent === null ? call.module : (rootModule[position(call.parent)] ?? call.module);
    return pathBelow(modules[position(call.module)], rootModule[i]) ?? "";
  });
}

export function pathBelow(module: ModuleInstance | undefined, root: string | undefined): string | undefined {
  return (module?.paths.find((entry) => entry.root === root) ?? module?.paths[0])?.path;
}

/** What a call is called under its parent: `attn` in `blocks.0`, but `blocks.0` where its container is never called. */
function callLabels(snapshot: CaptureSnapshot, paths: readonly string[]): string[] {
  return snapshot.invocations.map((call, i) => {
    const path = paths[i] ?? "";
    if (path === "") return className(snapshot, call.module);
    const parent = call.parent === null ? "" : (paths[position(call.parent)] ?? "");
    return parent !== "" && path.startsWith(`${parent}.`) ? path.slice(parent.length + 1) : path;
  });
}

function occurrences(invocations: readonly Invocation[], modules: number) {
  const seen = new Int32Array(modules);
  const occurrence = new Int32Array(invocations.length);
  invocations.forEach((call, i) => {
    const module = position(call.module);
    occurrence[i] = seen[module] = (seen[module] ?? 0) + 1;
  });
  const occurrences = Int32Array.from(invocations, (call) => seen[position(call.module)] ?? 0);
  return { occurrence, occurrences, nth: timesInParent(invocations) };
}

function timesInParent(invocations: readonly Invocation[]): Int32Array {
  const groups = new Map<string, number[]>();
  invocations.forEach(({ parent, module }, i) => {
    const key = `${parent} ${module}`;
    const group = groups.get(key);
    if (group) group.push(i);
    else groups.set(key, [i]);
  });
  const nth = new Int32Array(invocations.length);
  for (const group of groups.values()) {
    if (group.length > 1) group.forEach((call, i) => (nth[call] = i + 1));
  }
  return nth;
}

function findCulprit({ operations, diagnostics, termination }: CaptureSnapshot): number | null {
  if (termination.kind === "raised") {
    let first: string | null = null;
    for (let at: string | null = termination.diagnostic; at !== null; at = diagnostics[position(at)]?.cause ?? null) {
      first = diagnostics[position(at)]?.operation ?? first;
    }
    return first === null ? null : position(first);
  }
  const inFlight = operations.findLastIndex((operation) => operation.status === "in_flight");
  return inFlight < 0 ? null : inFlight;
}

/** The class by its short name; the whole dotted name is `definitionOf(...).type`. */
export function className(snapshot: CaptureSnapshot, module: string): string {
  return lastComponent(definitionType(snapshot, module));
}

export function definitionType(snapshot: CaptureSnapshot, module: string): string {
  const instance = snapshot.modules[position(module)];
  return (instance && snapshot.definitions[position(instance.definition)]?.type) ?? module;
}

/** Positions of the operations of a call, in execution order, with those of the calls below it when `deep`. */
export function operationsOf(model: CaptureModel, call: number, deep: boolean): readonly number[] {
  if (!deep) return call === RUN ? model.outside : (model.own[call] ?? []);
  if (call === RUN) return model.snapshot.operations.map((_, i) => i);
  const found: number[] = [];
  const { operations } = model.snapshot;
  for (let i = 0; i < operations.length; i += 1) {
    const owner = operations[i]?.invocation;
    if (owner && isWithin(model, position(owner), call)) found.push(i);
  }
  return found;
}

/** Whether a call is the other one, or happened inside it. */
export function isWithin(model: CaptureModel, call: number, ancestor: number): boolean {
  if (ancestor === RUN) return true;
  if (call === RUN) return false;
  const place = model.first[call] ?? -1;
  return place >= (model.first[ancestor] ?? 0) && place <= (model.last[ancestor] ?? -1);
}

export function owner(operation: Operation): number {
  return operation.invocation === null ? RUN : position(operation.invocation);
}

export function parentOf(model: CaptureModel, call: number): number {
  const parent = model.snapshot.invocations[call]?.parent ?? null;
  return parent === null ? RUN : position(parent);
}

/** The calls around this one, outermost first, without itself. */
export function ancestors(model: CaptureModel, call: number): number[] {
  const found: number[] = [];
  for (let at = call === RUN ? RUN : parentOf(model, call); at !== RUN; at = parentOf(model, at)) found.unshift(at);
  return found;
}

export function valueOf(model: CaptureModel, id: string): Value | undefined {
  return model.snapshot.values[position(id)];
}

/** The registered path of a parameter or buffer, below its first root; a name for people. */
export function statePath(model: CaptureModel, state: string): string {
  return model.snapshot.state[position(state)]?.paths[0]?.path ?? state;
}

/** How many calls happened inside a call, at any depth. */
export function callsInside(model: CaptureModel, call: number): number {
  return call === RUN ? model.paths.length : (model.last[call] ?? 0) - (model.first[call] ?? 0);
}

/** A call's path as it reads from another one: without what both have in common. */
export function relativeName(model: CaptureModel, call: number, from: number): string {
  const name = callName(model, call);
  const prefix = from === RUN ? "" : (model.paths[from] ?? "");
  return prefix !== "" && name.startsWith(`${prefix}.`) ? name.slice(prefix.length + 1) : name;
}

/** A call by its registered path, or by its class when it has none; `Run` for the run itself. */
export function callName(model: CaptureModel, call: number): string {
  if (call === RUN) return "Run";
  const path = model.paths[call];
  return visible(path ? path : (model.labels[call] ?? ""));
}

export interface Place {
  text: string;
  full: string;
  /** As it was recorded, for the clipboard. */
  exact: string;
  location: Location;
  digest: string | null;
}

/** `gpt.py:38`, and the whole path with it. */
export function place(model: CaptureModel, id: string | null): Place | null {
  const location = id === null ? undefined : model.snapshot.locations[position(id)];
  if (!location) return null;
  const file = model.snapshot.source.files[position(location.file)];
  const exact = `${file?.path ?? location.file}:${location.line}`;
  return {
    text: visible(fileName(exact)),
    full: visible(exact),
    exact,
    location,
    digest: file?.digest ?? null,
  };
}

/** As much of the request behind a capture as the capture itself tells; nothing where no file was run. */
export function requestOf({ snapshot }: CaptureModel): CaptureRequest | undefined {
  const { file, target, targetKind, mode, fake } = snapshot.execution;
  const path = file === null ? undefined : snapshot.source.files[position(file)]?.path;
  return path === undefined ? undefined : { file: path, target: targetKind === "script" ? null : target, mode, fake };
}

/** Why a root call has no line of Python: nobody wrote the line, or nobody recorded the code that has it. */
export function rootCaller({ setup, execution }: CaptureSnapshot): string {
  return setup.kind === "planned" && execution.targetKind !== "script"
    ? "tensorviz made this call itself: it is the root call of a planned run."
    : "The caller made this call, outside of the recorded code.";
}

/** What the model is called: the class of the first root call, or else the target that was asked for. */
export function modelName(model: CaptureModel): string {
  const root = model.snapshot.invocations[model.roots[0] ?? -1];
  return visible(root ? className(model.snapshot, root.module) : lastComponent(model.snapshot.execution.target));
}
