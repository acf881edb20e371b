/** The contract in TypeScript: types generated from the Python models, and the checks that a document must pass. */
export type * from "./generated/types";
