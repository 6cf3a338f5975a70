import { ScalarType, type DescEnum, type DescField, type DescMessage } from "@bufbuild/protobuf";
import { ModelConfigSchema } from "./message.ts";

/** The fields of one message in protobuf's text format, derived from its descriptor. Map entries are messages. */
export interface MessageShape {
  readonly name: string;
  readonly fields: ReadonlyMap<string, FieldShape>;
}

export interface FieldShape {
  readonly name: string;
  readonly repeated: boolean;
  /** True for a map: a repeated field in text format, one object in JSON. */
  readonly isMap: boolean;
  /** Name of the oneof that contains the field; null for most fields. */
  readonly oneof: string | null;
  readonly value: ValueShape;
}

export type ValueShape =
  | { readonly kind: "bool" }
  | { readonly kind: "string" }
  | { readonly kind: "real" }
  | { readonly kind: "integer"; readonly min: bigint; readonly max: bigint }
  | { readonly kind: "enum"; readonly desc: DescEnum }
  | { readonly kind: "message"; readonly shape: () => MessageShape };

const integers: Readonly<Partial<Record<ScalarType, { min: bigint; max: bigint }>>> = {
  [ScalarType.INT32]: { min: -(2n ** 31n), max: 2n ** 31n - 1n },
  [ScalarType.UINT32]: { min: 0n, max: 2n ** 32n - 1n },
  [ScalarType.INT64]: { min: -(2n ** 63n), max: 2n ** 63n - 1n },
  [ScalarType.UINT64]: { min: 0n, max: 2n ** 64n - 1n },
};

/** Describes a message. Nested messages are described when they are first used, and cached. */
function messageShape(desc: DescMessage): MessageShape {
  return { name: desc.name, fields: new Map(desc.fields.map((field) => [field.name, fieldShape(field)])) };
}

function fieldShape(field: DescField): FieldShape {
  const isMap = field.fieldKind === "map";
  const repeated = field.fieldKind === "list" || isMap;
  return { name: field.name, repeated, isMap, oneof: field.oneof?.name ?? null, value: valueShape(field) };
}

function valueShape(field: DescField): ValueShape {
  if (field.fieldKind === "map") return shapedLater(() => entryShape(field));
  if (field.enum) return { kind: "enum", desc: field.enum };
  if (field.message) {
    return messageValue(field.message);
  }
  return scalarShape(field.scalar);
}

function messageValue(desc: DescMessage): ValueShape {
  return shapedLater(() => messageShape(desc));
}

function shapedLater(make: () => MessageShape): ValueShape {
  let created: MessageShape | null = null;
  return { kind: "message", shape: () => (created ??= make()) };
}

function entryShape(field: DescField & { fieldKind: "map" }): MessageShape {
  const of = (name: string, value: ValueShape): [string, FieldShape] => [
    name,
    { name, repeated: false, isMap: false, oneof: null, value },
  ];
  const value: ValueShape = field.message ? messageValue(field.message) : scalarShape(field.scalar!);
  return {
    name: `an entry of '${field.name}'`,
    fields: new Map([of("key", scalarShape(field.mapKey)), of("value", value)]),
  };
}

function scalarShape(scalar: ScalarType): ValueShape {
  if (scalar === ScalarType.BOOL) return { kind: "bool" };
  if (scalar === ScalarType.STRING) return { kind: "string" };
  const range = integers[scalar];
  return range ? { kind: "integer", ...range } : { kind: "real" };
}

/** The description of ModelConfig. */
export const configShape = messageShape(ModelConfigSchema);
