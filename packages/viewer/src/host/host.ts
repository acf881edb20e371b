import type { CaptureRequest, CaptureSnapshot, HostEvent, Problem, RunAttempt } from "@tensorviz/contracts";

/**
 * `connecting` until the first answer, then `live`. `reconnecting` keeps trying by itself; `unauthorized` does not,
 * because the same token will not be accepted later either. `tokenless` never asked: the page was opened without one.
 */
export type Connection = "connecting" | "live" | "reconnecting" | "unauthorized" | "tokenless";

/** All that the page knows of the place it runs in: a browser tab, an editor, a file without anybody behind it. */
export interface Host {
  capture(id: string, signal: AbortSignal): Promise<CaptureSnapshot>;
  /** What the program of an attempt printed, once it has ended. */
  log(id: string): Promise<string>;
  start(request: CaptureRequest): Promise<RunAttempt>;
  cancel(id: string): Promise<RunAttempt>;
  /** Events from now on, the first of them a `state`, again after every reconnection. The result ends the listening. */
  listen(onEvent: (event: HostEvent) => void, onConnection: (connection: Connection) => void): () => void;
  /** Connect now rather than after the pause between two tries. */
  retry(): void;
}

/** An answer that is a problem, or no answer at all. */
export class HostError extends Error {
  readonly problem: Problem;

  constructor(problem: Problem) {
    super(problem.title);
    this.problem = problem;
  }
}

export function problemOf(error: unknown): Problem {
  if (error instanceof HostError) return error.problem;
  return {
    code: "internal_error",
    title: "This page failed",
    detail: error instanceof Error ? error.message : String(error),
    hint: "Reload the page. If it happens again, please report it.",
    faults: [],
  };
}
