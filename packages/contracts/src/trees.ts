/** Argument trees and the paths that address their nodes. Twin: backend/tensorviz/contracts/trees.py. */
import type { Argument, Invocation, Operation } from "./generated/types";

export type Step = number | string;
export type Path = readonly Step[];
export type Container = Extract<
  Argument,
  { kind: "list" | "tuple" | "namedtuple" | "dict" | "dataclass" | "slice" }
>;

const CONTAINERS = new Set<string>(["list", "tuple", "namedtuple", "dict", "dataclass", "slice"]);
const STEPS = new Map<string, readonly string[]>([
  ["list", ["items"]],
  ["tuple", ["items"]],
  ["namedtuple", ["items"]],
  ["dict", ["entries"]],
  ["dataclass", ["fields"]],
  ["slice", ["start", "stop", "step"]],
]);

export function isContainer(node: Argument): node is Container {
  return CONTAINERS.has(node.kind);
}

/** What `path` leads to below a call, a result tree or null; undefined where it leads nowhere. */
export function resolve(root: unknown, path: Path): unknown {
  let node = root;
  for (const step of path) {
    if (Array.isArray(node)) {
      node = typeof step === "number" && step < node.length ? node[step] : undefined;
    } else if (typeof step === "string" && typeof node === "object" && node !== null && steps(node).includes(step)) {
      node = (node as Record<string, unknown>)[step];
    } else {
      return undefined;
    }
  }
  return node;
}

/** The fields of a record that lead to argument nodes. */
function steps(record: object): readonly string[] {
  if (Object.hasOwn(record, "sequence") || Object.hasOwn(record, "entry")) return ["args", "kwargs"];
  if (Object.hasOwn(record, "kind")) return STEPS.get((record as Argument).kind) ?? [];
  return Object.hasOwn(record, "key") ? ["key", "value"] : ["value"];
}

/** The trees of a call's arguments, with their paths. */
export function* roots(record: Operation | Invocation, path: Path): Generator<[Path, Argument]> {
  for (const [index, node] of record.args.entries()) yield [[...path, "args", index], node];
  for (const [index, named] of record.kwargs.entries()) yield [[...path, "kwargs", index, "value"], named.value];
}

/** The nodes directly inside a container, in order, with their paths. */
export function* below(node: Container, path: Path): Generator<[Path, Argument]> {
  switch (node.kind) {
    case "list":
    case "tuple":
    case "namedtuple":
      for (const [index, item] of node.items.entries()) yield [[...path, "items", index], item];
      break;
    case "dict":
      for (const [index, entry] of node.entries.entries()) {
        yield [[...path, "entries", index, "key"], entry.key];
        yield [[...path, "entries", index, "value"], entry.value];
      }
      break;
    case "dataclass":
      for (const [index, field] of node.fields.entries()) yield [[...path, "fields", index, "value"], field.value];
      break;
    case "slice":
      yield [[...path, "start"], node.start];
      yield [[...path, "stop"], node.stop];
      yield [[...path, "step"], node.step];
  }
}

/** The node and everything inside it, each with its path and the number of containers around it. */
export function* walk(root: Argument, path: Path): Generator<[Path, Argument, number]> {
  const stack: [Path, Argument, number][] = [[path, root, 0]];
  for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
    yield next;
    const [at, node, depth] = next;
    if (isContainer(node)) for (const [step, inner] of below(node, at)) stack.push([step, inner, depth + 1]);
  }
}

/** Whether a node uses the item budget; one that was left out because the budget was spent does not. */
export function isCounted(node: Argument): boolean {
  return !(node.kind === "opaque" && node.reason === "item_limit");
}
