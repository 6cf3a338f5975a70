import { InferenceError } from "@galatea/base";
import { invalidForest } from "../forest.ts";

/**
 * A document of XGBoost, from JSON or UBJSON: lists of numbers (and of booleans, as 0 and 1) are one array of doubles; an empty list is
 * one, too.
 */
export type Value =
  | null
  | boolean
  | number
  | string
  | Float64Array
  | readonly Value[]
  | ReadonlyMap<string, Value>
  | TakenList;

/**
 * The list whose elements are passed on one by one while the document is read: all of them together would take many times the file's
 * length.
 */
export interface TakenElements {
  /** Name of the member with that list, anywhere in the document. */
  readonly list: string;
  /** Unneeded members of an element: they are present, and null. */
  readonly passedOver: ReadonlySet<string>;
  readonly take: (element: Value, index: number) => unknown;
}

/** The results of the elements of such a list. */
export class TakenList {
  readonly items: readonly unknown[];

  constructor(items: readonly unknown[]) {
    this.items = items;
  }
}

/** Values other than numbers in a list take a hundred times their bytes in the file. */
const valuesMax = 8_000_000;

/** Limit of numbers, which take eight bytes each, whatever they take in the file. */
const numbersMax = 2 ** 27;

/** Counts the values of a document. */
export class ValueCount {
  #count = 0;
  #numberCount = 0;

  add(): void {
    this.#count += 1;
    if (this.#count > valuesMax) throw new InferenceError("UNSUPPORTED", `the model has more than ${valuesMax} values`);
  }

  addNumbers(count: number): void {
    this.#numberCount += count;
    if (this.#numberCount > numbersMax)
      throw new InferenceError("UNSUPPORTED", `the model has more than ${numbersMax} numbers`);
  }
}

/** A list of numbers whose count the file does not declare. */
export class NumberList {
  #values = new Float64Array(16);
  #count = 0;

  get count(): number {
    return this.#count;
  }

  push(value: number): void {
    if (this.#count === this.#values.length) {
      const longer = new Float64Array(2 * this.#values.length);
      longer.set(this.#values);
      this.#values = longer;
    }
    this.#values[this.#count++] = value;
  }

  /** Returns the numbers and empties the list, which can be used again. */
  end(): Float64Array {
    const values = this.#values.slice(0, this.#count);
    this.#count = 0;
    return values;
  }
}

/** The members of an object of the document, read by name and kind; errors name the position. */
export class Members {
  readonly path: string;
  readonly #members: ReadonlyMap<string, Value>;

  constructor(value: Value | undefined, path: string) {
    if (!(value instanceof Map)) throw invalidForest(path === "" ? "the document" : path, "is not an object");
    this.#members = value;
    this.path = path;
  }

  has(name: string): boolean {
    return this.#members.has(name);
  }

  names(): Iterable<string> {
    return this.#members.keys();
  }

  object(name: string): Members {
    return new Members(this.#members.get(name), this.#at(name));
  }

  /** Returns the results of the elements of this list. */
  taken(name: string): readonly unknown[] {
    const value = this.#members.get(name);
    if (!(value instanceof TakenList)) throw invalidForest(this.#at(name), "is not a list of objects");
    return value.items;
  }

  text(name: string): string {
    const value = this.#members.get(name);
    if (typeof value !== "string") throw invalidForest(this.#at(name), "is not a string");
    return value;
  }

  /** XGBoost writes its parameters as texts. */
  integer(name: string, otherwise: number | null = null): number {
    const value = this.#members.get(name);
    if (value === undefined && otherwise !== null) return otherwise;
    const number = typeof value === "string" && /^-?\d{1,15}$/.test(value) ? Number(value) : value;
    if (typeof number !== "number" || !Number.isInteger(number))
      throw invalidForest(this.#at(name), "is not an integer");
    return number;
  }

  numbers(name: string): Float64Array {
    const value = this.#members.get(name);
    if (!(value instanceof Float64Array)) throw invalidForest(this.#at(name), "is not a list of numbers");
    return value;
  }

  value(name: string): Value | undefined {
    return this.#members.get(name);
  }

  #at(name: string): string {
    return this.path === "" ? name : `${this.path}.${name}`;
  }
}
