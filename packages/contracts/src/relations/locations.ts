/** Places in the code: their ranges, the way to each, and what a binding to the saved file needs. */
import type { Location } from "../generated/types";
import { fault, type Capture, type Fault, type Rule } from "./lookup";

const MAX_FRAMES = 64;

function* rangesRunForward(capture: Capture): Generator<Fault> {
  for (const [index, location] of capture.snapshot.locations.entries()) {
    const end = location.endLine ?? location.line;
    const { column, endColumn } = location;
    const backwards = end === location.line && column !== null && endColumn !== null && column > endColumn;
    if (end < location.line || backwards) yield fault(["locations", index], "location", "ends before it begins");
  }
}

/** A caller is told earlier, so that no way is a circle; and every way is short. */
function* waysLeadOutwards(capture: Capture): Generator<Fault> {
  const frames: number[] = [];
  for (const [index, { caller }] of capture.snapshot.locations.entries()) {
    const outer = caller === null ? -1 : Number(caller.slice(1));
    if (outer >= index) yield fault(["locations", index, "caller"], "location", `${caller} is not told earlier`);
    const before = outer < index ? (frames[outer] ?? 0) : 0;
    frames.push(before + 1);
    if (before >= MAX_FRAMES) yield fault(["locations", index, "caller"], "location", `more than ${MAX_FRAMES} frames`);
  }
}

function* onlyOutermostFramesAreCut(capture: Capture): Generator<Fault> {
  for (const [index, { caller, callersOmitted }] of capture.snapshot.locations.entries()) {
    if (callersOmitted && caller !== null) {
      yield fault(["locations", index, "callersOmitted"], "location", "the caller is told");
    }
  }
}

function* bindingsHaveTheirEvidence(capture: Capture): Generator<Fault> {
  for (const [index, location] of capture.snapshot.locations.entries()) {
    const what = missing(capture, location);
    if (what !== null) yield fault(["locations", index, "binding"], "location", `${location.binding} needs ${what}`);
  }
}

/** What a binding claims without having it. */
function missing(capture: Capture, location: Location): string | null {
  const { binding, endLine, column, endColumn } = location;
  const file = capture.at("f", location.file);
  if (binding === "unmapped") return null;
  if (file.root !== "workspace") return "a file of the workspace";
  if (file.digest === null) return "the digest of the saved file";
  if (binding === "exact" && [endLine, column, endColumn].includes(null)) return "a whole range";
  if (binding === "candidate" && column !== null) return "a line alone";
  return null;
}

export const RULES: readonly Rule[] = [
  rangesRunForward,
  waysLeadOutwards,
  onlyOutermostFramesAreCut,
  bindingsHaveTheirEvidence,
];
