import type { ExampleFeatures } from "./feature-table.ts";

/** Reads examples of SageMaker's common JSON: `{"instances": [...]}`. Throws RangeError, or SyntaxError for invalid JSON. */
export function jsonExamples(text: string): ExampleFeatures[] {
  const document: unknown = JSON.parse(text);
  const instances = member(document, "instances");
  if (!Array.isArray(instances)) throw new RangeError("there is no list `instances`");
  if (instances.length === 0) throw new RangeError("there are no instances");
  return instances.map(exampleOf);
}

/** Reads one instance per line. */
export function jsonLinesExamples(text: string): ExampleFeatures[] {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  if (lines.length === 0) throw new RangeError("there are no instances");
  return lines.map((line) => exampleOf(JSON.parse(line)));
}

/**
 * Reads an instance: `{"features": [...]}`, or `{"data": {"features": {"values": [...], "keys": [...], "shape": [n]}}}`. The object
 * `data` may be omitted; an instance without `keys` is dense.
 */
function exampleOf(instance: unknown): ExampleFeatures {
  const data = member(instance, "data") ?? instance;
  const features = member(data, "features") ?? data;
  if (Array.isArray(features)) return { kind: "dense", values: numbersOf(features) };
  const values = numbersOf(member(features, "values"));
  const keys = member(features, "keys");
  if (keys === undefined || (Array.isArray(keys) && keys.length === 0)) return { kind: "dense", values };
  const shape = member(features, "shape");
  const columnCount = shape === undefined ? 0 : (numbersOf(shape).at(-1) ?? 0);
  return { kind: "sparse", values, keys: numbersOf(keys), columnCount };
}

function member(value: unknown, name: string): unknown {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return undefined;
  return Object.hasOwn(value, name) ? (value as Readonly<Record<string, unknown>>)[name] : undefined;
}

function numbersOf(value: unknown): number[] {
  if (!Array.isArray(value)) throw new RangeError("an instance has no list of features");
  for (const each of value) if (typeof each !== "number") throw new RangeError("a feature is not a number");
  return value as number[];
}
