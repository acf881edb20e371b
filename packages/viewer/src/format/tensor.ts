import type { Value } from "@tensorviz/contracts";
import { visible } from "./text";

const DTYPES: ReadonlyMap<string, string> = new Map([
  ["float64", "f64"],
  ["float32", "f32"],
  ["float16", "f16"],
  ["bfloat16", "bf16"],
  ["complex128", "c128"],
  ["complex64", "c64"],
  ["complex32", "c32"],
  ["int64", "i64"],
  ["int32", "i32"],
  ["int16", "i16"],
  ["int8", "i8"],
  ["uint64", "u64"],
  ["uint32", "u32"],
  ["uint16", "u16"],
  ["uint8", "u8"],
  ["bool", "bool"],
]);

export function shortDtype(dtype: string): string {
  const name = dtype.replace(/^torch\./, "");
  return visible(DTYPES.get(name) ?? name.replace(/^float8_/, "f8_"));
}

export function dimensions(sizes: readonly (number | string)[]): string {
  return `[${sizes.map((size) => visible(String(size))).join(", ")}]`;
}

/** `f32[1,6,64]`; a scalar is `f32[]`. */
export function tensorText(value: Pick<Value, "dtype" | "shape">): string {
  return `${shortDtype(value.dtype)}[${value.shape.map((size) => visible(String(size))).join(",")}]`;
}
