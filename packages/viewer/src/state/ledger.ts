import type { CaptureSummary, HostEvent, RunAttempt } from "@tensorviz/contracts";

/** The attempts and captures that the host holds, newest first. A plain value: every event makes a new one. */
export interface Ledger {
  attempts: readonly RunAttempt[];
  captures: readonly CaptureSummary[];
}

export const EMPTY: Ledger = { attempts: [], captures: [] };

export function withEvent(ledger: Ledger, event: HostEvent): Ledger {
  switch (event.kind) {
    case "state":
      return {
        attempts: [...event.attempts].sort((a, b) => b.started - a.started),
        captures: [...event.captures].sort((a, b) => b.created - a.created),
      };
    case "attempt":
      return { ...ledger, attempts: withAttempt(ledger.attempts, event.attempt) };
    case "capture": {
      const others = ledger.captures.filter((capture) => capture.id !== event.capture.id);
      return { ...ledger, captures: [event.capture, ...others].sort((a, b) => b.created - a.created) };
    }
    case "eviction":
      return { ...ledger, captures: ledger.captures.filter((capture) => capture.id !== event.capture) };
    default:
      return ledger;
  }
}

/** The stages of a run in order. */
export const STAGES = [
  "queued",
  "starting",
  "importing",
  "preparing",
  "running",
  "finishing",
  "validating",
  "ended",
] as const satisfies readonly RunAttempt["stage"][];

/** The answer to a request may come after the events that followed it, so news that are older are no news. */
function withAttempt(attempts: readonly RunAttempt[], attempt: RunAttempt): readonly RunAttempt[] {
  const known = attempts.find(({ id }) => id === attempt.id);
  if (known && STAGES.indexOf(known.stage) > STAGES.indexOf(attempt.stage)) return attempts;
  const others = attempts.filter(({ id }) => id !== attempt.id);
  return [attempt, ...others].sort((a, b) => b.started - a.started);
}

export function isRunning(attempt: RunAttempt): boolean {
  return attempt.outcome === null;
}

/** The attempt that deserves a strip above the capture: one that runs, or the newest if no capture came of it. */
export function noteworthy(ledger: Ledger): RunAttempt | undefined {
  const running = ledger.attempts.find(isRunning);
  if (running) return running;
  const newest = ledger.attempts[0];
  return newest && newest.capture === null ? newest : undefined;
}
