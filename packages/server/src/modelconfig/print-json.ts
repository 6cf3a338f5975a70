import type { DescField, DescMessage, Message } from "@bufbuild/protobuf";
import { reflect, type ReflectMessage } from "@bufbuild/protobuf/reflect";
import { ScalarType } from "@bufbuild/protobuf";
import { ModelConfigSchema } from "./message.ts";
import type { ModelConfig } from "./model-config.ts";

/** 64-bit fields that Triton prints as JSON strings. All others are printed as JSON numbers. */
const keptAsString = new Set([
  "inference.ModelSequenceBatching.InitialState.dims",
  "inference.ModelOptimizationPolicy.Cuda.GraphSpec.Shape.dim",
  "inference.ModelInstanceGroup.SecondaryDevice.device_id",
]);

/**
 * Returns the JSON value of `GET /v2/models/<model>/config`. Fields have the names and order of the proto. Scalars, lists and maps are
 * always present, messages only when set; map keys are sorted. Integers over 2^53 are raw JSON numbers (`JSON.rawJSON`), which
 * `JSON.stringify` prints exactly.
 */
export function printConfigJson(config: ModelConfig): Record<string, unknown> {
  return messageJson(reflect(ModelConfigSchema, config.message));
}

/** Returns the JSON text that Python models receive as `args["model_config"]`. */
export function printConfigJsonText(config: ModelConfig): string {
  return JSON.stringify(printConfigJson(config));
}

function messageJson(message: ReflectMessage): Record<string, unknown> {
  const json: Record<string, unknown> = {};
  const scalarChoices: DescField[] = [];
  for (const field of message.fields) {
    if (field.oneof !== undefined && field.fieldKind !== "message") scalarChoices.push(field);
    else if (field.fieldKind !== "message" || message.isSet(field)) json[field.name] = fieldJson(message, field);
  }
  // Triton's printer appends scalar members of a oneof after all other fields.
  for (const field of scalarChoices) if (message.isSet(field)) json[field.name] = fieldJson(message, field);
  return json;
}

function fieldJson(message: ReflectMessage, field: DescField): unknown {
  switch (field.fieldKind) {
    case "list":
      return Array.from(message.get(field), (item) => itemJson(item, field));
    case "map": {
      const entries = Array.from(message.get(field), ([key, value]) => [String(key), itemJson(value, field)] as const);
      return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)));
    }
    default:
      return itemJson(message.get(field), field);
  }
}

function itemJson(value: unknown, field: DescField): unknown {
  if (field.message) return messageJson(asReflect(value, field.message));
  if (field.enum) return field.enum.value[value as number]?.name ?? value;
  if (typeof value === "bigint") {
    return keptAsString.has(`${field.parent.typeName}.${field.name}`) ? String(value) : integerJson(value);
  }
  if (field.scalar === ScalarType.FLOAT || field.scalar === ScalarType.DOUBLE) {
    return realJson(value as number, field.scalar);
  }
  return value;
}

/** Wraps a message for reflection. Items of lists and maps are wrapped already. */
function asReflect(value: unknown, desc: DescMessage): ReflectMessage {
  return "fields" in (value as object) ? (value as ReflectMessage) : reflect(desc, value as Message);
}

const exactNumbers = JSON as unknown as { rawJSON(text: string): unknown };

function integerJson(value: bigint): unknown {
  return Number.isSafeInteger(Number(value)) ? Number(value) : exactNumbers.rawJSON(String(value));
}

/** Returns a float in its shortest decimal form, as Triton prints it: 0.1, not 0.10000000149011612. */
function realJson(value: number, scalar: ScalarType): number | string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
  if (scalar === ScalarType.DOUBLE) return value;
  for (let digits = 1; digits <= 9; digits += 1) {
    const short = Number(value.toPrecision(digits));
    if (Math.fround(short) === value) return short;
  }
  return value;
}
