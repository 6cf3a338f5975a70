import { javaDouble, parseNumber } from "../payloads/number-text.ts";

export const leapBases = ["boolean", "byte", "short", "int", "long", "float", "double", "string"] as const;
export type LeapBase = (typeof leapBases)[number];

/** A scalar of a column. A Java long is a bigint; all other numeric types are numbers. */
export type LeapScalar = boolean | number | bigint | string;

/** The value of a row's column. */
export type LeapValue =
  | { readonly kind: "scalar"; readonly base: LeapBase; readonly value: LeapScalar | null }
  | { readonly kind: "list"; readonly base: LeapBase; readonly values: readonly LeapScalar[] }
  | { readonly kind: "vector"; readonly values: Float64Array };

/** The error for a row that cannot be transformed: the model was not trained with one of its values, or does not support the type. */
export class LeapFailure extends Error {
  constructor(message: string) {
    super(message);
    this.name = "LeapFailure";
  }
}

/** Maximum number of elements in all vectors and lists of a row together: 128 MiB of doubles. */
const rowElementsMax = 2 ** 24;

/** A row that passes through the steps of a bundle. */
export class LeapRow {
  readonly #values = new Map<string, LeapValue>();
  #elementCount = 0;

  get(name: string): LeapValue {
    const value = this.#values.get(name);
    if (value === undefined) throw new LeapFailure(`Field ${name} does not exist`);
    return value;
  }

  set(name: string, value: LeapValue): void {
    this.take(value.kind === "scalar" ? 1 : value.values.length);
    this.#values.set(name, value);
  }

  /** Counts elements that a step will allocate. Throws LeapFailure if the row would have more than `rowElementsMax`. */
  take(elementCount: number): void {
    this.#elementCount += elementCount;
    if (!(this.#elementCount <= rowElementsMax)) {
      throw new LeapFailure(`a row's vectors have more than ${rowElementsMax} elements`);
    }
  }
}

export function doubleValue(value: number): LeapValue {
  return { kind: "scalar", base: "double", value };
}

export function vectorValue(values: Float64Array): LeapValue {
  return { kind: "vector", values };
}

export function textsValue(values: readonly string[]): LeapValue {
  return { kind: "list", base: "string", values };
}

/** Casts a column to a nullable double like MLeap. */
export function asDoubleOrNull(value: LeapValue): number | null {
  if (value.kind === "vector" && value.values.length === 1) return value.values[0] as number;
  if (value.kind !== "scalar") throw new LeapFailure(`Cannot cast a ${value.kind} to double`);
  const { value: scalar } = value;
  if (scalar === null) return null;
  if (typeof scalar === "string") return scalar === "" || scalar === "null" ? null : javaParsed(scalar);
  return typeof scalar === "boolean" ? (scalar ? 1 : 0) : Number(scalar);
}

export function asDouble(value: LeapValue): number {
  const double = asDoubleOrNull(value);
  if (double === null) throw new LeapFailure("trying to cast null to non-nullable value");
  return double;
}

/** Casts a column to a nullable string like MLeap. */
export function asTextOrNull(value: LeapValue): string | null {
  if (value.kind !== "scalar") throw new LeapFailure(`Cannot cast a ${value.kind} to string`);
  return value.value === null ? null : scalarText(value.value, value.base);
}

export function asText(value: LeapValue): string {
  const text = asTextOrNull(value);
  if (text === null) throw new LeapFailure("trying to cast null to non-nullable value");
  return text;
}

export function asVector(value: LeapValue): Float64Array {
  if (value.kind === "vector") return value.values;
  if (value.kind === "scalar") throw new LeapFailure("Cannot cast a scalar to a tensor");
  return Float64Array.from(value.values, (each) => asDouble({ kind: "scalar", base: value.base, value: each }));
}

export function asTexts(value: LeapValue): readonly string[] {
  if (value.kind !== "list") throw new LeapFailure(`Cannot cast a ${value.kind} to a list`);
  return value.values.map((each) => scalarText(each, value.base));
}

function javaParsed(text: string): number {
  const number = parseNumber(text);
  if (number === null) throw new LeapFailure(`For input string: "${text.slice(0, 100)}"`);
  return number;
}

function scalarText(scalar: LeapScalar, base: LeapBase): string {
  if (typeof scalar === "boolean") return scalar ? "1" : "0";
  if (typeof scalar === "number" && base === "double") return javaDouble(scalar);
  if (typeof scalar === "number" && base === "float") return javaFloat(scalar);
  return String(scalar);
}

/** Prints a float like Java's `Float.toString`: the shortest decimal that converts back to the same float32. */
function javaFloat(value: number): string {
  for (let digits = 1; digits < 9; digits += 1) {
    const shorter = Number(value.toPrecision(digits));
    if (Math.fround(shorter) === value) return javaDouble(shorter);
  }
  return javaDouble(value);
}
