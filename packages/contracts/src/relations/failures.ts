/** How failures are told apart, and that what is called violated is violated, by the numbers of the capture itself. */
import type { Argument, Constraint, Measure, Operation, Trait } from "../generated/types";
import { resolve } from "../trees";
import { fault, type Capture, type Fault, type Rule } from "./lookup";

type Kind = Constraint["kind"];
type Of<K extends Kind> = Extract<Constraint, { kind: K }>;
type ArgumentOf<K extends Argument["kind"]> = Extract<Argument, { kind: K }>;

function* diagnosticsMatchTheEnd(capture: Capture): Generator<Fault> {
  const { termination, diagnostics } = capture.snapshot;
  const raised = termination.kind === "raised" ? termination.diagnostic : null;
  for (const [index, { id, operation, disposition }] of diagnostics.entries()) {
    const path = ["diagnostics", index];
    if (operation !== null && capture.at("o", operation).status !== "failed") {
      yield fault([...path, "operation"], "diagnostic", `${operation} did not fail`);
    }
    if (id === raised && disposition !== "propagated") {
      yield fault([...path, "disposition"], "diagnostic", "this exception ended the run");
    }
    if (termination.kind === "returned" && disposition === "propagated") {
      yield fault([...path, "disposition"], "diagnostic", "the run returned");
    }
  }
}

function* causesAreReplaced(capture: Capture): Generator<Fault> {
  const { diagnostics } = capture.snapshot;
  const causes = new Set(diagnostics.map(({ cause }) => cause));
  for (const [index, { id, cause, disposition }] of diagnostics.entries()) {
    const path = ["diagnostics", index];
    if (cause !== null && Number(cause.slice(1)) >= index) {
      yield fault([...path, "cause"], "diagnostic", `${cause} is not earlier`);
    }
    if (disposition === "replaced" && !causes.has(id)) {
      yield fault([...path, "disposition"], "diagnostic", "it is the cause of no other exception");
    }
    if ((disposition === "suppressed" || disposition === "unknown") && causes.has(id)) {
      yield fault([...path, "disposition"], "diagnostic", "another exception was raised in its place");
    }
  }
}

function* stoppedCallsWereLeftByTorch(capture: Capture): Generator<Fault> {
  for (const [index, { diagnostic, status }] of capture.snapshot.invocations.entries()) {
    if (diagnostic === null) continue;
    const left = capture.at("x", diagnostic).disposition === "control_flow";
    if (left !== (status === "stopped")) {
      yield fault(["invocations", index, "status"], "status", "control flow stops a call, a failure fails it");
    }
  }
}

function* constraintsAreViolated(capture: Capture): Generator<Fault> {
  for (const [index, { operation, constraints }] of capture.snapshot.diagnostics.entries()) {
    const path = ["diagnostics", index, "constraints"];
    if (constraints === null || constraints.length === 0) continue;
    if (operation === null) {
      yield fault(path, "constraint", "no operation failed");
      continue;
    }
    const record = capture.at("o", operation);
    for (const [place, constraint] of constraints.entries()) {
      if (!sides(constraint).every((side) => isTrue(capture, record, side))) {
        yield fault([...path, place], "constraint", "is not what the arguments say");
      } else if (!isViolated(constraint)) {
        yield fault([...path, place], "constraint", "is satisfied");
      }
    }
  }
}

function sides(constraint: Constraint): (Measure | Trait)[] {
  return "right" in constraint ? [constraint.left, constraint.right] : [constraint.left];
}

function isTrue(capture: Capture, operation: Operation, side: Measure | Trait): boolean {
  const node = resolve(operation, side.path) as Argument | undefined;
  const kind = node !== undefined && !Array.isArray(node) && "kind" in node ? node.kind : undefined;
  if ("name" in side) {
    return kind === "tensor" && capture.at("v", (node as ArgumentOf<"tensor">).value)[side.of] === side.name;
  }
  if (kind === "tensor") return isTrueOfTensor(side, capture.at("v", (node as ArgumentOf<"tensor">).value).shape);
  if (kind === "list" || kind === "tuple") return isTrueOfList(side, (node as ArgumentOf<"list" | "tuple">).items);
  return kind === "int" && BigInt(side.number) === ofInteger(side.of, BigInt((node as ArgumentOf<"int">).value));
}

function ofInteger(of: Measure["of"], number: bigint): bigint | null {
  if (of === "value") return number;
  return of === "squared" ? number * number : null;
}

function isTrueOfTensor({ of, dim, number }: Measure, shape: readonly (number | string)[]): boolean {
  if (of === "rank") return dim === null && number === shape.length;
  if (of === "elements") {
    const sizes = shape.filter((size) => typeof size === "number");
    return dim === null && sizes.length === shape.length && BigInt(number) === product(sizes.map(BigInt));
  }
  const size = dim === null ? undefined : shape[dim];
  if (typeof size !== "number") return false;
  return of === "size" ? number === size : of === "padded" || of === "extent" || of === "grouped";
}

function isTrueOfList({ of, dim, number }: Measure, items: readonly Argument[]): boolean {
  if (of === "length") return number === items.length;
  const numbers = items.flatMap((item) => (item.kind === "int" ? [BigInt(item.value)] : []));
  if (numbers.length !== items.length) return false;
  if (of === "extent") return dim !== null && dim < numbers.length;
  return BigInt(number) === ofIntegers(of, numbers);
}

function ofIntegers(of: Measure["of"], numbers: readonly bigint[]): bigint | null {
  if (of === "sum") return numbers.reduce((one, other) => one + other, 0n);
  if (of === "product") return product(numbers);
  return of === "known" && numbers.filter((size) => size === -1n).length === 1 ? -product(numbers) : null;
}

const product = (numbers: readonly bigint[]): bigint => numbers.reduce((one, other) => one * other, 1n);

/** Whether a dtype is of another class. Nothing is said of foreign names. */
function isOtherClass({ left: { name }, wanted }: Of<"dtype">): boolean {
  const integral = /^torch\.(u?int\d+$|bool$)/.test(name);
  if (wanted === "floating") return integral;
  if (/^torch\.(float|bfloat|complex)/.test(name)) return true;
  return integral && wanted === "index" && name !== "torch.int32" && name !== "torch.int64";
}

function cannotStretch({ left, right, stretches }: Of<"broadcast">): boolean {
  return left.number !== 1 && left.number !== right.number && (stretches === "left" || right.number !== 1);
}

function isOutside({ left: { number }, minimum, maximum }: Of<"between">): boolean {
  return (minimum !== null && number < minimum) || (maximum !== null && number > maximum);
}

function isViolated(constraint: Constraint): boolean {
  switch (constraint.kind) {
    case "equal":
      return constraint.left.number !== constraint.right.number;
    case "at_most":
      return constraint.left.number > constraint.right.number;
    case "divisible":
      return constraint.right.number !== 0 && constraint.left.number % constraint.right.number !== 0;
    case "broadcast":
      return cannotStretch(constraint);
    case "between":
      return isOutside(constraint);
    case "same":
      return constraint.left.of === constraint.right.of && constraint.left.name !== constraint.right.name;
    case "dtype":
      return isOtherClass(constraint);
  }
}

export const RULES: readonly Rule[] = [
  diagnosticsMatchTheEnd,
  causesAreReplaced,
  stoppedCallsWereLeftByTorch,
  constraintsAreViolated,
];
