import type { Argument, Invocation, NamedArgument, Operation } from "@tensorviz/contracts";

/** Addresses a node of the serialized record, as the contract does: `["args", 0, "items", 1]`. */
export type Path = readonly (number | string)[];

/** A child of an argument tree: how to call it, and the steps that lead to it from its parent. */
export interface Child {
  label: string;
  steps: Path;
  argument: Argument;
}

type Container = Exclude<Argument, { kind: "dict" }>;

/** The parts of a container in order; nothing for a leaf. Labels are for people, steps address the record. */
export function childrenOf(argument: Argument): Child[] {
  return argument.kind === "dict" ? entriesOf(argument) : partsOf(argument);
}

function partsOf(argument: Container): Child[] {
  switch (argument.kind) {
    case "list":
    case "tuple":
      return argument.items.map((item, i) => ({ label: String(i), steps: ["items", i], argument: item }));
    case "namedtuple":
      return argument.items.map((item, i) => ({
        label: argument.fields[i] ?? String(i),
        steps: ["items", i],
        argument: item,
      }));
    case "dataclass":
      return argument.fields.map((field, i) => ({
        label: field.name,
        steps: ["fields", i, "value"],
        argument: field.value,
      }));
    case "slice":
      return (["start", "stop", "step"] as const).map((name) => ({
        label: name,
        steps: [name],
        argument: argument[name],
      }));
    default:
      return [];
  }
}

/** A key that is itself a container has its own row, so that everything in it can be reached. */
function entriesOf(dict: Extract<Argument, { kind: "dict" }>): Child[] {
  return dict.entries.flatMap((entry, i) => {
    const value: Child = { label: keyText(entry.key), steps: ["entries", i, "value"], argument: entry.value };
    const opaqueKey = isLeaf(entry.key) && entry.key.kind !== "tensor";
    return opaqueKey ? [value] : [{ label: `key ${i}`, steps: ["entries", i, "key"], argument: entry.key }, value];
  });
}

export function isLeaf(argument: Argument): boolean {
  return !["list", "tuple", "namedtuple", "dict", "dataclass", "slice"].includes(argument.kind);
}

function keyText(key: Argument): string {
  switch (key.kind) {
    case "string":
      return JSON.stringify(key.value);
    case "int":
    case "float":
      return key.value;
    case "bool":
      return key.value ? "True" : "False";
    case "none":
      return "None";
    case "enum":
      return `${key.type}.${key.name}`;
    case "opaque":
      return `<${key.type}>`;
    default:
      return `<${key.kind} key>`;
  }
}

export type Call = Pick<Operation | Invocation, "args" | "kwargs">;

/** A top-level argument of a call. `name` is a keyword, or null for a positional argument. */
export interface TopArgument {
  name: string | null;
  path: Path;
  argument: Argument;
}

export function topArguments(call: Call): TopArgument[] {
  return [
    ...call.args.map((argument, i) => ({ name: null, path: ["args", i], argument })),
    ...call.kwargs.map((keyword: NamedArgument, i) => ({
      name: keyword.name,
      path: ["kwargs", i, "value"],
      argument: keyword.value,
    })),
  ];
}

/** Every tensor reference of a tree, in order, with the path that leads to it. */
export function eachTensor(argument: Argument, path: Path, visit: (value: string, path: Path) => void): void {
  if (argument.kind === "tensor") {
    visit(argument.value, path);
    return;
  }
  for (const child of childrenOf(argument)) eachTensor(child.argument, [...path, ...child.steps], visit);
}

/** Every value of a tree in order, repeated ones too: the quick form of `eachTensor`, which makes no paths. */
export function eachValue(argument: Argument, visit: (value: string) => void): void {
  switch (argument.kind) {
    case "tensor":
      visit(argument.value);
      return;
    case "list":
    case "tuple":
    case "namedtuple":
      for (const item of argument.items) eachValue(item, visit);
      return;
    case "dict":
      for (const entry of argument.entries) {
        eachValue(entry.key, visit);
        eachValue(entry.value, visit);
      }
      return;
    case "dataclass":
      for (const field of argument.fields) eachValue(field.value, visit);
  }
}

export function callTensors(call: Call, visit: (value: string, path: Path) => void): void {
  for (const { argument, path } of topArguments(call)) eachTensor(argument, path, visit);
}

/** `args[0].items[1]`, for people who want to find the node in the JSON. */
export function pathText(path: Path): string {
  return path.map((step, i) => (typeof step === "number" ? `[${step}]` : `${i ? "." : ""}${step}`)).join("");
}
