import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { ContractError, parseCapture, validateCapture, type Fault } from "../src/index";
import { DEFAULT_LIMITS } from "../src/relations/lookup";
import { broken, BYTES, INVALID, spelled, VALID } from "./corpus";

const first = ({ path, code }: Fault): unknown => ({ path, code });

function firstFault(data: Uint8Array): unknown {
  try {
    parseCapture(data);
  } catch (error) {
    if (error instanceof ContractError) return first(error.faults[0] as Fault);
    throw error;
  }
  return null;
}

describe("the corpus", () => {
  it.each([...VALID])("takes %s", (_, text) => {
    expect(validateCapture(JSON.parse(text))).toEqual([]);
    expect(parseCapture(new TextEncoder().encode(text))).toEqual(JSON.parse(text));
  });

  it.each(INVALID)("refuses $name", (invalid) => {
    expect(validateCapture(broken(invalid)).map(first)[0]).toEqual(invalid.expect);
  });

  it.each(BYTES)("refuses $name", (bytes) => {
    expect(firstFault(spelled(bytes))).toEqual({ path: [], code: bytes.code });
  });
});

describe("a document that no JSON made", () => {
  const linear = (): Record<string, unknown> => JSON.parse(VALID.get("linear") as string);

  it("is refused when it contains itself", () => {
    const document = linear();
    document["values"] = [document];
    expect(validateCapture(document).map(first)).toEqual([{ path: [], code: "json" }]);
  });

  it("is refused when it has a prototype of its own making", () => {
    const document = JSON.parse((VALID.get("linear") as string).replace('"status"', '"__proto__": {}, "status"'));
    expect(validateCapture(document).map(first)).toEqual([{ path: ["__proto__"], code: "unknown" }]);
  });

  it("does not lend what it lacks to a path", () => {
    const document = linear();
    const [, , value] = document["values"] as { producer: { path: unknown[] } }[];
    for (const path of [["toString"], ["__proto__"], ["value"], ["kind"]]) {
      (value as { producer: { path: unknown[] } }).producer.path = path;
      expect(validateCapture(document).map(first)).toEqual([{ path: ["values", 2, "producer", "path"], code: "producer" }]);
    }
  });

  it("may be huge and wrong in every place", () => {
    const faults = validateCapture({ operations: new Array(3_000_000).fill(0) });
    expect(faults.length).toBeGreaterThan(0);
    expect(faults.length).toBeLessThanOrEqual(50);
  });
});

describe("what is generated", () => {
  it.each(["details.js", "validators.js"])("%s runs under a strict content security policy", (file) => {
    const code = readFileSync(new URL(`../src/generated/${file}`, import.meta.url), "utf8");
    expect(code).not.toMatch(/\brequire\(|\bimport\b|\beval\(|\bFunction\(/);
  });

  it("agrees with the defaults of the budgets", () => {
    const schema = JSON.parse(readFileSync(new URL("../../../schemas/capture.json", import.meta.url), "utf8"));
    const properties = schema.$defs.Limits.properties as Record<string, { default: number }>;
    expect(DEFAULT_LIMITS).toEqual(Object.fromEntries(Object.entries(properties).map(([name, p]) => [name, p.default])));
  });
});
