/**
 * Bytes or data -> a capture, or the faults that say where it is wrong. Twin: backend/tensorviz/contracts/validate.py.
 *
 * Same verdicts, codes and paths as in Python, with one difference that JavaScript cannot see: `1.0` and `1` are one
 * number here, while Python refuses `1.0` where an integer belongs.
 */
import { captureDetails } from "./generated/details";
import type { CaptureSnapshot } from "./generated/types";
import { capture as isCapture, type SchemaError } from "./generated/validators";
import { check, inOrder, MAX_FAULTS, type Fault } from "./relations/index";
import type { Path, Step } from "./trees";

/** No encoded capture is larger, whatever its own limits say. */
export const MAX_BYTES = 16 * 2 ** 20;
const MAX_LEVELS = 200;
/** In a document of more nodes only the first structural fault is looked for: a million of them would fill the memory. */
const MAX_EXPLAINED = 500_000;

/** A document that does not satisfy the contract. `faults` has at least one fault, in the order of their paths. */
export class ContractError extends Error {
  readonly faults: readonly Fault[];

  constructor(faults: readonly Fault[]) {
    const first = faults[0];
    super(`${first?.path.join("/") || "document"}: ${first?.message}`);
    this.name = "ContractError";
    this.faults = faults;
  }
}

/** The capture that these bytes encode, checked in full. Throws ContractError, whatever the bytes are. */
export function parseCapture(data: Uint8Array): CaptureSnapshot {
  if (data.length > MAX_BYTES) {
    throw new ContractError([one("size", `${data.length} bytes; a capture has at most ${MAX_BYTES}`)]);
  }
  const document = parseJson(data);
  const faults = validateCapture(document, data.length);
  if (faults.length > 0) throw new ContractError(faults);
  return document as CaptureSnapshot;
}

/** Every fault that is found in a document, at most 50; none for a valid one. `size` is that of its encoding. */
export function validateCapture(document: unknown, size: number | null = null): Fault[] {
  const faults = checkStructure(document);
  return faults.length > 0 ? faults : check(document as CaptureSnapshot, size);
}

/** The structural half: types, fields, ranges and patterns of every record, and nothing between records. */
export function checkStructure(document: unknown): Fault[] {
  const { nodes, levels } = measure(document);
  if (levels > MAX_LEVELS) return [one("json", "too many levels")];
  if (isCapture(document)) return [];
  if (nodes > MAX_EXPLAINED) return explain(document, isCapture.errors ?? []);
  captureDetails(document);
  return explain(document, captureDetails.errors ?? []);
}

const one = (code: string, message: string): Fault => ({ path: [], code, message });

function parseJson(data: Uint8Array): unknown {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(data);
    const document: unknown = JSON.parse(text);
    if (/\\u[dD][89a-fA-F]/.test(text) && !isWellFormed(document)) throw new SyntaxError("a lone surrogate");
    return document;
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof TypeError) throw new ContractError([one("json", error.message)]);
    throw error;
  }
}

/** How many nodes a document has and how deep they nest; it stops looking below the deepest level that is allowed. */
function measure(document: unknown): { nodes: number; levels: number } {
  let nodes = 0;
  let levels = 0;
  const visit = (node: unknown, level: number): void => {
    nodes++;
    if (typeof node !== "object" || node === null) return;
    levels = Math.max(levels, level);
    if (level <= MAX_LEVELS) for (const inner of Object.values(node)) visit(inner, level + 1);
  };
  visit(document, 1);
  return { nodes, levels };
}

/** Whether every name and string is Unicode text. Python refuses others, and UTF-8 cannot write them. */
function isWellFormed(document: unknown): boolean {
  const surrogate = /\p{Surrogate}/u;
  const stack = [document];
  while (stack.length > 0) {
    const node = stack.pop();
    if (typeof node === "string" && surrogate.test(node)) return false;
    if (typeof node !== "object" || node === null) continue;
    for (const [name, inner] of Object.entries(node)) {
      if (surrogate.test(name)) return false;
      stack.push(inner);
    }
  }
  return true;
}

function explain(document: unknown, errors: readonly SchemaError[]): Fault[] {
  const found = new Map<string, Fault>();
  for (const error of errors) {
    const fault = toFault(document, error);
    if (fault === null) continue;
    const key = JSON.stringify(fault.path);
    // Every branch of a union complains. One that had the right type knows best what is wrong.
    if (!found.has(key) || found.get(key)?.code === "type") found.set(key, fault);
  }
  return inOrder(found.values()).slice(0, MAX_FAULTS);
}

/** Null for what only sums up other errors, and for the branch of "or null". */
function toFault(document: unknown, { instancePath, keyword, params }: SchemaError): Fault | null {
  const path = toPath(document, instancePath);
  switch (keyword) {
    case "anyOf":
    case "oneOf":
      return null;
    case "required":
      return { path: [...path, params["missingProperty"] as string], code: "missing", message: "is missing" };
    case "additionalProperties":
      return { path: [...path, params["additionalProperty"] as string], code: "unknown", message: "is unknown" };
    case "discriminator": {
      const code = params["tagValue"] === undefined ? "missing" : "value";
      return { path: [...path, "kind"], code, message: "names no known kind" };
    }
    case "type":
      return params["type"] === "null" ? null : { path, code: "type", message: `is not of type ${String(params["type"])}` };
    default:
      return { path, code: "value", message: `does not satisfy ${keyword} ${JSON.stringify(params)}` };
  }
}

/** A JSON pointer as steps; whether "0" is an index or a name is for the document to say. */
function toPath(document: unknown, pointer: string): Path {
  const path: Step[] = [];
  let node = document;
  for (const part of pointer.split("/").slice(1)) {
    const name = part.replaceAll("~1", "/").replaceAll("~0", "~");
    path.push(Array.isArray(node) ? Number(name) : name);
    node = (node as Record<string, unknown>)[name];
  }
  return path;
}
