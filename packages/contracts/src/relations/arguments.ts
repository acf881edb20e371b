/** What every argument and result tree must satisfy. */
import { fault, MAX_NESTING, PLACES, type Capture, type Fault, type Rule } from "./lookup";

function* namesAreUsedOnce(capture: Capture): Generator<Fault> {
  for (const letter of ["c", "o"] as const) {
    for (const [index, record] of capture.lists[letter].entries()) {
      const names = new Set<string>();
      for (const [place, { name }] of record.kwargs.entries()) {
        if (names.has(name)) {
          yield fault([...PLACES[letter], index, "kwargs", place, "name"], "argument", "is given twice");
        }
        names.add(name);
      }
    }
  }
}

function* namedTuplesNameEveryItem(capture: Capture): Generator<Fault> {
  for (const [path, node] of capture.namedTuples) {
    if (node.fields.length !== node.items.length) {
      yield fault([...path, "fields"], "argument", "one name belongs to each item");
    }
  }
}

function* treesStayWithinBudgets(capture: Capture): Generator<Fault> {
  const { limits } = capture;
  for (const { path, items, depth, levels } of capture.containers) {
    if (items > limits.argumentItems) {
      yield fault(path, "limit", `${items} items; the limit is ${limits.argumentItems}`);
    }
    if (depth > limits.argumentDepth) {
      yield fault(path, "limit", `${depth} levels of containers; the limit is ${limits.argumentDepth}`);
    }
    if (levels >= MAX_NESTING) {
      yield fault(path, "nesting", `${levels} levels of JSON; there must be fewer than ${MAX_NESTING}`);
    }
  }
}

export const RULES: readonly Rule[] = [namesAreUsedOnce, namedTuplesNameEveryItem, treesStayWithinBudgets];
