import { ScalarType, type DescEnum, type DescField, type DescMessage } from "@bufbuild/protobuf";

/** What the text format may say about one message: the protobuf descriptor with map entries seen as the messages they are. */
export interface MessageShape {
  readonly name: string;
  readonly fields: ReadonlyMap<string, FieldShape>;
}

export interface FieldShape {
  readonly name: string;
  readonly repeated: boolean;
  /** The oneof this field is a member of, null for most. */
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

export function messageShape(desc: DescMessage): MessageShape {
  return { name: desc.name, fields: new Map(desc.fields.map((field) => [field.name, fieldShape(field)])) };
}

function fieldShape(field: DescField): FieldShape {
  const repeated = field.fieldKind === "list" || field.fieldKind === "map";
  return { name: field.name, repeated, oneof: field.oneof?.name ?? null, value: valueShape(field) };
}

function valueShape(field: DescField): ValueShape {
  if (field.fieldKind === "map") return { kind: "message", shape: () => entryShape(field) };
  if (field.enum) return { kind: "enum", desc: field.enum };
  if (field.message) {
    const desc = field.message;
    return { kind: "message", shape: () => messageShape(desc) };
  }
  return scalarShape(field.scalar);
}

function entryShape(field: DescField & { fieldKind: "map" }): MessageShape {
  const of = (name: string, value: ValueShape): [string, FieldShape] => [
    name,
    { name, repeated: false, oneof: null, value },
  ];
  const desc = field.message;
  const value: ValueShape = desc ? { kind: "message", shape: () => messageShape(desc) } : scalarShape(field.scalar!);
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
