import { InferenceError } from "@galatea/base";

/** Magic number of a file that MXNet's `nd.save` wrote: its first eight bytes. */
const listMagic = 0x112;
const arraysMax = 1024;
const dimensionsMax = 32;

/** Magic number of an array, by format version. In formats before v1 an array begins with its number of dimensions instead. */
const arrayMagics = { v1: 0xf993fac8, v2: 0xf993fac9, v3: 0xf993faca } as const;

/** A parameter of a model, converted from the type in the file to float32. */
export interface NamedArray {
  readonly shape: readonly number[];
  readonly values: Float32Array;
}

/** Reads dense arrays with names. Throws InferenceError for an invalid file; checks declared sizes before it allocates memory. */
export function readNdarrayFile(bytes: Uint8Array): ReadonlyMap<string, NamedArray> {
  const file = new NdarrayFile(bytes);
  if (file.uint64() !== listMagic) throw brokenParameters("have no MXNet header");
  file.uint64();
  const arrayCount = file.count(arraysMax, "arrays");
  const arrays: NamedArray[] = [];
  for (let index = 0; index < arrayCount; index += 1) arrays.push(file.array());
  const nameCount = file.count(arraysMax, "names");
  if (nameCount !== arrayCount) throw brokenParameters(`have ${arrayCount} arrays and ${nameCount} names`);
  const named = new Map<string, NamedArray>();
  for (const array of arrays) {
    const name = file.text();
    if (named.has(name)) throw brokenParameters(`have two arrays '${name}'`);
    named.set(name, array);
  }
  return named;
}

class NdarrayFile {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  #take(byteLength: number): number {
    if (!(byteLength <= this.#bytes.length - this.#at)) {
      throw brokenParameters(
        `end at byte ${this.#bytes.length}, where ${byteLength} more were expected at ${this.#at}`,
      );
    }
    const at = this.#at;
    this.#at += byteLength;
    return at;
  }

  uint64(): number {
    return Number(this.#view.getBigUint64(this.#take(8), true));
  }

  #uint32(): number {
    return this.#view.getUint32(this.#take(4), true);
  }

  count(countMax: number, of: string): number {
    const count = this.uint64();
    if (count > countMax) throw brokenParameters(`declare ${count} ${of}`);
    return count;
  }

  text(): string {
    const byteLength = this.uint64();
    const at = this.#take(byteLength);
    return new TextDecoder().decode(this.#bytes.subarray(at, at + byteLength));
  }

  array(): NamedArray {
    const shape = this.#shape();
    this.#take(8); // the device it was saved from
    const type = this.#uint32();
    const count = shape.reduce((product, size) => product * size, 1);
    return { shape, values: this.#elements(type, count) };
  }

  #shape(): number[] {
    const first = this.#uint32();
    if (first === arrayMagics.v2 || first === arrayMagics.v3) {
      const storage = this.#uint32();
      if (storage !== 0) throw new InferenceError("UNSUPPORTED", "the model's parameters have a sparse array");
      return this.#sizes(this.#uint32(), () => this.uint64());
    }
    if (first === arrayMagics.v1) return this.#sizes(this.#uint32(), () => this.uint64());
    return this.#sizes(first, () => this.#uint32());
  }

  #sizes(dimensionCount: number, size: () => number): number[] {
    if (dimensionCount === 0 || dimensionCount > dimensionsMax) {
      throw brokenParameters(`have an array of ${dimensionCount} dimensions`);
    }
    return Array.from({ length: dimensionCount }, size);
  }

  /** Reads `count` elements of a type, given as MXNet's number of the type. */
  #elements(type: number, count: number): Float32Array {
    const read = elementTypes.get(type);
    if (read === undefined)
      throw new InferenceError("UNSUPPORTED", `the model's parameters have elements of type ${type}`);
    const at = this.#take(count * read.elementBytes);
    const values = new Float32Array(count);
    for (let index = 0; index < count; index += 1) {
      values[index] = read.at(this.#view, at + index * read.elementBytes);
    }
    return values;
  }
}

interface ElementType {
  readonly elementBytes: number;
  readonly at: (view: DataView, at: number) => number;
}

const elementTypes: ReadonlyMap<number, ElementType> = new Map([
  [0, { elementBytes: 4, at: (view, at) => view.getFloat32(at, true) }],
  [1, { elementBytes: 8, at: (view, at) => view.getFloat64(at, true) }],
  [3, { elementBytes: 1, at: (view, at) => view.getUint8(at) }],
  [4, { elementBytes: 4, at: (view, at) => view.getInt32(at, true) }],
  [5, { elementBytes: 1, at: (view, at) => view.getInt8(at) }],
  [6, { elementBytes: 8, at: (view, at) => Number(view.getBigInt64(at, true)) }],
] satisfies [number, ElementType][]);

function brokenParameters(what: string): InferenceError {
  return new InferenceError("INVALID_ARG", `the model's parameters ${what}`);
}
