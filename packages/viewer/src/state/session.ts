import { batch, computed, signal } from "@preact/signals";
import type { CaptureRequest, CaptureSummary, HostEvent, Problem, RunAttempt } from "@tensorviz/contracts";
import { problemOf, type Connection, type Host } from "../host/host";
import { requestOf } from "../model/capture";
import { EMPTY, noteworthy, withEvent, type Ledger } from "./ledger";
import { parseLink, type Link } from "./link";
import { createLoader } from "./loader";
import type { View } from "./view";

export type Session = ReturnType<typeof createSession>;

/** The conversation with the host: what it holds, what is loaded from it, what runs. */
export function createSession(host: Host, view: View) {
  const connection = signal<Connection>("connecting");
  const ledger = signal<Ledger>(EMPTY);
  /** Whether the host has said what it holds. */
  const known = signal(false);
  const loader = createLoader(host, view);
  const { loading, problem } = loader;
  /** Attempts whose strip somebody closed. */
  const dismissed = signal<ReadonlySet<string>>(new Set());
  /** A capture that is newer than what is displayed, but of something else. */
  const offered = signal<CaptureSummary | null>(null);
  let wanted: Link = parseLink(location.hash);

  const attempt = computed(() => {
    const found = noteworthy(ledger.value);
    return found && !dismissed.value.has(found.id) ? found : undefined;
  });
  /** What was asked for to get the displayed capture, or else the latest request. */
  const asked = computed<CaptureRequest | undefined>(() => {
    const { attempts } = ledger.value;
    const shown = view.model.value;
    if (!shown) return attempts[0]?.request;
    return attempts.find(({ id }) => id === shown.snapshot.attempt)?.request ?? requestOf(shown);
  });
  const displayed = computed(() => ledger.value.captures.find(({ id }) => id === view.model.value?.snapshot.id));

  async function show(id: string, link: Link | null = null): Promise<void> {
    const before = view.model.value;
    await loader.show(id, link);
    if (view.model.value !== before) offered.value = null;
  }

  function onEvent(event: HostEvent): void {
    batch(() => {
      const before = displayed.value;
      ledger.value = withEvent(ledger.value, event);
      known.value = true;
      if (event.kind === "state") onState();
      if (event.kind === "attempt") onAttempt(event.attempt);
      if (event.kind === "capture") onCapture(event.capture, before);
    });
  }

  /** The first state decides what is displayed; a later one, after a reconnection, leaves the view alone. */
  function onState(): void {
    if (view.model.value || loading.value) return;
    const asked = ledger.value.attempts.find(({ id }) => id === wanted.attempt);
    const waiting = asked && asked.outcome === null;
    const id = wanted.capture ?? asked?.capture ?? (waiting ? undefined : ledger.value.captures[0]?.id);
    if (id !== undefined && id !== null) void show(id, wanted);
  }

  function onAttempt(attempt: RunAttempt): void {
    if (attempt.id === wanted.attempt && attempt.capture !== null) void show(attempt.capture);
  }

  /** A new capture of the displayed target, or one that somebody asked for here, is shown; any other is offered. */
  function onCapture(summary: CaptureSummary, before: CaptureSummary | undefined): void {
    const again = before && before.target === summary.target && before.file === summary.file;
    const newestShown = ledger.value.captures.every(({ id, created }) => id === summary.id || created <= (before?.created ?? 0));
    if (!view.model.value || summary.attempt === wanted.attempt || (again && newestShown)) void show(summary.id);
    else if (summary.id !== view.model.value.snapshot.id) offered.value = summary;
  }

  /** The address changed: somebody went back or forward, or pasted a link. */
  function onAddress(): void {
    const link = parseLink(location.hash);
    if (link.capture !== null && link.capture !== view.model.value?.snapshot.id) void show(link.capture, link);
    else if (view.model.value) {
      loader.settle();
      view.follow(link);
    }
  }

  async function start(asked: CaptureRequest): Promise<Problem | null> {
    try {
      const attempt = await host.start(asked);
      wanted = { ...wanted, attempt: attempt.id };
      ledger.value = withEvent(ledger.value, { kind: "attempt", attempt });
      return null;
    } catch (error) {
      return problemOf(error);
    }
  }

  /** Starts from a button that has no place of its own for an answer. */
  async function again(asked: CaptureRequest): Promise<void> {
    problem.value = await start(asked);
  }

  async function update(answer: Promise<RunAttempt>): Promise<void> {
    const outcome = await answer.catch(problemOf);
    if ("code" in outcome) problem.value = outcome;
    else ledger.value = withEvent(ledger.value, { kind: "attempt", attempt: outcome });
  }

  return {
    connection,
    ledger,
    known,
    loading,
    problem,
    offered,
    attempt,
    displayed,
    asked,
    show,
    onAddress,
    start,
    again,
    cancel: (id: string) => update(host.cancel(id)),
    readLog: (id: string): Promise<string | Problem> => host.log(id).catch(problemOf),
    dismiss: (id: string) => void (dismissed.value = new Set([...dismissed.value, id])),
    retry: () => host.retry(),
    connect: () => host.listen(onEvent, (state) => (connection.value = state)),
  };
}
