import { batch, computed, signal } from "@preact/signals";
import { isWithin, operationsOf, owner, parentOf, RUN, type CaptureModel } from "../model/capture";
import { initiallyOpen, openTo, treeRows, uncalledModules } from "../model/tree";
import { parseLink, toFragment, type Link } from "./link";

/** What is looked at in the displayed capture. `op` is null while a call itself is selected. */
export interface Selection {
  call: number;
  op: number | null;
  /** Whether the operations of nested calls are listed too. */
  deep: boolean;
}

/** Whether a change of the view is a step to come back to, or only the way to the next one. */
export type Step = "push" | "replace";

export type View = ReturnType<typeof createView>;

/** The displayed capture and what is selected and open in it, in step with the address. */
export function createView() {
  const model = signal<CaptureModel | null>(null);
  const selection = signal<Selection>({ call: RUN, op: null, deep: true });
  const open = signal<ReadonlySet<number>>(new Set());

  const uncalled = computed(() => (model.value ? uncalledModules(model.value) : []));
  const rows = computed(() => (model.value ? treeRows(model.value, open.value, uncalled.value) : []));
  const call = computed(() => selection.value.call);
  const deep = computed(() => selection.value.deep);
  const operations = computed(() => (model.value ? operationsOf(model.value, call.value, deep.value) : []));

  function place(current: CaptureModel, next: Selection): void {
    batch(() => {
      selection.value = next.op === null ? next : listing(current, next, next.op);
      open.value = openTo(current, open.value, selection.value.call);
    });
  }

  function writeLink(step: Step): void {
    if (!model.value) return;
    const fragment = toFragment({ capture: model.value.snapshot.id, ...selection.value });
    if (fragment === location.hash) return;
    const address = `${location.pathname}${location.search}${fragment}`;
    if (step === "push") history.pushState(null, "", address);
    else history.replaceState(null, "", address);
  }

  function select(next: Partial<Selection>, step: Step = "push"): void {
    if (!model.value) return;
    place(model.value, { ...selection.value, ...next });
    writeLink(step);
  }

  /** Selects an operation and opens the tree to the call that ran it. */
  function reveal(op: number, step: Step = "push", from: Selection = selection.value): void {
    select({ ...from, op }, step);
    if (model.value) open.value = openTo(model.value, open.value, owningCall(model.value, op));
  }

  function display(made: CaptureModel, link: Link | null): void {
    const step = model.value === null || link !== null ? "replace" : "push";
    batch(() => {
      model.value = made;
      open.value = initiallyOpen(made);
      place(made, firstSelection(made, link ?? parseLink("")));
      const { op } = selection.value;
      if (op !== null) open.value = openTo(made, open.value, owningCall(made, op));
    });
    writeLink(step);
  }

  /** Goes where the address says, within the displayed capture. */
  function follow(link: Link): void {
    if (model.value) place(model.value, firstSelection(model.value, link));
  }

  function toggle(at: number, to = !open.value.has(at)): void {
    const next = new Set(open.value);
    if (to) next.add(at);
    else next.delete(at);
    open.value = next;
  }

  /** Opens the selected call and its siblings. */
  function expandSiblings(): void {
    if (!model.value) return;
    const parent = selection.value.call === RUN ? RUN : parentOf(model.value, selection.value.call);
    const siblings = parent === RUN ? model.value.roots : (model.value.children[parent] ?? []);
    open.value = new Set([...open.value, ...siblings]);
  }

  return { model, selection, open, rows, call, operations, select, reveal, display, follow, toggle, expandSiblings };
}

/** What a link selects, or else what went wrong; what the capture does not have is left out. */
function firstSelection(model: CaptureModel, link: Link): Selection {
  const { invocations, operations } = model.snapshot;
  const op = link.op !== null && link.op < operations.length ? link.op : null;
  const call = link.call !== null && link.call < invocations.length ? link.call : null;
  const top = model.hasRun ? RUN : (model.roots[0] ?? RUN);
  if (op === null && call === null && link.capture === null) return { call: top, op: model.culprit, deep: true };
  return { call: call ?? top, op, deep: link.deep };
}

function owningCall(model: CaptureModel, op: number): number {
  const operation = model.snapshot.operations[op];
  return operation ? owner(operation) : RUN;
}

/** Keeps the call on display when it lists the operation, and else goes to the call that ran it. */
function listing(model: CaptureModel, selection: Selection, op: number): Selection {
  const at = owningCall(model, op);
  const listed = selection.deep ? isWithin(model, at, selection.call) : at === selection.call;
  return listed ? selection : { ...selection, call: at };
}
