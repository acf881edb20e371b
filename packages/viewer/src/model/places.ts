import type { Location } from "@tensorviz/contracts";
import { place, position, RUN, type CaptureModel, type Place } from "./capture";

/** One place on the way outwards. `into` is the module call that was made there; null between frames of one call. */
export interface Step {
  place: Place;
  into: number | null;
  /** There were more frames between this one and the next than are kept. */
  cut: boolean;
}

/** From a place outwards to the program's entry, itself left out: its callers, then those of each call around it. */
export function wayOut(model: CaptureModel, location: string | null, call: number): Step[] {
  const steps = chain(model, location, null).slice(1);
  let last = location;
  for (let around = call; around !== RUN; around = outside(model, around)) {
    const made = model.snapshot.invocations[around]?.location ?? null;
    // The same place again: nothing inside of the call is the program's own, as in a module of torch.
    if (made !== last || made === null) steps.push(...chain(model, made, around));
    last = made;
  }
  return steps;
}

function outside(model: CaptureModel, call: number): number {
  const parent = model.snapshot.invocations[call]?.parent ?? null;
  return parent === null ? RUN : position(parent);
}

function chain(model: CaptureModel, start: string | null, into: number | null): Step[] {
  const steps: Step[] = [];
  for (let id = start; id !== null; ) {
    const found = place(model, id);
    if (!found) break;
    steps.push({ place: found, into: steps.length === 0 ? into : null, cut: found.location.callersOmitted === true });
    id = found.location.caller;
  }
  return steps;
}

/** How a place meets the saved file: a word or two, and what they mean. */
export function bindingText({ snapshot }: CaptureModel, { binding, file }: Location): { text: string; title: string } {
  return binding === "unmapped" ? unbound(snapshot.source.files[position(file)]?.root) : BOUND[binding];
}

const BOUND: Record<Exclude<Location["binding"], "unmapped">, { text: string; title: string }> = {
  exact: { text: "exact expression", title: "The saved file compiles to the code that ran, and this range is one expression, statement or function of it." },
  candidate: { text: "one candidate", title: "Only the line is known. One expression on it can have done this." },
  ambiguous: { text: "several candidates", title: "Several expressions at this place can have done this: which one is not known." },
};

function unbound(root: string | undefined): { text: string; title: string } {
  if (root === "workspace") {
    return {
      text: "not in the saved file",
      title: "The file could not be read, or is not what ran: it may have been edited since it was imported.",
    };
  }
  return root === "generated"
    ? { text: "no saved file", title: "The code was made while the program ran." }
    : { text: "library code", title: "The file is not of the workspace: which expression this is was not looked up." };
}

/** `12:8 to 13:20` as people read it; nothing where no columns are known. */
export function rangeText({ line, column, endLine, endColumn }: Location): string {
  if (column === null) return "";
  const end = endColumn === null ? "" : ` to ${endLine !== null && endLine !== line ? `${endLine}:` : ""}${endColumn}`;
  return `columns ${column}${end}`;
}
