/**
 * What must hold between the records of a capture.
 *
 * `check` runs a table of small rules over a structurally valid capture. Rules come in phases, and a later phase may rely
 * on what an earlier one established. backend/tensorviz/contracts/relations is the twin of this folder: same files, rules,
 * codes and paths, in the same order.
 */
import type { CaptureSnapshot } from "../generated/types";
import type { Path, Step } from "../trees";
import * as args from "./arguments";
import * as coverage from "./coverage";
import * as events from "./events";
import * as failures from "./failures";
import * as locations from "./locations";
import { Capture, type Fault, type Rule } from "./lookup";
import * as references from "./references";
import * as values from "./values";

export type { Fault } from "./lookup";

export const MAX_FAULTS = 50;
const PHASES: readonly (readonly Rule[])[] = [
  references.IDENTITY,
  references.REFERENCES,
  [...locations.RULES, ...events.RULES, ...failures.RULES, ...values.RULES, ...args.RULES, ...coverage.RULES],
];

/** The faults of a structurally valid capture, at most 50 of them. `size` is that of its encoding. */
export function check(snapshot: CaptureSnapshot, size: number | null = null): Fault[] {
  const capture = new Capture(snapshot, size);
  for (const phase of PHASES) {
    const found: Fault[] = [];
    for (const rule of phase) if (!take(rule(capture), found)) break;
    if (found.length > 0) return inOrder(found);
  }
  return [];
}

/** Appends until there are enough; says whether there is room for more. */
function take(faults: Iterable<Fault>, found: Fault[]): boolean {
  for (const fault of faults) {
    found.push(fault);
    if (found.length === MAX_FAULTS) return false;
  }
  return true;
}

/** By path, where a number comes before a name, then by code. */
export function inOrder(faults: Iterable<Fault>): Fault[] {
  return [...faults].sort((one, other) => comparePaths(one.path, other.path) || compare(one.code, other.code));
}

function comparePaths(one: Path, other: Path): number {
  for (let index = 0; index < Math.min(one.length, other.length); index++) {
    const order = compareSteps(one[index] as Step, other[index] as Step);
    if (order !== 0) return order;
  }
  return one.length - other.length;
}

function compareSteps(one: Step, other: Step): number {
  if (typeof one !== typeof other) return typeof one === "number" ? -1 : 1;
  return compare(one, other);
}

const compare = (one: Step, other: Step): number => (one < other ? -1 : one > other ? 1 : 0);
