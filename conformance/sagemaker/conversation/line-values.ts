import type { Members } from "./client.ts";

/** A call as a line of JSON. */
export interface LineRequest {
  readonly kind: "call" | "wait";
  readonly service: string;
  readonly name: string;
  readonly input: Members;
}

/** Encodes values as `lines.py` does in JSON: bytes are `{"$bytes": base64}`, times `{"$time": text}`. */
export function encoded(value: unknown): unknown {
  if (value instanceof Uint8Array) return { $bytes: Buffer.from(value).toString("base64") };
  if (value instanceof Date) return { $time: value.toISOString() };
  if (Array.isArray(value)) return value.map(encoded);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, encoded(each)]));
}

export function decoded(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(decoded);
  if (typeof value !== "object" || value === null) return value;
  if ("$bytes" in value) return Buffer.from(String(value.$bytes), "base64");
  if ("$time" in value) return new Date(String(value.$time));
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, decoded(each)]));
}
