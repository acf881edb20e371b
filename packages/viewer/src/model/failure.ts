import type { Constraint, Diagnostic, Measure, Operation, Trait } from "@tensorviz/contracts";
import { visible } from "../format/text";
import { position, type CaptureModel } from "./capture";
import { argumentName } from "./effects";

/** What operands must have in common, by what it means to the operator. */
const EQUAL: Readonly<Record<string, string>> = {
  inner: "inner sizes",
  batch: "batch sizes",
  channels: "channels",
  features: "features",
  classes: "classes",
  rank: "numbers of dimensions",
  elements: "numbers of elements",
  split: "the parts and the whole",
  square: "the sizes of a square matrix",
};

const CLASSES: Readonly<Record<string, string>> = {
  floating: "a floating or complex dtype",
  integral: "an integral dtype",
  index: "int32 or int64",
};

/** Each demand of a failed operation that its operands provably violate. The terminal says the same words. */
export function demands(model: CaptureModel, operation: Operation): string[] {
  const found = operation.diagnostic === null ? undefined : model.snapshot.diagnostics[position(operation.diagnostic)];
  return (found?.constraints ?? []).map((constraint) => sentence(model, operation, constraint));
}

function sentence(model: CaptureModel, operation: Operation, it: Constraint): string {
  const of = (measure: Measure) => measured(model, operation, measure);
  const is = (measure: Measure) => `${of(measure)} is ${measure.number}`;
  const trait = ({ path, name }: Trait) => `${argumentName(model, operation, path)} is ${visible(name.replace(/^torch\./, ""))}`;
  switch (it.kind) {
    case "equal":
      return `${EQUAL[it.what] ?? "sizes"} must be equal: ${is(it.left)}, ${is(it.right)}`;
    case "at_most":
      return `${is(it.left)}, which exceeds ${of(it.right)}: ${it.right.number}`;
    case "divisible":
      return `${is(it.left)}, which is no multiple of ${of(it.right)}: ${it.right.number}`;
    case "broadcast":
      return it.stretches === "either"
        ? `sizes do not broadcast: ${is(it.left)}, ${is(it.right)}`
        : `${is(it.left)}, which does not stretch to ${of(it.right)}: ${it.right.number}`;
    case "between":
      return `${is(it.left)}, where ${range(it.minimum, it.maximum)} is wanted`;
    case "same":
      return `${it.left.of}s must be the same: ${trait(it.left)}, ${trait(it.right)}`;
    case "dtype":
      return `${trait(it.left)}, where ${CLASSES[it.wanted]} is wanted`;
  }
}

function measured(model: CaptureModel, operation: Operation, { path, of, dim }: Measure): string {
  const name = argumentName(model, operation, path);
  const at = `${name}.shape[${dim}]`;
  return {
    size: at,
    rank: `${name}.ndim`,
    elements: `${name}.numel()`,
    value: name,
    squared: `${name} squared`,
    sum: `sum(${name})`,
    product: `prod(${name})`,
    known: `prod(${name}) without its -1`,
    length: `len(${name})`,
    padded: `${at} with padding`,
    extent: `the kernel's extent along ${name}[${dim}]`,
    grouped: `${at} of all groups`,
  }[of];
}

function range(low: number | null, high: number | null): string {
  if (low === null || high === null) return low === null ? `at most ${high}` : `at least ${low}`;
  if (low === high) return `${low}`;
  return low + 1 === high ? `${low} or ${high}` : `${low} to ${high}`;
}

/** The exception in whose place this one was raised, and so on back to the first; without the one asked for. */
export function causes(model: CaptureModel, { cause }: Diagnostic): Diagnostic[] {
  const found = cause === null ? undefined : model.snapshot.diagnostics[position(cause)];
  return found ? [found, ...causes(model, found)] : [];
}
