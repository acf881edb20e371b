/** Registration, the common order of events, containment, and what each status implies. */
import type { Invocation } from "../generated/types";
import type { Path } from "../trees";
import { fault, NEVER, PLACES, type Capture, type Fault, type Rule } from "./lookup";

function* statesAreRegistered(capture: Capture): Generator<Fault> {
  for (const [index, { paths }] of capture.snapshot.state.entries()) {
    if (paths.length === 0) yield fault(["state", index, "paths"], "path", "is registered nowhere");
  }
}

function* rootsOwnTheEmptyPath(capture: Capture): Generator<Fault> {
  const owners = new Map<string, string>();
  for (const { id, paths } of capture.snapshot.modules) {
    for (const { root, path } of paths) if (path === "") owners.set(root, id);
  }
  for (const letter of ["m", "p"] as const) {
    for (const [index, record] of capture.lists[letter].entries()) {
      for (const [place, { root }] of record.paths.entries()) {
        if (owners.get(root) !== root) {
          const path = [...PLACES[letter], index, "paths", place, "root"];
          yield fault(path, "path", `the empty path below ${root} is not its own`);
        }
      }
    }
  }
}

function* pathsAreRegisteredOnce(capture: Capture): Generator<Fault> {
  for (const letter of ["m", "p"] as const) {
    const taken = new Set<string>();
    for (const [index, record] of capture.lists[letter].entries()) {
      for (const [place, { root, path }] of record.paths.entries()) {
        const key = `${root} ${path}`;
        if (taken.has(key)) yield fault([...PLACES[letter], index, "paths", place], "path", "is registered already");
        taken.add(key);
      }
    }
  }
}

function* eventsAreInOrder(capture: Capture): Generator<Fault> {
  const { operations, invocations } = capture.snapshot;
  yield* ascending(["operations"], "sequence", operations.map(({ sequence }) => sequence));
  yield* ascending(["invocations"], "entry", invocations.map(({ entry }) => entry));
}

function* ascending(path: Path, field: string, numbers: number[]): Generator<Fault> {
  let last = -1;
  for (const [index, number] of numbers.entries()) {
    if (number <= last) yield fault([...path, index, field], "order", `${number} does not follow ${last}`);
    last = number;
  }
}

function* eventsHaveTheirOwnNumbers(capture: Capture): Generator<Fault> {
  const taken = new Set(capture.snapshot.operations.map(({ sequence }) => sequence));
  for (const [index, { entry, exit }] of capture.snapshot.invocations.entries()) {
    for (const [field, number] of [["entry", entry], ["exit", exit]] as const) {
      if (number === null) continue;
      if (taken.has(number)) yield fault(["invocations", index, field], "order", `${number} numbers another event too`);
      taken.add(number);
    }
    if (exit !== null && exit < entry) yield fault(["invocations", index, "exit"], "order", "is before the entry");
  }
}

function* callsContainTheirEvents(capture: Capture): Generator<Fault> {
  for (const [index, call] of capture.snapshot.invocations.entries()) {
    if (call.parent !== null && !holds(capture.at("c", call.parent), call.entry, call.exit ?? NEVER)) {
      yield fault(["invocations", index, "parent"], "containment", `is not open during all of ${call.id}`);
    }
  }
  for (const [index, { id, invocation, sequence }] of capture.snapshot.operations.entries()) {
    if (invocation !== null && !holds(capture.at("c", invocation), sequence, sequence)) {
      yield fault(["operations", index, "invocation"], "containment", `is not open at ${id}`);
    }
  }
}

const holds = (call: Invocation, first: number, last: number): boolean =>
  call.entry < first && (call.exit === null || last < call.exit);

function* operationsMatchTheirStatus(capture: Capture): Generator<Fault> {
  for (const [index, operation] of capture.snapshot.operations.entries()) {
    const { status } = operation;
    const path = ["operations", index];
    yield* matches(path, status, "output", operation.output, status === "completed");
    yield* matches(path, status, "diagnostic", operation.diagnostic, status === "failed");
    if (status === "in_flight" && operation.effects.length > 0) {
      yield fault([...path, "effects"], "status", "an operation in flight has no effects yet");
    }
  }
}

function* callsMatchTheirStatus(capture: Capture): Generator<Fault> {
  for (const [index, call] of capture.snapshot.invocations.entries()) {
    const { status } = call;
    const path = ["invocations", index];
    yield* matches(path, status, "output", call.output, status === "completed");
    yield* matches(path, status, "diagnostic", call.diagnostic, status === "failed" || status === "stopped");
    yield* matches(path, status, "exit", call.exit, status !== "in_flight");
  }
}

function* onlyAnInterruptedRunIsInFlight(capture: Capture): Generator<Fault> {
  const { termination, reasons, operations } = capture.snapshot;
  const ended = termination.kind === "returned" || termination.kind === "raised";
  const broken = reasons.some(({ code }) => code === "instrumentation_error");
  for (const letter of ["c", "o"] as const) {
    for (const [index, { status }] of capture.lists[letter].entries()) {
      if (status === "in_flight" && ended && !broken) {
        yield fault([...PLACES[letter], index, "status"], "status", "nothing is in flight after the run ended");
      }
    }
  }
  for (const [index, { status }] of operations.slice(0, -1).entries()) {
    if (status === "in_flight") {
      yield fault(["operations", index, "status"], "status", "only the last operation can be in flight");
    }
  }
}

function* matches(path: Path, status: string, field: string, value: unknown, present: boolean): Generator<Fault> {
  if ((value !== null) !== present) {
    yield fault([...path, field], "status", `${status}, yet ${field} is ${present ? "missing" : "there"}`);
  }
}

export const RULES: readonly Rule[] = [
  statesAreRegistered,
  rootsOwnTheEmptyPath,
  pathsAreRegisteredOnce,
  eventsAreInOrder,
  eventsHaveTheirOwnNumbers,
  callsContainTheirEvents,
  operationsMatchTheirStatus,
  callsMatchTheirStatus,
  onlyAnInterruptedRunIsInFlight,
];
