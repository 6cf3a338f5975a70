import { memberOf } from "./bundle-attributes.ts";
import { type LeapBase, leapBases, LeapFailure } from "./leap-values.ts";

export interface ColumnSchema {
  readonly name: string;
  readonly base: LeapBase;
  readonly struct: "basic" | "vector" | "array";
}

/** The input columns, in order, and the output column, from SAGEMAKER_SPARKML_SCHEMA or the member `schema` of a request. */
export interface DataSchema {
  readonly input: readonly ColumnSchema[];
  readonly output: ColumnSchema;
}

const columnsMax = 100_000;

export function dataSchemaOf(value: unknown): DataSchema {
  const input = memberOf(value, "input");
  if (!Array.isArray(input) || input.length > columnsMax)
    throw new LeapFailure("the schema has no list of input columns");
  return { input: input.map(columnOf), output: columnOf(memberOf(value, "output")) };
}

export function parsedDataSchema(text: string): DataSchema {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new LeapFailure(`the schema is not valid JSON: ${(error as Error).message}`);
  }
  return dataSchemaOf(value);
}

function columnOf(value: unknown): ColumnSchema {
  const name = memberOf(value, "name");
  const type = memberOf(value, "type");
  const struct = memberOf(value, "struct") ?? "basic";
  const base = leapBases.find((each) => each === type);
  if (typeof name !== "string") throw new LeapFailure("the schema has a column without a name");
  if (base === undefined) throw new LeapFailure("Data type passed in the request is wrong for one or more columns");
  if (struct !== "basic" && struct !== "vector" && struct !== "array")
    throw new LeapFailure("Given type is not supported");
  return { name, base, struct };
}
