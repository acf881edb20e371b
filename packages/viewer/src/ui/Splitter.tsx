import type { JSX } from "preact";
import { recall, remember } from "../state/memory";

type Pane = "tree" | "inspector";

const BOUNDS: Record<Pane, readonly [number, number]> = { tree: [180, 640], inspector: [260, 760] };
const STEP = 24;

export function applyWidths(): void {
  for (const pane of ["tree", "inspector"] as const) {
    const stored = Number(recall(`width.${pane}`));
    if (stored > 0) setWidth(pane, stored);
  }
}

function setWidth(pane: Pane, width: number): void {
  const [least, most] = BOUNDS[pane];
  const bounded = Math.round(Math.min(most, Math.max(least, width)));
  document.documentElement.style.setProperty(`--${pane}-width`, `${bounded}px`);
  remember(`width.${pane}`, String(bounded));
}

/** A bar between two panes: drag it, or move it with the arrow keys. A double click gives the first width back. */
export function Splitter({ pane, label }: { pane: Pane; label: string }) {
  const current = () => document.querySelector(pane === "tree" ? ".tree-pane" : ".inspector")?.clientWidth ?? 300;
  const grow = pane === "tree" ? 1 : -1;
  const onPointerDown = (event: JSX.TargetedPointerEvent<HTMLElement>) => {
    const bar = event.currentTarget;
    const start = event.clientX;
    const width = current();
    const move = (next: PointerEvent) => setWidth(pane, width + (next.clientX - start) * grow);
    bar.setPointerCapture(event.pointerId);
    bar.addEventListener("pointermove", move);
    bar.addEventListener("lostpointercapture", () => bar.removeEventListener("pointermove", move), { once: true });
  };
  const onKeyDown = (event: JSX.TargetedKeyboardEvent<HTMLElement>) => {
    const step = event.key === "ArrowRight" ? STEP : event.key === "ArrowLeft" ? -STEP : 0;
    if (step === 0) return;
    event.preventDefault();
    setWidth(pane, current() + step * grow);
  };
  const reset = () => {
    document.documentElement.style.removeProperty(`--${pane}-width`);
    remember(`width.${pane}`, "");
  };
  return (
    <div
      class="splitter"
      role="separator"
      aria-orientation="vertical"
      aria-label={label}
      tabIndex={0}
      onPointerDown={onPointerDown}
      onKeyDown={onKeyDown}
      onDblClick={reset}
    />
  );
}
