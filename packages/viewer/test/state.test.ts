import type { CaptureSummary, RunAttempt } from "@tensorviz/contracts";
import { describe, expect, it } from "vitest";
import { EMPTY, noteworthy, withEvent } from "../src/state/ledger";
import { parseLink, toFragment } from "../src/state/link";
import { scrolledTo } from "../src/ui/virtual";

const capture = (id: string, created: number): CaptureSummary => ({
  id,
  attempt: "att-0000000000000000",
  status: "complete",
  target: "Net",
  file: "net.py",
  model: "net.Net",
  reasons: [],
  operations: 1,
  invocations: 1,
  values: 1,
  bytes: 100,
  created,
});

const attempt = (id: string, started: number, outcome: RunAttempt["outcome"] = null): RunAttempt => ({
  id,
  origin: "web",
  request: { file: "net.py" },
  requestDigest: "0".repeat(64),
  planDigest: null,
  stage: outcome === null ? "running" : "ended",
  outcome,
  problem: null,
  capture: outcome === "complete" ? "cap-0000000000000000" : null,
  operations: 0,
  started,
  ended: null,
});

describe("the ledger", () => {
  const state = withEvent(EMPTY, {
    kind: "state",
    attempts: [attempt("a", 1, "complete")],
    captures: [capture("one", 1), capture("two", 2)],
  });

  it("keeps the newest first, through every event", () => {
    const more = withEvent(state, { kind: "capture", capture: capture("three", 3) });
    expect(more.captures.map(({ id }) => id)).toEqual(["three", "two", "one"]);
    const less = withEvent(more, { kind: "eviction", capture: "one" });
    expect(less.captures.map(({ id }) => id)).toEqual(["three", "two"]);
  });

  it("puts an attempt's news in the place of its old state", () => {
    const begun = withEvent(state, { kind: "attempt", attempt: attempt("b", 2) });
    const ended = withEvent(begun, { kind: "attempt", attempt: attempt("b", 2, "failed") });
    expect(ended.attempts.map(({ id, outcome }) => [id, outcome])).toEqual([
      ["b", "failed"],
      ["a", "complete"],
    ]);
  });

  it("takes no older news of an attempt after newer ones", () => {
    const ended = withEvent(state, { kind: "attempt", attempt: attempt("b", 2, "failed") });
    expect(withEvent(ended, { kind: "attempt", attempt: attempt("b", 2) })).toEqual(ended);
  });

  it("notes what runs, else what left no capture, else nothing", () => {
    expect(noteworthy(state)).toBeUndefined();
    const failed = withEvent(state, { kind: "attempt", attempt: attempt("b", 2, "failed") });
    expect(noteworthy(failed)?.id).toBe("b");
    const running = withEvent(failed, { kind: "attempt", attempt: attempt("c", 3) });
    expect(noteworthy(running)?.id).toBe("c");
  });
});

describe("links", () => {
  it("come back as they were written", () => {
    const link = { capture: "cap-0123456789abcdef", call: 3, op: 12, deep: false };
    expect(parseLink(toFragment(link))).toEqual({ ...link, attempt: null });
    expect(toFragment({ capture: null, call: -1, op: null, deep: true })).toBe("");
  });

  it("say nothing where they are not understood", () => {
    expect(parseLink("#capture=../../etc&call=c-1&op=12&attempt=x")).toEqual({
      capture: null,
      attempt: null,
      call: null,
      op: null,
      deep: true,
    });
  });
});

describe("scrolling to a row", () => {
  it("moves no more than it must", () => {
    expect(scrolledTo(100, 20, 50, 200)).toBe(50);
    expect(scrolledTo(240, 20, 50, 200)).toBe(60);
    expect(scrolledTo(40, 20, 50, 200)).toBe(40);
    expect(scrolledTo(9000, 20, 50, 300)).toBe(8900);
  });
});
