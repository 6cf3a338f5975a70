import { fromJson, type JsonValue } from "@bufbuild/protobuf";
import { ModelConfigSchema, type ModelConfigMessage } from "./message.ts";
import { InferenceError } from "@galatea/base";
import { throwInvalidConfig } from "./invalid-config.ts";
import { nearestName } from "./spelling.ts";
import { configShape, type MessageShape, type ValueShape } from "./text-shape.ts";
import { textLimits } from "./text-walk.ts";

/**
 * Parses the load parameter `config`: a ModelConfig as JSON. Names and types must be exact; enum names may have any case. Throws
 * INVALID_ARG `Invalid config override: <where and why>`.
 */
export function parseConfigOverride(json: string): ModelConfigMessage {
  try {
    if (json.length > textLimits.bytesMax) throw new RangeError(`longer than ${textLimits.bytesMax} characters`);
    return messageFromJson(JSON.parse(json));
  } catch (error) {
    const text = `Invalid config override: ${error instanceof Error ? error.message : String(error)}`;
    throw new InferenceError("INVALID_ARG", text, { cause: error });
  }
}

function messageFromJson(value: unknown): ModelConfigMessage {
  return fromJson(ModelConfigSchema, canonicalMessage(value, configShape, "") as JsonValue);
}

/** Converts a parsed JSON value to a ModelConfig; `prefix` begins the error message. */
export function configFromJson(value: unknown, prefix: string): ModelConfigMessage {
  try {
    return messageFromJson(value);
  } catch (error) {
    return throwInvalidConfig(`${prefix}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

const camelCase = (name: string) => name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());

/** Checks the field names and converts enum names to their canonical case. The protobuf library checks the values afterwards. */
function canonicalMessage(value: unknown, shape: MessageShape, path: string, depth = 0): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new TypeError(
      `expected an object for ${path === "" ? shape.name : `'${path}'`}, found ${JSON.stringify(value)}`,
    );
  }
  if (depth > textLimits.depthMax) throw new TypeError(`objects nest deeper than ${textLimits.depthMax}`);
  const byName = new Map(
    [...shape.fields.values()].flatMap(
      (field) =>
        [
          [field.name, field],
          [camelCase(field.name), field],
        ] as const,
    ),
  );
  const members = Object.entries(value).map(([name, member]) => {
    const field = byName.get(name);
    if (field === undefined) {
      const nearest = nearestName(name, [...shape.fields.keys()]);
      const hint = nearest === null ? "" : `; did you mean '${nearest}'?`;
      throw new TypeError(`no field '${name}' in ${path === "" ? shape.name : `'${path}'`}${hint}`);
    }
    const at = path === "" ? name : `${path}.${name}`;
    if (!field.repeated || member === null) return [name, canonicalValue(member, field.value, at, depth)] as const;
    if (field.isMap) return [name, canonicalMap(member, field.value, at, depth)] as const;
    // Triton accepts a single value for a repeated field as a list with that value.
    if (!Array.isArray(member)) return [name, [canonicalValue(member, field.value, at, depth)]] as const;
    return [name, member.map((item, i) => canonicalValue(item, field.value, `${at}[${i}]`, depth))] as const;
  });
  return Object.fromEntries(members);
}

/** Converts a map, whose entries are the members of one JSON object. */
function canonicalMap(value: unknown, entry: ValueShape, path: string, depth: number): unknown {
  const shape = entry.kind === "message" ? entry.shape().fields.get("value") : undefined;
  if (shape === undefined || typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, canonicalValue(item, shape.value, `${path}.${key}`, depth)]),
  );
}

function canonicalValue(value: unknown, shape: ValueShape, path: string, depth: number): unknown {
  if (value === null) return value;
  if (shape.kind === "message") return canonicalMessage(value, shape.shape(), path, depth + 1);
  if (shape.kind !== "enum" || typeof value !== "string") return value;
  const known = shape.desc.values.find((row) => row.name.toLowerCase() === value.toLowerCase());
  if (known === undefined) {
    const nearest = nearestName(
      value,
      shape.desc.values.map((row) => row.name),
    );
    throw new TypeError(
      `unknown ${shape.desc.name} "${value}" for '${path}'${nearest === null ? "" : `; did you mean ${nearest}?`}`,
    );
  }
  return known.name;
}
