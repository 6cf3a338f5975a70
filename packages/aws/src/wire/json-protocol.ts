import { AwsError, unreachable } from "@galatea/base";
import type { MemberModel, ScalarShape, ServiceModel, StructureShape } from "../spec/index.ts";
import { formatTimestamp, parseTimestamp } from "./timestamp.ts";
import { shapeOf } from "./validate.ts";

/** Maximum depth of recursion. It exceeds the depth of every model. */
const depthMax = 64;

/** Parses a JSON body as `shapeName`. Unknown members are ignored, null means absent, and a wrong type is an error. */
export function parseJsonInput(
  model: ServiceModel,
  shapeName: string | undefined,
  body: Buffer,
): Record<string, unknown> {
  let document: unknown = {};
  if (body.byteLength > 0) {
    try {
      document = JSON.parse(body.toString("utf8"));
    } catch (cause) {
      throw new AwsError("SerializationException", `The request body is not JSON: ${(cause as Error).message}`, {
        cause,
      });
    }
  }
  if (typeof document !== "object" || document === null || Array.isArray(document))
    throw wrongType(document, "a structure");
  if (shapeName === undefined) return {};
  return fromJson(model, { shape: shapeName }, document, 0) as Record<string, unknown>;
}

function fromJson(model: ServiceModel, member: MemberModel, value: unknown, depth: number): unknown {
  const shape = shapeOf(model, member.shape);
  if (depth > depthMax)
    throw new AwsError("SerializationException", `The request is nested more than ${depthMax} deep`);
  switch (shape.type) {
    case "structure":
      return structureFromJson(model, shape, asObject(value), depth);
    case "list":
      if (!Array.isArray(value)) throw wrongType(value, "a list");
      return value.filter((item) => item !== null).map((item) => fromJson(model, shape.member, item, depth + 1));
    case "map": {
      const map: Record<string, unknown> = Object.create(null) as Record<string, unknown>;
      for (const [key, item] of Object.entries(asObject(value))) {
        if (item !== null) map[key] = fromJson(model, shape.value, item, depth + 1);
      }
      return map;
    }
    default:
      return scalarFromJson(shape, member, value);
  }
}

function structureFromJson(
  model: ServiceModel,
  shape: StructureShape,
  value: Record<string, unknown>,
  depth: number,
): Record<string, unknown> {
  const structure: Record<string, unknown> = {};
  for (const [name, inner] of Object.entries(shape.members)) {
    const item = Object.hasOwn(value, name) ? value[name] : undefined;
    if (item !== undefined && item !== null) structure[name] = fromJson(model, inner, item, depth + 1);
  }
  return structure;
}

function scalarFromJson(shape: ScalarShape, member: MemberModel, value: unknown): unknown {
  switch (shape.type) {
    case "string":
      if (typeof value !== "string") throw wrongType(value, "a String");
      return value;
    case "boolean":
      if (typeof value !== "boolean") throw wrongType(value, "a Boolean");
      return value;
    case "integer":
    case "long": {
      if (typeof value !== "number" || !Number.isInteger(value)) throw wrongType(value, "an Integer");
      if (!Number.isSafeInteger(value)) throw wrongType(value, "an exact number");
      return value;
    }
    case "float":
    case "double":
      return doubleFromJson(value);
    case "timestamp":
      return parseTimestamp(value, member.timestampFormat ?? shape.timestampFormat);
    case "blob":
      if (typeof value !== "string") throw wrongType(value, "a Blob");
      return Buffer.from(value, "base64");
    default:
      return unreachable(shape);
  }
}

function doubleFromJson(value: unknown): number {
  if (typeof value === "number") return value;
  if (value === "NaN") return Number.NaN;
  if (value === "Infinity") return Number.POSITIVE_INFINITY;
  if (value === "-Infinity") return Number.NEGATIVE_INFINITY;
  throw wrongType(value, "a Double");
}

function asObject(value: unknown): Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw wrongType(value, "a structure");
  return value as Record<string, unknown>;
}

/**
 * Returns the error of AWS services for a value of the wrong type. Its text names the value's JSON token and the
 * expected type.
 */
function wrongType(value: unknown, desired: string): AwsError {
  return new AwsError("SerializationException", `${tokenOf(value)} can not be converted to ${desired}`);
}

function tokenOf(value: unknown): string {
  if (typeof value === "string") return "STRING_VALUE";
  if (typeof value === "number") return Number.isInteger(value) ? "NUMBER_VALUE" : "DECIMAL_VALUE";
  if (typeof value === "boolean") return value ? "TRUE_VALUE" : "FALSE_VALUE";
  if (value === null) return "NULL_VALUE";
  return Array.isArray(value) ? "START_ARRAY" : "START_OBJECT";
}

/**
 * Converts an output to JSON. It contains only members of the model, and none that are undefined or null. Dates become
 * epoch seconds, blobs become base64.
 */
export function toJson(model: ServiceModel, member: MemberModel, value: unknown): unknown {
  const shape = shapeOf(model, member.shape);
  switch (shape.type) {
    case "structure": {
      const document: Record<string, unknown> = {};
      for (const [name, inner] of Object.entries(shape.members)) {
        const item = (value as Record<string, unknown>)[name];
        if (item !== undefined && item !== null) document[name] = toJson(model, inner, item);
      }
      return document;
    }
    case "list":
      return (value as unknown[]).map((item) => toJson(model, shape.member, item));
    case "map":
      return Object.fromEntries(
        Object.entries(value as Record<string, unknown>).map(([key, item]) => [key, toJson(model, shape.value, item)]),
      );
    case "timestamp":
      return formatTimestamp(value as Date, member.timestampFormat ?? shape.timestampFormat ?? "unixTimestamp");
    case "blob":
      return Buffer.from(value as Uint8Array).toString("base64");
    case "float":
    case "double":
      return Number.isFinite(value) ? value : String(value);
    case "string":
    case "boolean":
    case "integer":
    case "long":
      return value;
    default:
      return unreachable(shape);
  }
}
