/** Line icons on a 16-pixel grid. They repeat what the text beside them says, so they are hidden from screen readers. */
const PATHS = {
  chevron: "M6 4l4 4-4 4",
  down: "M4 6l4 4 4-4",
  close: "M4 4l8 8M12 4l-8 8",
  fail: "M8 1.5a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13ZM5.5 5.5l5 5M10.5 5.5l-5 5",
  warn: "M8 2 1.5 13.5h13L8 2ZM8 6.5v3.2M8 11.6v.2",
  ok: "M8 1.5a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13ZM5 8.2l2.1 2.1L11 6",
  clock: "M8 1.5a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13ZM8 4.5V8l2.3 1.6",
  pen: "M3 13l.7-2.9L10.9 3a1.2 1.2 0 0 1 1.7 0l.4.4a1.2 1.2 0 0 1 0 1.7L5.9 12.3 3 13Z",
  stop: "M8 1.5a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13ZM5.8 5.8h4.4v4.4H5.8z",
  copy: "M5.5 5.5h7v8h-7zM10.5 5.5v-3h-7v8h2",
  search: "M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9ZM10.3 10.3 14 14",
  up: "M4 10l4-4 4 4",
  sun: "M8 5a3 3 0 1 0 0 6 3 3 0 0 0 0-6ZM8 1v1.5M8 13.5V15M1 8h1.5M13.5 8H15M3 3l1.1 1.1M11.9 11.9 13 13M13 3l-1.1 1.1M4.1 11.9 3 13",
  moon: "M13.5 9.6A6 6 0 0 1 6.4 2.5a6 6 0 1 0 7.1 7.1Z",
  auto: "M2 3.5h12v7.5H2zM6 13.5h4M8 11v2.5",
  help: "M8 1.5a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13ZM6.2 6.2A1.9 1.9 0 1 1 8 8.6v.8M8 11.4v.2",
  again: "M13 8a5 5 0 1 1-1.6-3.7M13 2v3h-3",
  plus: "M8 3v10M3 8h10",
  arrow: "M3 8h10M9.5 4.5 13 8l-3.5 3.5",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, class: extra = "" }: { name: IconName; class?: string }) {
  return (
    <svg class={`icon ${extra}`} viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} fill="none" stroke="currentColor" stroke-width="1.4" stroke-linecap="round" stroke-linejoin="round" />
    </svg>
  );
}
