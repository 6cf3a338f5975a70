import { invalidForest } from "../forest.ts";
import { ByteReader } from "./byte-reader.ts";
import { NumberList, type TakenElements, TakenList, type Value, ValueCount } from "./document.ts";

const depthMax = 100;

/** Reads Universal Binary JSON (draft 12). Throws InferenceError for an invalid or too deeply nested document. */
export function readUbjDocument(bytes: Uint8Array, taking: TakenElements): Value {
  return new UbjReading(bytes, taking).document();
}

/** Types of numbers, by marker in the file. */
const numberKinds: Readonly<
  Record<string, { readonly byteLength: number; readonly read: (from: ByteReader) => number }>
> = {
  i: { byteLength: 1, read: (from) => from.int8() },
  U: { byteLength: 1, read: (from) => from.uint8() },
  I: { byteLength: 2, read: (from) => from.int16() },
  l: { byteLength: 4, read: (from) => from.int32() },
  L: { byteLength: 8, read: (from) => from.int64() },
  d: { byteLength: 4, read: (from) => from.float32() },
  D: { byteLength: 8, read: (from) => from.float64() },
};
const integers = "iUIlL";

class UbjReading {
  readonly #from: ByteReader;
  readonly #count = new ValueCount();
  readonly #taking: TakenElements;
  #isInElement = false;
  #depth = 0;

  constructor(bytes: Uint8Array, taking: TakenElements) {
    this.#taking = taking;
    this.#from = new ByteReader(bytes, { littleEndian: false });
  }

  document(): Value {
    const value = this.#value(this.#marker());
    while (this.#from.left > 0) {
      if (this.#from.uint8() !== noOperation)
        throw invalidForest("the file", `continues after its document, at ${this.#from.at - 1}`);
    }
    return value;
  }

  #marker(): string {
    let marker = this.#from.uint8();
    while (marker === noOperation) marker = this.#from.uint8();
    return String.fromCharCode(marker);
  }

  #value(marker: string): Value {
    const number = numberKinds[marker];
    if (number !== undefined) return number.read(this.#from);
    this.#count.add();
    switch (marker) {
      case "Z":
        return null;
      case "T":
        return true;
      case "F":
        return false;
      case "C":
        return this.#from.text(1);
      case "S":
        return this.#text();
      case "[":
        return this.#nested(() => this.#array());
      case "{":
        return this.#nested(() => this.#object());
      default:
        throw invalidForest(
          "the file",
          `is not Universal Binary JSON: no value begins with byte ${marker.charCodeAt(0)}, at ${this.#from.at - 1}`,
        );
    }
  }

  #nested<Read extends Value>(read: () => Read): Read {
    this.#depth += 1;
    if (this.#depth > depthMax) throw invalidForest("the file", `is nested more than ${depthMax} deep`);
    const value = read();
    this.#depth -= 1;
    return value;
  }

  #length(): number {
    const marker = this.#marker();
    const kind = integers.includes(marker) ? numberKinds[marker] : undefined;
    const length = kind?.read(this.#from) ?? -1;
    if (!Number.isSafeInteger(length) || length < 0)
      throw invalidForest("the file", `has no length at ${this.#from.at}`);
    return length;
  }

  #text(): string {
    return this.#from.text(this.#length());
  }

  /** Reads the type and the number of elements of an array or an object; null where the file does not declare them. */
  #container(): { readonly type: string | null; readonly count: number | null } {
    let type: string | null = null;
    if (this.#nextIs("$")) type = String.fromCharCode(this.#from.uint8());
    if (this.#nextIs("#")) return { type, count: this.#length() };
    if (type !== null) throw invalidForest("the file", `has a container with a type and no count, at ${this.#from.at}`);
    return { type, count: null };
  }

  #nextIs(marker: string): boolean {
    const { bytes, at } = this.#from;
    if (bytes[at] !== marker.charCodeAt(0)) return false;
    this.#from.take(1);
    return true;
  }

  #array(): Value {
    const { type, count } = this.#container();
    if (type !== null && count !== null) return this.#typed(type, count);
    const numbers = new NumberList();
    const values: Value[] = [];
    for (let index = 0; count === null ? !this.#nextIs("]") : index < count; index += 1) {
      const value = this.#value(this.#marker());
      const isNumber = typeof value === "number" || typeof value === "boolean";
      if (isNumber) {
        this.#count.addNumbers(1);
        numbers.push(Number(value));
      }
      if (!isNumber) values.push(value);
      if (values.length > 0 && numbers.count > 0) {
        throw invalidForest("the file", `has numbers and other things in one list, at ${this.#from.at}`);
      }
    }
    return values.length > 0 ? values : numbers.end();
  }

  #typed(type: string, count: number): Value {
    const kind = numberKinds[type];
    if (kind === undefined) {
      // Only allows types whose elements take at least one byte; otherwise a small file could declare any number of elements.
      if (type !== "S" && type !== "[" && type !== "{")
        throw invalidForest("the file", `has a list of '${type}', at ${this.#from.at}`);
      const values: Value[] = [];
      for (let index = 0; index < count; index += 1) values.push(this.#value(type));
      return values;
    }
    this.#count.addNumbers(count);
    const { at } = this.#from;
    this.#from.takeElements(count, kind.byteLength);
    this.#from.at = at;
    const numbers = new Float64Array(count);
    for (let index = 0; index < count; index += 1) numbers[index] = kind.read(this.#from);
    return numbers;
  }

  #object(): Value {
    const { type, count } = this.#container();
    const members = new Map<string, Value>();
    for (let index = 0; count === null ? !this.#nextIs("}") : index < count; index += 1) {
      const name = this.#text();
      if (members.has(name)) throw invalidForest("the file", `has '${name}' twice in one object, at ${this.#from.at}`);
      members.set(name, this.#member(name, type ?? this.#marker()));
    }
    return members;
  }

  #member(name: string, marker: string): Value {
    const { list, passedOver } = this.#taking;
    if (!this.#isInElement && name === list && marker === "[") return this.#nested(() => this.#elements());
    const value = this.#value(marker);
    return this.#isInElement && passedOver.has(name) ? null : value;
  }

  #elements(): TakenList {
    const { type, count } = this.#container();
    const items: unknown[] = [];
    this.#isInElement = true;
    for (let index = 0; count === null ? !this.#nextIs("]") : index < count; index += 1)
      items.push(this.#taking.take(this.#value(type ?? this.#marker()), index));
    this.#isInElement = false;
    return new TakenList(items);
  }
}

const noOperation = "N".charCodeAt(0);
