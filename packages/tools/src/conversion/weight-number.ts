import type { WeightType } from "./constant-bytes.ts";
import type { GraphBuilder } from "./graph-builder.ts";

/** Adds a scalar constant with the element type of the weights. Returns its name. */
export function weightNumber(graph: GraphBuilder, type: WeightType, value: number): string {
  const numbers = type === "FLOAT16" ? Float16Array.of(value) : Float32Array.of(value);
  return graph.constant(`number/${value}`, type, [], new Uint8Array(numbers.buffer));
}
