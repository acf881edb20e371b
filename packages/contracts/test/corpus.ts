/** Reads tests/corpus, which tests/contracts reads too: valid captures, and patches that break them. */
import { readdirSync, readFileSync } from "node:fs";

type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

interface PatchStep {
  set?: string;
  to?: Json;
  remove?: string;
}

export interface InvalidCase {
  name: string;
  base: string;
  patch: PatchStep[];
  expect: { path: (number | string)[]; code: string };
}

export interface BytesCase {
  name: string;
  code: string;
  text?: string;
  hex?: string;
  repeat?: [string, number, string];
}

const FOLDER = new URL("../../../tests/corpus/", import.meta.url);
const read = (path: string): string => readFileSync(new URL(path, FOLDER), "utf8");

export const VALID = new Map(
  readdirSync(new URL("valid/", FOLDER))
    .sort()
    .map((file) => [file.replace(".json", ""), read(`valid/${file}`)]),
);
export const INVALID = JSON.parse(read("invalid.json")) as InvalidCase[];
export const BYTES = JSON.parse(read("bytes.json")) as BytesCase[];

/** The base of a case with its patch applied, step by step: `set` a pointer `to` a value, or `remove` it. */
export function broken({ base, patch }: InvalidCase): unknown {
  const document = JSON.parse(VALID.get(base) as string) as Json;
  for (const step of patch) {
    const names = ((step.set ?? step.remove) as string).split("/").slice(1);
    const last = names.pop() as string;
    let parent = document;
    for (const name of names) parent = (parent as Record<string, Json>)[name] as Json;
    if (Array.isArray(parent)) change(parent, last, step);
    else if (step.remove !== undefined) Reflect.deleteProperty(parent as object, last);
    else Object.defineProperty(parent, last, { value: step.to, enumerable: true, configurable: true, writable: true });
  }
  return document;
}

function change(list: Json[], key: string, step: PatchStep): void {
  if (step.remove !== undefined) list.splice(Number(key), 1);
  else if (key === "-") list.push(step.to as Json);
  else list[Number(key)] = step.to as Json;
}

/** The bytes of a case: `text`, `hex`, or `repeat`: what opens, how often, and what closes. */
export function spelled({ text, hex, repeat }: BytesCase): Uint8Array {
  if (hex !== undefined) return Uint8Array.from(Buffer.from(hex, "hex"));
  if (repeat === undefined) return new TextEncoder().encode(text);
  const [opening, times, closing] = repeat;
  return new TextEncoder().encode(opening.repeat(times) + closing.repeat(times));
}
