/** What the address says: which capture or attempt to show, and what is selected in it. */
export interface Link {
  capture: string | null;
  attempt: string | null;
  call: number | null;
  op: number | null;
  /** Whether the operations of nested calls are listed too. */
  deep: boolean;
}

const TOKEN = "tensorviz.token";

export function parseLink(fragment: string): Link {
  const fields = new URLSearchParams(fragment.replace(/^#/, ""));
  return {
    capture: named(fields.get("capture"), /^cap-[0-9a-f]{16}$/),
    attempt: named(fields.get("attempt"), /^att-[0-9a-f]{16}$/),
    call: numbered(fields.get("call"), "c"),
    op: numbered(fields.get("op"), "o"),
    deep: fields.get("nested") !== "0",
  };
}

export function toFragment({ capture, call, op, deep }: Omit<Link, "attempt">): string {
  const fields = new URLSearchParams();
  if (capture !== null) fields.set("capture", capture);
  if (call !== null && call >= 0) fields.set("call", `c${call}`);
  if (op !== null) fields.set("op", `o${op}`);
  if (!deep) fields.set("nested", "0");
  const text = fields.toString();
  return text && `#${text}`;
}

function named(text: string | null, form: RegExp): string | null {
  return text !== null && form.test(text) ? text : null;
}

function numbered(text: string | null, letter: string): number | null {
  return text !== null && /^[a-z](0|[1-9]\d{0,9})$/.test(text) && text.startsWith(letter) ? Number(text.slice(1)) : null;
}

/** The token comes in the fragment once. It is kept for this tab alone, and leaves the address and the history. */
export function takeToken(): string | null {
  const fields = new URLSearchParams(location.hash.replace(/^#/, ""));
  const fresh = fields.get("token");
  if (fresh === null) return sessionStorage.getItem(TOKEN);
  sessionStorage.setItem(TOKEN, fresh);
  fields.delete("token");
  const rest = fields.toString();
  history.replaceState(null, "", `${location.pathname}${location.search}${rest && `#${rest}`}`);
  return fresh;
}
