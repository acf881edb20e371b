import type { Operation } from "@tensorviz/contracts";
import { lastComponent, visible } from "../format/text";
import { statePath, valueOf, type CaptureModel } from "./capture";
import { pathText, type Path } from "./walk";

/** What a call names the argument at a path: its keyword, its schema's name for the position, or the path itself. */
export function argumentName(model: CaptureModel, operation: Operation, path: Path): string {
  const [list, at, ...rest] = path;
  const below = rest[0] === "value" ? rest.slice(1) : rest;
  const tail = below.filter((step) => step !== "items" && step !== "entries" && step !== "fields" && step !== "value");
  const suffix = tail.length > 0 ? `[${tail.join("][")}]` : "";
  if (list === "kwargs" && typeof at === "number") return visible(operation.kwargs[at]?.name ?? "") + suffix;
  const declared = list === "args" && typeof at === "number" ? model.schemas.get(operation.target)?.names.args[at] : undefined;
  return declared ? visible(declared) + suffix : pathText(path);
}

/** The operands that an operation writes into, for people: a parameter or buffer by its own name. */
export function effectNames(model: CaptureModel, operation: Operation): string[] {
  const names = operation.effects
    .filter(({ relation }) => relation === "operand")
    .map((effect) => {
      const state = valueOf(model, effect.before)?.state;
      const name = argumentName(model, operation, effect.argument);
      return state ? `${name} (${visible(lastComponent(statePath(model, state)))})` : name;
    });
  return [...new Set(names)];
}
