import { batch, computed, signal } from "@preact/signals";
import type { CaptureModel } from "../model/capture";
import { hitsPerCall, searchIndex, type Hit } from "../model/search";
import type { Selection, Step, View } from "./view";

export type Finder = ReturnType<typeof createFinder>;

/** Search in the displayed capture: what matches, and which match is the current one. */
export function createFinder(view: View) {
  const query = signal("");
  const visited = signal<{ among: readonly Hit[]; place: number } | null>(null);
  /** Where the search was begun: every letter searches from there, so that the way of typing changes nothing. */
  let start: { model: CaptureModel; selection: Selection } | null = null;

  const hits = computed<readonly Hit[]>(() =>
    view.model.value && query.value.trim() ? searchIndex(view.model.value).find(query.value) : [],
  );
  /** The place of the current match, and -1 while none is visited. */
  const at = computed(() => (visited.value?.among === hits.value ? visited.value.place : -1));
  const operations = computed(
    () => new Set(hits.value.filter(({ kind }) => kind === "op").map(({ index }) => index)),
  );
  const perCall = computed<ReadonlyMap<number, number>>(() =>
    view.model.value ? hitsPerCall(view.model.value, hits.value) : new Map(),
  );

  /** Shows the first match while somebody types. The focus stays where it is. */
  function ask(text: string): void {
    const model = view.model.value;
    const begins = query.value.trim() === "" || start?.model !== model;
    if (begins) start = model && { model, selection: view.selection.value };
    batch(() => {
      query.value = text;
      if (start && text.trim()) visit(0, begins ? "push" : "replace", start.selection);
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
    visit((next + found.length) % found.length, "push", view.selection.value);
  }

  /** Goes to a match, from a selection; to that selection itself when nothing matches. */
  function visit(place: number, step: Step, from: Selection): void {
    const hit = hits.value[place];
    visited.value = { among: hits.value, place };
    if (hit?.kind === "op") view.reveal(hit.index, step, from);
    else view.select(hit ? { ...from, call: hit.index, op: null } : from, step);
  }

  return { query, at, hits, operations, perCall, ask, prepare, go };
}
