/** Budgets, coverage, and what a complete capture may not contain. */
import { fault, isUnobserved, type Capture, type Fault, type Rule } from "./lookup";

const LISTS = ["operations", "invocations", "values"] as const;

function* listsStayWithinBudgets(capture: Capture): Generator<Fault> {
  const { limits } = capture;
  for (const field of LISTS) {
    const count = capture.snapshot[field].length;
    if (count > limits[field]) yield fault([field], "limit", `${count} records; the limit is ${limits[field]}`);
  }
  if (capture.size !== null && capture.size > limits.bytes) {
    const message = `the capture has ${capture.size} bytes; the limit is ${limits.bytes}`;
    yield fault(["limits", "bytes"], "limit", message);
  }
}

function* parameterCountsAreExclusive(capture: Capture): Generator<Fault> {
  for (const [index, call] of capture.snapshot.invocations.entries()) {
    if (call.parameterCount !== undefined && call.parameterCountUnavailable !== undefined) {
      yield fault(["invocations", index, "parameterCountUnavailable"], "parameters", "there is a count");
    }
  }
}

function* coverageCountsTheRecords(capture: Capture): Generator<Fault> {
  const { snapshot } = capture;
  const codes = new Set(snapshot.reasons.map(({ code }) => code));
  for (const field of LISTS) {
    const path = ["coverage", field];
    const { recorded, omitted, reason } = snapshot.coverage[field];
    if (recorded !== snapshot[field].length) {
      yield fault([...path, "recorded"], "coverage", `there are ${snapshot[field].length}`);
    }
    if ((omitted !== 0) !== (reason !== null)) {
      yield fault([...path, "reason"], "coverage", "omitted events have a reason, and nothing else has");
    } else if (reason !== null && !codes.has(reason)) {
      yield fault([...path, "reason"], "coverage", "is not among the capture's reasons");
    }
  }
}

function* coverageMatchesCalls(capture: Capture): Generator<Fault> {
  const { snapshot } = capture;
  const called = new Set(snapshot.invocations.map(({ module }) => module));
  const failed = new Set(snapshot.invocations.filter(({ status }) => status === "failed").map(({ module }) => module));
  const covered = new Set<string>();
  for (const [index, { module, state }] of snapshot.coverage.modules.entries()) {
    const path = ["coverage", "modules", index];
    if (covered.has(module)) yield fault([...path, "module"], "coverage", `${module} is listed twice`);
    covered.add(module);
    let wanted = ["not_observed", "capture_limited"];
    if (called.has(module)) wanted = failed.has(module) ? ["failed"] : ["observed"];
    if (!wanted.includes(state)) {
      yield fault([...path, "state"], "coverage", `its calls say ${wanted.join(" or ")}`);
    } else if (state === "capture_limited" && snapshot.status === "complete") {
      yield fault([...path, "state"], "coverage", "nothing limited a complete capture");
    }
  }
  if (covered.size < snapshot.modules.length) {
    yield fault(["coverage", "modules"], "coverage", "every module is listed");
  }
}

function* partialCapturesSayWhy(capture: Capture): Generator<Fault> {
  const { status, reasons } = capture.snapshot;
  if (status === "partial" && reasons.length === 0) {
    yield fault(["reasons"], "complete", "a partial capture has a reason");
  }
  if (status === "complete") for (const why of gaps(capture)) yield fault(["status"], "complete", why);
}

function* gaps(capture: Capture): Generator<string> {
  const { reasons, termination, coverage, operations, state, values } = capture.snapshot;
  if (reasons.length > 0) yield "a complete capture has no reasons";
  if (termination.kind !== "returned") yield "the run did not return";
  if (LISTS.some((field) => coverage[field].omitted !== 0)) yield "events were omitted";
  if (capture.hasOpaque || operations.some(({ effects }) => effects.some(({ after }) => after.kind === "opaque"))) {
    yield "an argument, a result or the outcome of a write is opaque";
  }
  if (state.some(({ value }) => value === null)) yield "a parameter or buffer has no value";
  if (values.some(({ producer }) => isUnobserved(producer))) yield "a tensor changed without a recorded operation";
}

function* unavailableValuesAreFake(capture: Capture): Generator<Fault> {
  const { valuesUnavailable, values, state } = capture.snapshot;
  if (valuesUnavailable !== undefined && values.length === 0 && state.length === 0) {
    yield fault(["valuesUnavailable"], "fake", "no tensor was observed");
  }
}

export const RULES: readonly Rule[] = [
  listsStayWithinBudgets,
  parameterCountsAreExclusive,
  coverageCountsTheRecords,
  coverageMatchesCalls,
  partialCapturesSayWhy,
  unavailableValuesAreFake,
];
