import { useSignal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import type { RefObject } from "preact";

const MARGIN = 12;

export interface Window {
  ref: RefObject<HTMLDivElement>;
  from: number;
  to: number;
  /** How many whole rows fit, for Page Up and Page Down. */
  page: number;
  onScroll: () => void;
}

/**
 * The rows in sight of a scroller whose rows are all equally high. `shown` is kept in sight when it changes.
 * Another `subject` begins at the top.
 */
export function useWindow(rows: number, height: number, shown: number, subject: string, head = 0): Window {
  const ref = useRef<HTMLDivElement>(null);
  const top = useSignal(0);
  const room = useSignal(800);
  const before = useRef(subject);
  useLayoutEffect(() => {
    const element = ref.current;
    if (!element) return;
    const measure = () => (room.value = element.clientHeight - head);
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    measure();
    return () => observer.disconnect();
  }, [head, room]);
  useLayoutEffect(() => {
    const element = ref.current;
    if (!element) return;
    const from = before.current === subject ? element.scrollTop : 0;
    before.current = subject;
    const next = shown < 0 ? from : scrolledTo(shown * height, height, from, element.clientHeight - head);
    if (next === element.scrollTop) return;
    element.scrollTop = next;
    top.value = element.scrollTop;
  }, [shown, rows, height, head, subject, top]);
  const from = Math.max(0, Math.min(Math.floor(top.value / height) - MARGIN, rows - 1));
  return {
    ref,
    from: Math.max(0, from),
    to: Math.min(rows, Math.ceil((top.value + room.value) / height) + MARGIN),
    page: Math.max(1, Math.floor(room.value / height) - 1),
    onScroll: () => {
      top.value = ref.current?.scrollTop ?? 0;
    },
  };
}

/** A row just outside comes in at the edge; one that is far away comes to the upper third. */
export function scrolledTo(start: number, height: number, top: number, room: number): number {
  if (start >= top && start + height <= top + room) return top;
  if (start < top && top - start <= 2 * height) return start;
  if (start + height > top + room && start + height - top - room <= 2 * height) return start + height - room;
  return Math.max(0, start - room / 3);
}
