import { InferenceError } from "@galatea/base";
import { invalidForest } from "../forest.ts";

/**
 * A value in an XGBoost document, in JSON or UBJSON. A list of numbers, or of booleans as 0 and 1, is a Float64Array; an empty list is one
 * too.
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
 * The list whose elements are passed to a function one by one while the document is read. All elements in memory together would take many
 * times the length of the file.
 */
export interface TakenElements {
  /** Name of the member that has the list, anywhere in the document. */
  readonly list: string;
  /** Names of members of an element that are not needed: their values are skipped and replaced by null. */
  readonly passedOver: ReadonlySet<string>;
  readonly take: (element: Value, index: number) => unknown;
}

/** The results of `take` for the elements of the list. */
export class TakenList {
  readonly items: readonly unknown[];

  constructor(items: readonly unknown[]) {
    this.items = items;
  }
}

/** Maximum number of values outside of lists of numbers: each may take a hundred times its bytes in the file. */
const valuesMax = 8_000_000;

/** Maximum number of numbers in lists: each takes eight bytes in memory, but may take fewer in the file. */
const numbersMax = 2 ** 27;

/** Counts the values of a document, and throws InferenceError at the limits. */
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

  /** Returns the numbers and clears the list for reuse. */
  end(): Float64Array {
    const values = this.#values.slice(0, this.#count);
    this.#count = 0;
    return values;
  }
}

/** The members of an object of the document, read by name and type. Errors name the path of the member. */
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

  /** Returns the results of `take` for the elements of this list. */
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

  /** Returns an integer, which XGBoost may write as a string. */
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
