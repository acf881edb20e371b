import type { Argument, OpaqueArgument } from "@tensorviz/contracts";
import { statePath, valueOf, type CaptureModel } from "../model/capture";
import { childrenOf, isLeaf, topArguments, type Call } from "../model/walk";
import { tensorText } from "./tensor";
import { lastComponent, shorten, visible } from "./text";

/** Where a tensor came from, as recorded: this is what colours it. */
export type Origin = "state" | "input" | "external" | "computed";

/** A piece of a compact rendering. `name` is a parameter's or a keyword's. */
export interface Token {
  text: string;
  name?: string;
  origin?: Origin;
}

const MAX_ITEMS = 4;
const MAX_TOKENS = 24;

/** The arguments of a call on one line: `f32[1, 6, 64] · weight f32[192, 64] · dim=1`. */
export function inputTokens(model: CaptureModel, call: Call): Token[] {
  const tokens: Token[] = [];
  for (const { name, argument } of topArguments(call)) {
    const made = tokensOf(model, argument);
    if (name !== null && made[0]) made[0] = { ...made[0], name: `${visible(name)}=` };
    tokens.push(...made);
    if (tokens.length > MAX_TOKENS) return [...tokens.slice(0, MAX_TOKENS), { text: "…" }];
  }
  return tokens;
}

/** The results of a call on one line. Equal descriptions in a row are counted: `3 × f32[1,6,64]`. */
export function outputTokens(model: CaptureModel, output: Argument | null): Token[] {
  if (output === null) return [];
  const runs: { token: Token; times: number }[] = [];
  for (const token of tokensOf(model, output)) {
    const last = runs.at(-1);
    if (last?.token.text === token.text && last.token.name === token.name) last.times += 1;
    else runs.push({ token, times: 1 });
  }
  return runs
    .slice(0, MAX_TOKENS)
    .map(({ token, times }) => (times === 1 ? token : { ...token, text: `${times} × ${token.text}` }));
}

/** Containers of tensors fall apart into their tensors; everything else is one piece. */
function tokensOf(model: CaptureModel, argument: Argument): Token[] {
  if (argument.kind === "tensor") return [tensorToken(model, argument.value)];
  if (isLeaf(argument) || !holdsTensor(argument)) return [{ text: literalText(argument) }];
  const parts = childrenOf(argument);
  const shown = parts.slice(0, MAX_TOKENS).flatMap((child) => tokensOf(model, child.argument));
  return parts.length > MAX_TOKENS ? [...shown, { text: `… ${parts.length} items` }] : shown;
}

function holdsTensor(argument: Argument): boolean {
  return argument.kind === "tensor" || childrenOf(argument).some((child) => holdsTensor(child.argument));
}

function tensorToken(model: CaptureModel, id: string): Token {
  const value = valueOf(model, id);
  if (!value) return { text: id };
  const origin = originOf(model, id);
  const text = tensorText(value);
  return value.state === null
    ? { text, origin }
    : { text, origin, name: visible(lastComponent(statePath(model, value.state))) };
}

export function originOf(model: CaptureModel, id: string): Origin {
  const value = valueOf(model, id);
  if (!value) return "external";
  if (value.state !== null) return "state";
  const { kind } = value.producer;
  return kind === "input" || kind === "external" ? kind : "computed";
}

/** An argument without tensors, exactly as recorded, as Python would write it. Long ones are cut in the middle. */
export function literalText(argument: Argument, limit = 60): string {
  return shorten(fullText(argument, MAX_ITEMS), limit);
}

export function fullText(argument: Argument, items = Number.POSITIVE_INFINITY): string {
  if (!isLeaf(argument)) return containerText(argument, items);
  return leafText(argument);
}

function containerText(argument: Argument, limit: number): string {
  const parts = childrenOf(argument);
  const shown = parts.slice(0, limit).map(({ label, argument: part }) => {
    const text = fullText(part, limit);
    return argument.kind === "list" || argument.kind === "tuple" || argument.kind === "slice"
      ? text
      : `${visible(label)}${argument.kind === "dict" ? ": " : "="}${text}`;
  });
  if (parts.length > limit) shown.push("…");
  const inside = shown.join(", ");
  switch (argument.kind) {
    case "list":
      return `[${inside}]`;
    case "tuple":
      return parts.length === 1 ? `(${inside},)` : `(${inside})`;
    case "dict":
      return argument.type === null ? `{${inside}}` : `${visible(lastComponent(argument.type))}({${inside}})`;
    case "namedtuple":
    case "dataclass":
      return `${visible(lastComponent(argument.type))}(${inside})`;
    default:
      return `slice(${inside})`;
  }
}

function leafText(argument: Argument): string {
  switch (argument.kind) {
    case "tensor":
      return argument.value;
    case "none":
      return "None";
    case "bool":
      return argument.value ? "True" : "False";
    case "int":
      return argument.value;
    case "float":
      return floatText(argument.value);
    case "complex":
      return `complex(${floatText(argument.real)}, ${floatText(argument.imag)})`;
    case "string":
      return `"${visible(argument.value).replaceAll('"', '\\"')}"`;
    case "symbolic":
      return visible(argument.expression);
    case "ellipsis":
      return "...";
    case "generator":
      return `generator on ${visible(argument.device)}`;
    case "record_function":
      return "profiler range";
    default:
      return namedText(argument);
  }
}

function namedText(argument: Argument): string {
  switch (argument.kind) {
    case "dtype":
    case "device":
    case "layout":
    case "memory_format":
      return visible(argument.value);
    case "enum":
      return `${visible(lastComponent(argument.type))}.${visible(argument.name)}`;
    case "opaque":
      return `<${visible(lastComponent(argument.type))}>`;
    default:
      return "";
  }
}

/** A float always looks like one: `1` was a float, so it reads `1.0`. */
function floatText(text: string): string {
  if (text === "-0") return "-0.0";
  return /^-?\d+$/.test(text) ? `${text}.0` : text;
}

const OPAQUE: Record<OpaqueArgument["reason"], string> = {
  unsupported_type: "The recorder does not read objects of this type, so only the type is known.",
  unsupported_tensor: "A tensor whose metadata could not be read, such as a wrapper inside a function transform.",
  cycle: "This container holds itself. It is shown once, at its first place.",
  depth_limit: "Nested deeper than this capture's limit for argument trees.",
  item_limit: "Beyond this capture's limit for the items of an argument tree.",
  value_limit: "This capture's budget for tensor values was used up.",
  text_limit: "A text or number longer than this capture keeps.",
  failed_write: "The kernel failed while it may have been writing, so what it left here is not known.",
};

export function opaqueReason(argument: OpaqueArgument): string {
  return OPAQUE[argument.reason];
}

/** What kind of thing an argument is, in a word. */
export function kindText(argument: Argument): string {
  switch (argument.kind) {
    case "none":
      return "";
    case "string":
      return "str";
    case "memory_format":
      return "memory format";
    case "symbolic":
      return `symbolic ${argument.type}`;
    case "namedtuple":
    case "dataclass":
      return visible(argument.type);
    case "dict":
      return argument.type === null ? "dict" : visible(argument.type);
    case "record_function":
      return "";
    default:
      return argument.kind;
  }
}
