/** The contract in TypeScript: types generated from the Python models, and the checks that a document must pass. */
export type * from "./generated/types";
export { check, type Fault } from "./relations/index";
export { resolve, walk, type Path, type Step } from "./trees";
export { checkStructure, ContractError, MAX_BYTES, parseCapture, validateCapture } from "./validate";
