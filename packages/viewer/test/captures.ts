import { readFileSync } from "node:fs";
import type { CaptureSnapshot } from "@tensorviz/contracts";
import { buildModel, type CaptureModel } from "../src/model/capture";

const read = (path: string): CaptureSnapshot =>
  JSON.parse(readFileSync(new URL(path, import.meta.url), "utf8")) as CaptureSnapshot;

/** A capture of the contract's corpus, which Python and TypeScript share. */
export const corpus = (name: string): CaptureSnapshot => read(`../../../tests/corpus/valid/${name}.json`);

/** Every kind of argument, every reason, and names that nobody would wish for. */
export const hostile = (): CaptureSnapshot => read("./fixtures/hostile.json");

export const modelOf = (snapshot: CaptureSnapshot): CaptureModel => buildModel(snapshot);
