import type { CaptureRequest, CaptureSnapshot, HostEvent, Problem, RunAttempt } from "@tensorviz/contracts";
import { HostError, type Connection, type Host } from "./host";

const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 8_000;

/** The host's own page: `fetch` and a WebSocket on the page's own origin. */
export function webHost(token: string, origin = location.origin): Host {
  let wake: (() => void) | null = null;

  async function answer(path: string, init: RequestInit): Promise<Response> {
    const headers = new Headers(init.headers);
    headers.set("Authorization", `Bearer ${token}`);
    let response: Response;
    try {
      response = await fetch(`${origin}/api/${path}`, { ...init, headers, cache: "no-store" });
    } catch (error) {
      if (init.signal?.aborted) throw error;
      throw new HostError(unreachable());
    }
    if (response.ok) return response;
    const body: unknown = await response.json().catch(() => null);
    throw new HostError(isProblem(body) ? body : unexpected(response));
  }

  const ask = async (path: string, init: RequestInit = {}): Promise<unknown> => (await answer(path, init)).json();

  /** Ends when the socket does; tells whether trying again makes sense. */
  async function session(
    onEvent: (event: HostEvent) => void,
    onLive: () => void,
    stop: AbortSignal,
  ): Promise<"again" | "unauthorized"> {
    const socket = new WebSocket(`${origin.replace(/^http/, "ws")}/api/events`, ["tensorviz.v1", `token.${token}`]);
    const close = () => socket.close();
    stop.addEventListener("abort", close);
    await new Promise<void>((done) => {
      socket.onmessage = ({ data }) => {
        onLive();
        onEvent(JSON.parse(String(data)) as HostEvent);
      };
      socket.onclose = () => done();
    });
    stop.removeEventListener("abort", close);
    if (stop.aborted) return "again";
    return ask("info").then(
      () => "again",
      (error) => (error instanceof HostError && error.problem.code === "unauthorized" ? "unauthorized" : "again"),
    );
  }

  async function listenUntil(
    stop: AbortSignal,
    onEvent: (event: HostEvent) => void,
    onConnection: (connection: Connection) => void,
  ): Promise<void> {
    let pause = FIRST_PAUSE;
    while (!stop.aborted) {
      const end = await session(
        onEvent,
        () => {
          pause = FIRST_PAUSE;
          onConnection("live");
        },
        stop,
      );
      if (stop.aborted) return;
      onConnection(end === "unauthorized" ? "unauthorized" : "reconnecting");
      await Promise.race([
        end === "unauthorized" ? new Promise<never>(() => undefined) : wait(pause * (0.75 + Math.random() / 2)),
        new Promise<void>((resolve) => (wake = resolve)),
      ]);
      pause = Math.min(LONGEST_PAUSE, pause * 2);
    }
  }

  const json = (method: string, body: unknown): RequestInit => ({
    method,
    body: JSON.stringify(body),
    headers: { "Content-Type": "application/json" },
  });

  return {
    capture: (id, signal) => ask(`captures/${encodeURIComponent(id)}`, { signal }) as Promise<CaptureSnapshot>,
    log: async (id) => (await answer(`attempts/${encodeURIComponent(id)}/log`, {})).text(),
    start: (request: CaptureRequest) => ask("attempts", json("POST", request)) as Promise<RunAttempt>,
    cancel: (id) => ask(`attempts/${encodeURIComponent(id)}`, { method: "DELETE" }) as Promise<RunAttempt>,
    listen(onEvent, onConnection) {
      const stop = new AbortController();
      void listenUntil(stop.signal, onEvent, onConnection);
      return () => stop.abort();
    },
    retry: () => wake?.(),
  };
}

function wait(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

function isProblem(body: unknown): body is Problem {
  return typeof body === "object" && body !== null && "code" in body && "title" in body && "detail" in body;
}

function unreachable(): Problem {
  return {
    code: "internal_error",
    title: "The host has ended",
    detail: "Nothing answers at this page's address any more.",
    hint: "Start it again with `tensorviz open` and use the address that it prints. This page keeps showing what it has loaded.",
    faults: [],
  };
}

function unexpected(response: Response): Problem {
  return {
    code: "internal_error",
    title: `The host answered ${response.status}`,
    detail: "The answer is not one that this page knows.",
    hint: "The page may be older than the host: reload it.",
    faults: [],
  };
}
