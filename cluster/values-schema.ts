/** The part of JSON Schema that the charts' schemas use for default values. */
export interface Schema {
  readonly type: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: boolean;
  readonly enum?: readonly unknown[];
  readonly pattern?: string;
}

const typeOf = (value: unknown) =>
  Array.isArray(value) ? "array" : Number.isInteger(value) ? "integer" : value === null ? "null" : typeof value;

/** Returns the differences between default values and a schema: missing names, other types, and values that the schema rejects. */
export function schemaDifferences(path: string, value: unknown, schema: Schema | undefined): readonly string[] {
  if (schema === undefined) return [`${path} is not in the schema`];
  if (typeOf(value) !== schema.type) return [`${path} is of type ${typeOf(value)}, the schema's is ${schema.type}`];
  if (schema.enum !== undefined && !schema.enum.includes(value)) return [`${path} is none of the schema's values`];
  if (schema.pattern !== undefined && !new RegExp(schema.pattern).test(value as string))
    return [`${path} does not match ${schema.pattern}`];
  if (schema.properties === undefined) return [];
  const values = value as Readonly<Record<string, unknown>>;
  const names = new Set([...Object.keys(values), ...Object.keys(schema.properties)]);
  return [
    ...(schema.additionalProperties === false ? [] : [`${path} accepts unknown names`]),
    ...[...names].flatMap((name) => schemaDifferences(`${path}.${name}`, values[name], schema.properties?.[name])),
  ];
}
