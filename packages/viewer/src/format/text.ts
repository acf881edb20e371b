/**
 * Strings of a capture are written by the program that ran: they may hold anything. What would be invisible, or would
 * change how the text around it reads, is shown as an escape.
 */
const UNSEEN =
  // eslint-disable-next-line no-control-regex
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

const SHORT: ReadonlyMap<string, string> = new Map([
  ["\n", "\\n"],
  ["\r", "\\r"],
  ["\t", "\\t"],
]);

export function visible(text: string): string {
  return text.replace(UNSEEN, (unit) => SHORT.get(unit) ?? `\\u{${unit.charCodeAt(0).toString(16).padStart(4, "0")}}`);
}

/** The text of a log: its line breaks and tabs are layout, everything else unseen is escaped. */
export function visibleLines(text: string): string {
  return text
    .replace(/\r\n?/g, "\n")
    .split("\n")
    .map((line) => line.split("\t").map(visible).join("\t"))
    .join("\n");
}

/** At most `limit` code points, with the middle left out. */
export function shorten(text: string, limit: number): string {
  if (text.length <= limit) return text;
  const points = [...text];
  if (points.length <= limit) return text;
  const head = Math.ceil((limit - 1) * 0.6);
  return `${points.slice(0, head).join("")}…${points.slice(points.length - (limit - 1 - head)).join("")}`;
}

export function lastComponent(dotted: string): string {
  return dotted.slice(dotted.lastIndexOf(".") + 1);
}

export function fileName(path: string): string {
  return path.slice(Math.max(path.lastIndexOf("/"), path.lastIndexOf("\\")) + 1);
}
