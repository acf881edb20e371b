/** The argument names that an operator's schema declares, so that a position can be called by its name. */
export interface SchemaNames {
  args: string[];
  returns: string[];
}

const NONE: SchemaNames = { args: [], returns: [] };

/** Reads `aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor`; nothing when it reads otherwise. */
export function schemaNames(schema: string | null): SchemaNames {
  const open = schema?.indexOf("(") ?? -1;
  if (schema === null || open < 0) return NONE;
  const close = closing(schema, open);
  const arrow = schema.indexOf("->", close);
  if (close < 0 || arrow < 0) return NONE;
  return { args: names(schema.slice(open + 1, close)), returns: names(unwrapped(schema.slice(arrow + 2).trim())) };
}

function names(list: string): string[] {
  return topLevel(list)
    .filter((part) => part !== "*")
    .map((part) => /(?:^|\s)([A-Za-z_]\w*)(?:=.*)?$/s.exec(part)?.[1] ?? "");
}

/** A return type without a name, such as `Tensor`, is one word; a named one has two. */
function unwrapped(returns: string): string {
  const inner = returns.startsWith("(") && returns.endsWith(")") ? returns.slice(1, -1) : returns;
  return topLevel(inner)
    .map((part) => (/\s[A-Za-z_]\w*$/.test(part) ? part : ""))
    .join(",");
}

function topLevel(list: string): string[] {
  const parts: string[] = [];
  let depth = 0;
  let start = 0;
  for (let i = 0; i <= list.length; i += 1) {
    const unit = list[i];
    if (unit === "(" || unit === "[") depth += 1;
    else if (unit === ")" || unit === "]") depth -= 1;
    else if ((unit === "," && depth === 0) || unit === undefined) {
      parts.push(list.slice(start, i).trim());
      start = i + 1;
    }
  }
  return parts.length === 1 && parts[0] === "" ? [] : parts;
}

function closing(text: string, open: number): number {
  let depth = 0;
  for (let i = open; i < text.length; i += 1) {
    if (text[i] === "(") depth += 1;
    if (text[i] === ")") {
      depth -= 1;
      if (depth === 0) return i;
    }
  }
  return -1;
}
