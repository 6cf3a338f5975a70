import { InferenceError } from "@galatea/base";

export interface BundleTensor {
  readonly dimensions: readonly number[];
  readonly values: Float64Array;
}

/** The shape of a column: a scalar, a list, or a tensor with or without known dimensions. */
export interface BundleShape {
  readonly kind: "scalar" | "list" | "tensor";
  readonly dimensions: readonly number[] | null;
}

/** The attributes of a model in a bundle, read by name and type. Errors name the model. */
export class BundleAttributes {
  readonly #members: ReadonlyMap<string, unknown>;
  readonly #about: string;

  constructor(members: ReadonlyMap<string, unknown>, about: string) {
    this.#members = members;
    this.#about = about;
  }

  has(name: string): boolean {
    return this.#members.has(name);
  }

  /** Returns a number. MLeap omits zeros, so an empty scalar is 0, false or ""; it writes null for NaN and infinities. */
  double(name: string, otherwise?: number): number {
    const value = this.#scalar(name, ["double", "float"], otherwise);
    return value === undefined ? 0 : this.#number(name, value);
  }

  integer(name: string, otherwise?: number): number {
    const value = this.#scalar(name, ["long", "int"], otherwise) ?? 0;
    if (typeof value !== "number" || !Number.isSafeInteger(value)) throw this.#broken(name, "is not an integer");
    return value;
  }

  text(name: string, otherwise?: string): string {
    const value = this.#scalar(name, ["string"], otherwise) ?? "";
    if (typeof value !== "string") throw this.#broken(name, "is not a string");
    return value;
  }

  boolean(name: string, otherwise?: boolean): boolean {
    const value = this.#scalar(name, ["boolean"], otherwise) ?? false;
    if (typeof value !== "boolean") throw this.#broken(name, "is not a boolean");
    return value;
  }

  doubles(name: string): Float64Array {
    return Float64Array.from(this.#list(name, ["double", "float"]), (each) => this.#number(name, each));
  }

  integers(name: string): number[] {
    return this.#list(name, ["long", "int"]).map((each) => {
      if (typeof each !== "number" || !Number.isSafeInteger(each))
        throw this.#broken(name, "is not a list of integers");
      return each;
    });
  }

  texts(name: string): string[] {
    return this.#list(name, ["string"]).map((each) => {
      if (typeof each !== "string") throw this.#broken(name, "is not a list of strings");
      return each;
    });
  }

  tensor(name: string): BundleTensor {
    return this.#tensorOf(name, this.#member(name));
  }

  vector(name: string): Float64Array {
    return this.tensor(name).values;
  }

  tensors(name: string): BundleTensor[] {
    return this.#list(name, ["tensor"]).map((each) => this.#tensorOf(name, each));
  }

  shapes(name: string): BundleShape[] {
    return this.#list(name, ["data_shape"]).map((each) => this.#shapeOf(name, each));
  }

  #member(name: string): unknown {
    const value = this.#members.get(name);
    if (value === undefined) throw this.#broken(name, "is missing");
    return value;
  }

  /** Returns the value of a scalar, from the first of these type names that is present; undefined if MLeap omitted the value. */
  #scalar(name: string, types: readonly string[], otherwise: unknown): unknown {
    if (otherwise !== undefined && !this.#members.has(name)) return otherwise;
    const value = this.#member(name);
    if (memberOf(value, "type") !== undefined) throw this.#broken(name, "is not a scalar");
    for (const type of types) {
      const found = memberOf(value, type);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  #list(name: string, types: readonly string[]): readonly unknown[] {
    const value = this.#member(name);
    if (memberOf(value, "type") !== "list") throw this.#broken(name, "is not a list");
    for (const type of types) {
      const found = memberOf(value, type);
      if (Array.isArray(found)) return found;
    }
    return [];
  }

  #number(name: string, value: unknown): number {
    if (value === null) return NaN;
    if (typeof value !== "number") throw this.#broken(name, "is not a number");
    return value;
  }

  #tensorOf(name: string, value: unknown): BundleTensor {
    const listed = ["double", "float", "int", "long"].map((type) => memberOf(value, type)).find(Array.isArray);
    const dimensions = dimensionsOf(memberOf(value, "shape"));
    if (listed === undefined || dimensions === null) throw this.#broken(name, "is not a tensor");
    const count = dimensions.reduce((product, size) => product * size, 1);
    if (count !== listed.length) throw this.#broken(name, `has ${listed.length} numbers in a shape of ${count}`);
    return { dimensions, values: Float64Array.from(listed, (each: unknown) => this.#number(name, each)) };
  }

  #shapeOf(name: string, value: unknown): BundleShape {
    const kind = memberOf(value, "base");
    if (kind !== "scalar" && kind !== "list" && kind !== "tensor") throw this.#broken(name, "is not a shape");
    return { kind, dimensions: dimensionsOf(memberOf(value, "tensorShape")) };
  }

  #broken(name: string, what: string): InferenceError {
    return new InferenceError("INVALID_ARG", `the attribute '${name}' of ${this.#about} ${what}`);
  }
}

function dimensionsOf(shape: unknown): number[] | null {
  const listed = memberOf(shape, "dimensions");
  if (!Array.isArray(listed)) return null;
  const sizes = listed.map((each) => memberOf(each, "size"));
  return sizes.every((size) => typeof size === "number" && Number.isSafeInteger(size) && size >= 0)
    ? (sizes as number[])
    : null;
}

/** Returns a member of a JSON object; undefined if the member is missing, or `value` is not an object. */
export function memberOf(value: unknown, name: string): unknown {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return undefined;
  return Object.hasOwn(value, name) ? (value as Readonly<Record<string, unknown>>)[name] : undefined;
}
