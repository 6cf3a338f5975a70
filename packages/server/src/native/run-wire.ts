/**
 * The messages between the server and a run lane: frames of 64-bit floating-point numbers in the machine's byte order, the first of
 * which is their count. Addresses are the lane's own (below 2^48, so a double represents them exactly); the server learns them when a
 * session is opened and an arena is mapped.
 *
 *   run     [count, 1, session, flags, processors, inputs, outputs, processor..., value...]
 *   place   [count, 2, outputs, address...]              after `unplaced`; an address of 0 for an empty output
 *   drop    [count, 3]                                   after `unplaced`: there is no memory for the outputs
 *   done    [count, 1, outputs, result...]
 *   unplaced [count, 2, outputs, result...]              outputs whose size only the run determined
 *   failed  [count, 3, bytes, text in UTF-8, padded]
 *
 * A value is [name, element type, address, bytes, rank, dimension...]; rank -1 leaves the output to the library. A result is
 * [element type, bytes, rank, dimension...].
 */

export const wordBytes = 8;
/** Limit of the length of a frame, in 64-bit words; a longer one is an error of the sender. */
export const frameWordsMax = 4 * 1024 * 1024;
export const runRankMax = 64;

const orders = { run: 1, place: 2, drop: 3 } as const;
const answers = { done: 1, unplaced: 2, failed: 3 } as const;
const flagBits = { shrink: 1 } as const;
/** Limit of an error text, in bytes; ONNX Runtime's message may contain the text of a node. */
const textBytesMax = 64 * 1024;

export interface RunValue {
  /** Address of the value's name. */
  readonly name: number;
  /** ONNXTensorElementDataType. */
  readonly elementType: number;
  /** Address of the elements: packed, strings as a BYTES tensor. */
  readonly address: number;
  readonly byteLength: number;
  /** Null for an output that the library allocates. */
  readonly shape: readonly number[] | null;
}

export interface RunCommand {
  readonly kind: "run";
  readonly session: number;
  /** True to free the unused parts of the library's memory pool after the run. */
  readonly shrink: boolean;
  /** Processors to which the thread is pinned before the run; empty for no change. */
  readonly processors: readonly number[];
  readonly inputs: readonly RunValue[];
  readonly outputs: readonly RunValue[];
}

export type LaneCommand =
  | RunCommand
  | { readonly kind: "place"; readonly addresses: readonly number[] }
  | { readonly kind: "drop" };

export interface RunResult {
  readonly elementType: number;
  readonly byteLength: number;
  readonly shape: readonly number[];
}

export type LaneResult =
  | { readonly kind: "done" | "unplaced"; readonly results: readonly RunResult[] }
  | { readonly kind: "failed"; readonly message: string };

/** A frame that violates this format. */
export class MalformedRunFrame extends Error {}

/** Writes frames into one buffer. A frame is valid until the next one is written. */
export class FrameWriter {
  #words = new Float64Array(1024);
  #count = 0;

  order(order: LaneCommand): Uint8Array {
    this.#count = 1;
    if (order.kind === "run") this.#run(order);
    else if (order.kind === "place") {
      this.#put(orders.place, order.addresses.length);
      for (const address of order.addresses) this.#put(address);
    } else this.#put(orders.drop);
    return this.#frame();
  }

  answer(answer: LaneResult): Uint8Array {
    this.#count = 1;
    if (answer.kind === "failed") this.#failed(answer.message);
    else {
      this.#put(answers[answer.kind], answer.results.length);
      for (const { elementType, byteLength, shape } of answer.results) {
        this.#put(elementType, byteLength, shape.length);
        for (const dim of shape) this.#put(dim);
      }
    }
    return this.#frame();
  }

  #run(order: RunCommand): void {
    const flags = order.shrink ? flagBits.shrink : 0;
    this.#put(orders.run, order.session, flags, order.processors.length, order.inputs.length, order.outputs.length);
    for (const processor of order.processors) this.#put(processor);
    for (const value of order.inputs) this.#value(value);
    for (const value of order.outputs) this.#value(value);
  }

  #value({ name, elementType, address, byteLength, shape }: RunValue): void {
    this.#put(name, elementType, address, byteLength, shape === null ? -1 : shape.length);
    if (shape !== null) for (const dim of shape) this.#put(dim);
  }

  #failed(message: string): void {
    const text = Buffer.from(message).subarray(0, textBytesMax);
    this.#put(answers.failed, text.byteLength);
    const at = this.#count;
    const words = Math.ceil(text.byteLength / wordBytes);
    for (let word = 0; word < words; word += 1) this.#put(0);
    new Uint8Array(this.#words.buffer).set(text, at * wordBytes);
  }

  #put(...words: readonly number[]): void {
    if (this.#count + words.length > this.#words.length) {
      const grown = new Float64Array(this.#words.length * 2);
      grown.set(this.#words);
      this.#words = grown;
    }
    for (const word of words) this.#words[this.#count++] = word;
  }

  #frame(): Uint8Array {
    this.#words[0] = this.#count;
    return new Uint8Array(this.#words.buffer, 0, this.#count * wordBytes);
  }
}

/** Returns the size in bytes of a frame, given its first number. Throws MalformedRunFrame. */
export function frameByteLength(first: number): number {
  if (!Number.isInteger(first) || first < 2 || first > frameWordsMax) throw malformed(`${first} words`);
  return first * wordBytes;
}

/** Reads the numbers of a frame. Throws MalformedRunFrame instead of reading past its end. */
class FrameReader {
  readonly words: Float64Array;
  at = 1;

  constructor(words: Float64Array) {
    this.words = words;
    if (words.length < 2 || words[0] !== words.length) throw malformed(`${words[0]} words of ${words.length}`);
  }

  next(): number {
    if (this.at >= this.words.length) throw malformed("it is cut short");
    return this.words[this.at++]!;
  }

  natural(max = Number.MAX_SAFE_INTEGER): number {
    const word = this.next();
    if (!Number.isSafeInteger(word) || word < 0 || word > max) throw malformed(`${word} is not from 0 to ${max}`);
    return word;
  }

  /** Reads a list of elements that take at least one word each. */
  list<T>(read: () => T): readonly T[] {
    return this.listOf(this.natural(this.words.length - this.at), read);
  }

  listOf<T>(count: number, read: () => T): readonly T[] {
    const list: T[] = [];
    for (let index = 0; index < count; index += 1) list.push(read());
    return list;
  }

  shape(rank: number): readonly number[] {
    if (rank > runRankMax) throw malformed(`a tensor of ${rank} dimensions`);
    return this.listOf(rank, () => this.natural());
  }

  end(): void {
    if (this.at !== this.words.length) throw malformed("it is too long");
  }
}

export function readLaneOrder(words: Float64Array): LaneCommand {
  const reader = new FrameReader(words);
  const kind = reader.next();
  const order = kind === orders.run ? readRun(reader) : kind === orders.place ? readPlace(reader) : null;
  if (order === null && kind !== orders.drop) throw malformed(`an order of kind ${kind}`);
  reader.end();
  return order ?? { kind: "drop" };
}

function readRun(reader: FrameReader): RunCommand {
  const session = reader.natural();
  const flags = reader.natural();
  const most = reader.words.length;
  const [processorCount, inputCount, outputCount] = [reader.natural(most), reader.natural(most), reader.natural(most)];
  return {
    kind: "run",
    session,
    shrink: (flags & flagBits.shrink) !== 0,
    processors: reader.listOf(processorCount, () => reader.natural()),
    inputs: reader.listOf(inputCount, () => readValue(reader)),
    outputs: reader.listOf(outputCount, () => readValue(reader)),
  };
}

function readValue(reader: FrameReader): RunValue {
  const [name, elementType, address, byteLength, rank] = [
    reader.natural(),
    reader.natural(),
    reader.natural(),
    reader.natural(),
    reader.next(),
  ];
  return { name, elementType, address, byteLength, shape: rank === -1 ? null : reader.shape(rank) };
}

function readPlace(reader: FrameReader): LaneCommand {
  return { kind: "place", addresses: reader.list(() => reader.natural()) };
}

/** Parses a lane's result and checks every field, because a model may have corrupted the lane's process. */
export function readLaneResult(words: Float64Array): LaneResult {
  const reader = new FrameReader(words);
  const kind = reader.next();
  if (kind === answers.failed) {
    const byteLength = reader.natural(textBytesMax);
    const text = new Uint8Array(words.buffer, words.byteOffset + reader.at * wordBytes);
    if (Math.ceil(byteLength / wordBytes) !== words.length - reader.at)
      throw malformed("its text does not have the declared length");
    return { kind: "failed", message: Buffer.from(text.subarray(0, byteLength)).toString("utf8") };
  }
  if (kind !== answers.done && kind !== answers.unplaced) throw malformed(`a response of unknown kind ${kind}`);
  const results = reader.list(() => {
    const [elementType, byteLength, rank] = [reader.natural(), reader.natural(), reader.natural()];
    return { elementType, byteLength, shape: reader.shape(rank) };
  });
  reader.end();
  return { kind: kind === answers.done ? "done" : "unplaced", results };
}

function malformed(what: string): MalformedRunFrame {
  return new MalformedRunFrame(`an invalid frame of a run: ${what}`);
}
