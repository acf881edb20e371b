import { visible } from "../format/text";
import { className, parentOf, pathBelow, position, RUN, type CaptureModel } from "./capture";

/** A row of the module tree. `group` opens the list of modules without a call. */
export type TreeRow = RowPlace &
  ({ kind: "run" } | { kind: "call"; call: number } | { kind: "group"; modules: number } | { kind: "module"; module: Uncalled });

interface RowPlace {
  key: string;
  level: number;
  position: number;
  size: number;
  /** Undefined for a row that has nothing below it. */
  open: boolean | undefined;
}

/** A registered module without a recorded call. */
export interface Uncalled {
  id: string;
  path: string;
  type: string;
  state: string;
  /** A container is not called itself, but modules inside it are. */
  container: boolean;
}

export const GROUP = -2;

export function keyOf(call: number): string {
  return call === RUN ? "run" : `c${call}`;
}

/** The rows that are visible with these calls open, in order. */
export function treeRows(model: CaptureModel, open: ReadonlySet<number>, uncalled: readonly Uncalled[]): TreeRow[] {
  const rows: TreeRow[] = [];
  const level = model.hasRun ? 2 : 1;
  const groups = uncalled.length > 0 ? 1 : 0;
  if (model.hasRun) {
    rows.push({ kind: "run", key: "run", level: 1, position: 1, size: 1, open: open.has(RUN) });
  }
  if (!model.hasRun || open.has(RUN)) {
    pushCalls(model, open, rows, level, model.roots.length + groups);
    if (groups) pushUncalled(rows, uncalled, open, level, model.roots.length + 1);
  }
  return rows;
}

function pushCalls(model: CaptureModel, open: ReadonlySet<number>, rows: TreeRow[], level: number, size: number): void {
  const pending = siblings(model.roots, level, size);
  while (pending.length > 0) {
    const next = pending.pop() as Pending;
    const children = model.children[next.call] ?? [];
    const isOpen = children.length > 0 ? open.has(next.call) : undefined;
    rows.push({ kind: "call", key: keyOf(next.call), open: isOpen, ...next });
    if (isOpen) pending.push(...siblings(children, next.level + 1, children.length));
  }
}

interface Pending {
  call: number;
  level: number;
  position: number;
  size: number;
}

/** Last sibling first, ready to be popped in order. */
function siblings(calls: readonly number[], level: number, size: number): Pending[] {
  return calls.map((call, i) => ({ call, level, position: i + 1, size })).reverse();
}

function pushUncalled(
  rows: TreeRow[],
  uncalled: readonly Uncalled[],
  open: ReadonlySet<number>,
  level: number,
  at: number,
): void {
  const isOpen = open.has(GROUP);
  rows.push({ kind: "group", key: "group", modules: uncalled.length, level, position: at, size: at, open: isOpen });
  if (!isOpen) return;
  uncalled.forEach((module, i) =>
    rows.push({
      kind: "module",
      key: module.id,
      module,
      level: level + 1,
      position: i + 1,
      size: uncalled.length,
      open: undefined,
    }),
  );
}

/** Modules that coverage lists without a call. Those that only hold called modules come last. */
export function uncalledModules(model: CaptureModel): Uncalled[] {
  const { coverage, modules } = model.snapshot;
  const called = new Set(model.snapshot.invocations.map((call) => call.module));
  const calledPaths = new Set<string>();
  for (const id of called) for (const path of modules[position(id)]?.paths ?? []) addAbove(calledPaths, path.root, path.path);
  const found = coverage.modules
    .filter(({ module }) => !called.has(module))
    .map(({ module, state }): Uncalled => {
      const instance = modules[position(module)];
      return {
        id: module,
        path: visible(pathBelow(instance, undefined) ?? ""),
        type: className(model.snapshot, module),
        state,
        container: (instance?.paths ?? []).some(({ root, path }) => calledPaths.has(`${root}/${path}`)),
      };
    });
  return [...found.filter((module) => !module.container), ...found.filter((module) => module.container)];
}

function addAbove(paths: Set<string>, root: string, path: string): void {
  for (let dot = path.lastIndexOf("."); dot >= 0; dot = path.lastIndexOf(".", dot - 1)) {
    paths.add(`${root}/${path.slice(0, dot)}`);
    if (dot === 0) break;
  }
  if (path !== "") paths.add(`${root}/`);
}

/** Opens the tree level by level as long as it stays short enough to see at a glance. */
export function initiallyOpen(model: CaptureModel, limit = 40): Set<number> {
  const open = new Set<number>([RUN]);
  let rows = model.roots.length;
  let level: readonly number[] = model.roots;
  while (level.length > 0) {
    const next = level.flatMap((call) => model.children[call] ?? []);
    rows += next.length;
    if (rows > limit && open.size > 1) break;
    for (const call of level) open.add(call);
    if (rows > limit) break;
    level = next;
  }
  return open;
}

/** The same set with everything around a call open, so that its row is there. */
export function openTo(model: CaptureModel, open: ReadonlySet<number>, call: number): ReadonlySet<number> {
  const missing: number[] = [];
  for (let at = call; at !== RUN; ) {
    at = parentOf(model, at);
    if (!open.has(at)) missing.push(at);
  }
  return missing.length > 0 ? new Set([...open, ...missing]) : open;
}
