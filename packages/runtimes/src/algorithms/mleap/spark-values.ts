import { unreachable } from "@galatea/base";
import { javaDouble, parseNumber } from "../payloads/number-text.ts";
import type { ColumnSchema } from "./data-schema.ts";
import { LeapFailure, type LeapBase, type LeapScalar, type LeapValue } from "./leap-values.ts";

/** Converts a request's value to the type of its column. Throws LeapFailure, with the message of Java where Java has one. */
export function columnValue({ base, struct }: ColumnSchema, value: unknown): LeapValue {
  switch (struct) {
    case "basic":
      return { kind: "scalar", base, value: scalarOf(base, value) };
    case "array":
      if (!Array.isArray(value)) throw new LeapFailure("Input val is not a list but struct passed is array");
      return { kind: "list", base, values: value.map((each: unknown) => scalarOf(base, each)) };
    case "vector":
      if (base !== "double") throw new LeapFailure("Only Double type is supported for vector");
      if (!Array.isArray(value)) throw new LeapFailure("Input val is not a list but struct passed is vector");
      return { kind: "vector", values: Float64Array.from(value, (each: unknown) => Number(scalarOf("double", each))) };
    default:
      return unreachable(struct);
  }
}

const integerBits = { byte: 8, short: 16, int: 32 } as const;

function scalarOf(base: LeapBase, value: unknown): LeapScalar {
  if (typeof value !== "string" && typeof value !== "number" && typeof value !== "boolean") {
    throw new LeapFailure("a column has no value");
  }
  const text = String(value);
  switch (base) {
    case "string":
      return text;
    case "boolean":
      return text.toLowerCase() === "true";
    case "long":
      if (!/^[+-]?\d{1,19}$/.test(text)) throw notNumber(text);
      return BigInt.asIntN(64, BigInt(text));
    case "byte":
    case "short":
    case "int": {
      const number = /^[+-]?\d{1,10}$/.test(text) ? Number(text) : NaN;
      const limit = 2 ** (integerBits[base] - 1);
      if (!(number >= -limit && number < limit)) throw notNumber(text);
      return number;
    }
    case "float":
    case "double": {
      const number = parseNumber(text);
      if (number === null) throw notNumber(text);
      return base === "float" ? Math.fround(number) : number;
    }
    default:
      return unreachable(base);
  }
}

function notNumber(text: string): LeapFailure {
  return new LeapFailure(`For input string: "${text.slice(0, 100)}"`);
}

/** Prints a scalar of the response like Java, with the type that the schema declares. */
export function printedScalar(value: LeapValue, { base, name }: ColumnSchema): string {
  if (value.kind !== "scalar" || value.value === null)
    throw new LeapFailure(`the column ${name} is not of type ${base}`);
  const { value: scalar } = value;
  // A float or double column must be a double, as in Java, and other columns must have their declared type.
  const isDouble = (base === "float" || base === "double") && value.base === "double";
  if (!isDouble && value.base !== base) throw new LeapFailure(`the column ${name} is a ${value.base}, not a ${base}`);
  return typeof scalar === "number" && isDouble ? javaDouble(scalar) : String(scalar);
}

/** Prints the elements of a list or vector of the response like Java. Strings are unchanged. */
export function printedElements(value: LeapValue, { struct, name }: ColumnSchema): readonly string[] {
  if (struct === "vector" && value.kind === "vector") return Array.from(value.values, javaDouble);
  if (struct === "array" && value.kind === "list") {
    return value.values.map((each) =>
      typeof each === "number" && value.base === "double" ? javaDouble(each) : String(each),
    );
  }
  throw new LeapFailure(`the column ${name} is a ${value.kind}, not ${struct === "array" ? "an array" : "a vector"}`);
}
