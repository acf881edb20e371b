import { batch, computed, signal } from "@preact/signals";
import { hitsPerCall, searchIndex, type Hit } from "../model/search";
import type { View } from "./view";

export type Finder = ReturnType<typeof createFinder>;

/** Search in the displayed capture: what matches, and which match is the current one. */
export function createFinder(view: View) {
  const query = signal("");
  /** The place of the current match, and -1 before the first one is visited. */
  const at = signal(-1);

  const hits = computed<readonly Hit[]>(() =>
    view.model.value && query.value.trim() ? searchIndex(view.model.value).find(query.value) : [],
  );
  const operations = computed(
    () => new Set(hits.value.filter(({ kind }) => kind === "op").map(({ index }) => index)),
  );
  const perCall = computed<ReadonlyMap<number, number>>(() =>
    view.model.value ? hitsPerCall(view.model.value, hits.value) : new Map(),
  );

  function ask(text: string): void {
    batch(() => {
      query.value = text;
      at.value = -1;
    });
  }

  /** Makes the index before the first letter is typed. */
  function prepare(): void {
    const { value } = view.model;
    if (value) setTimeout(() => searchIndex(value));
  }

  function go(step: 1 | -1): void {
    const found = hits.value;
    if (found.length === 0) return;
    const next = at.value < 0 && step < 0 ? found.length - 1 : at.value + step;
    at.value = (next + found.length) % found.length;
    const hit = found[at.value] as Hit;
    if (hit.kind === "call") view.select({ call: hit.index, op: null });
    else view.reveal(hit.index);
  }

  return { query, at, hits, operations, perCall, ask, prepare, go };
}
