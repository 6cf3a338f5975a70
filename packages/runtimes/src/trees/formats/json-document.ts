import { unreachable } from "@galatea/base";
import { JsonScanner, JsonSyntaxError, readJsonString } from "@galatea/server/tensor";
import { invalidForest } from "../forest.ts";
import { NumberList, type TakenElements, TakenList, type Value, ValueCount } from "./document.ts";

/** Reads JSON, including NaN and Infinity, which XGBoost writes. Throws InferenceError for invalid or too deeply nested JSON. */
export function readJsonDocument(bytes: Uint8Array, taking: TakenElements): Value {
  try {
    return new JsonReading(bytes, taking).document();
  } catch (error) {
    if (error instanceof JsonSyntaxError) throw invalidForest("the file", `is not JSON: ${error.message}`);
    throw error;
  }
}

class JsonReading {
  readonly #scanner: JsonScanner;
  readonly #taking: TakenElements;
  readonly #count = new ValueCount();
  /** Numbers of the current list; lists of numbers are not nested. */
  readonly #numbers = new NumberList();
  #isInElement = false;

  constructor(bytes: Uint8Array, taking: TakenElements) {
    this.#scanner = new JsonScanner(bytes);
    this.#taking = taking;
  }

  document(): Value {
    const value = this.#value();
    this.#scanner.finish();
    return value;
  }

  #value(): Value {
    const scanner = this.#scanner;
    const kind = scanner.kind();
    if (kind === "number") return this.#number();
    this.#count.add();
    switch (kind) {
      case "object":
        return this.#object();
      case "array":
        return this.#array();
      case "string":
        return this.#text();
      case "true":
      case "false":
      case "null":
        scanner.skipValue();
        return kind === "null" ? null : kind === "true";
      default:
        return unreachable(kind);
    }
  }

  #number(): number {
    const scanner = this.#scanner;
    const start = scanner.at;
    scanner.number();
    return scanner.exact ? scanner.value : scanner.exactDouble(start);
  }

  /** Reads a string. `skipString` runs first, because `readJsonString` does not validate its input. */
  #text(): string {
    const scanner = this.#scanner;
    const start = scanner.at;
    scanner.skipString();
    scanner.at = start;
    return readJsonString(scanner);
  }

  #object(): ReadonlyMap<string, Value> {
    const scanner = this.#scanner;
    const members = new Map<string, Value>();
    if (!scanner.open(0x7d)) return members;
    do {
      scanner.peek();
      const start = scanner.at;
      scanner.key();
      const lag = scanner.at;
      scanner.at = start;
      const name = readJsonString(scanner);
      scanner.at = lag;
      if (members.has(name)) throw invalidForest("the file", `has '${name}' twice in one object, at ${start}`);
      members.set(name, this.#member(name));
    } while (scanner.more(0x7d));
    return members;
  }

  #member(name: string): Value {
    const { list, passedOver } = this.#taking;
    if (this.#isInElement && passedOver.has(name)) {
      this.#scanner.skipValue();
      return null;
    }
    return !this.#isInElement && name === list && this.#scanner.kind() === "array" ? this.#elements() : this.#value();
  }

  #elements(): TakenList {
    const items: unknown[] = [];
    if (!this.#scanner.open(0x5d)) return new TakenList(items);
    this.#isInElement = true;
    do items.push(this.#taking.take(this.#value(), items.length));
    while (this.#scanner.more(0x5d));
    this.#isInElement = false;
    return new TakenList(items);
  }

  #array(): Value {
    const scanner = this.#scanner;
    if (!scanner.open(0x5d)) return new Float64Array(0);
    if (!this.#isAtNumber()) {
      const values: Value[] = [];
      do values.push(this.#value());
      while (scanner.more(0x5d));
      return values;
    }
    do {
      if (!this.#isAtNumber())
        throw invalidForest("the file", `has something else in a list of numbers, at ${scanner.at}`);
      const value = scanner.kind() === "number" ? this.#number() : this.#value();
      this.#count.addNumbers(1);
      this.#numbers.push(Number(value));
    } while (scanner.more(0x5d));
    return this.#numbers.end();
  }

  #isAtNumber(): boolean {
    const kind = this.#scanner.kind();
    return kind === "number" || kind === "true" || kind === "false";
  }
}
