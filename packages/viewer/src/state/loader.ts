import { batch, signal } from "@preact/signals";
import type { Problem } from "@tensorviz/contracts";
import { problemOf, type Host } from "../host/host";
import { buildModel } from "../model/capture";
import type { Link } from "./link";
import type { View } from "./view";

export type Loader = ReturnType<typeof createLoader>;

/** Fetches captures and puts them on display, one at a time: the last one that was wanted. */
export function createLoader(host: Host, view: View) {
  const loading = signal<string | null>(null);
  const problem = signal<Problem | null>(null);
  let request: AbortController | null = null;

  async function show(id: string, link: Link | null = null): Promise<void> {
    if (id === view.model.value?.snapshot.id) return settle();
    request?.abort();
    const mine = (request = new AbortController());
    batch(() => {
      loading.value = id;
      problem.value = null;
    });
    const outcome = await host.capture(id, mine.signal).then(buildModel).catch(problemOf);
    if (mine.signal.aborted) return;
    batch(() => {
      loading.value = null;
      if ("code" in outcome) problem.value = outcome;
      else view.display(outcome, link);
    });
  }

  /** What is displayed is what is wanted: nothing is on its way, and what could not be shown matters no more. */
  function settle(): void {
    request?.abort();
    batch(() => {
      loading.value = null;
      problem.value = null;
    });
  }

  return { loading, problem, show, settle };
}
