/**
 * The messages between the server and a run thread: frames of 64-bit floating-point numbers in the machine's byte order, the first of
 * which is their count. Addresses are the run thread's own (below 2^48, so a double represents them exactly); the server learns them when a
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

const commandKinds = { run: 1, place: 2, drop: 3 } as const;
const resultKinds = { done: 1, unplaced: 2, failed: 3 } as const;
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

export type RunThreadCommand =
  | RunCommand
  | { readonly kind: "place"; readonly addresses: readonly number[] }
  | { readonly kind: "drop" };

export interface RunResult {
  readonly elementType: number;
  readonly byteLength: number;
  readonly shape: readonly number[];
}

export type RunThreadResult =
  | { readonly kind: "done" | "unplaced"; readonly results: readonly RunResult[] }
  | { readonly kind: "failed"; readonly message: string };

/** A frame that violates this format. */
export class MalformedRunFrame extends Error {}

/** Writes frames into one buffer. A frame is valid until the next one is written. */
export class FrameWriter {
  #words = new Float64Array(1024);
  #count = 0;

  command(command: RunThreadCommand): Uint8Array {
    this.#count = 1;
    if (command.kind === "run") this.#run(command);
    else if (command.kind === "place") {
      this.#put(commandKinds.place, command.addresses.length);
      for (const address of command.addresses) this.#put(address);
    } else this.#put(commandKinds.drop);
    return this.#frame();
  }

  result(result: RunThreadResult): Uint8Array {
    this.#count = 1;
    if (result.kind === "failed") this.#failed(result.message);
    else {
      this.#put(resultKinds[result.kind], result.results.length);
      for (const { elementType, byteLength, shape } of result.results) {
        this.#put(elementType, byteLength, shape.length);
        for (const dim of shape) this.#put(dim);
      }
    }
    return this.#frame();
  }

  #run(command: RunCommand): void {
    const flags = command.shrink ? flagBits.shrink : 0;
    this.#put(
      commandKinds.run,
      command.session,
      flags,
      command.processors.length,
      command.inputs.length,
      command.outputs.length,
    );
    for (const processor of command.processors) this.#put(processor);
    for (const value of command.inputs) this.#value(value);
    for (const value of command.outputs) this.#value(value);
  }

  #value({ name, elementType, address, byteLength, shape }: RunValue): void {
    this.#put(name, elementType, address, byteLength, shape === null ? -1 : shape.length);
    if (shape !== null) for (const dim of shape) this.#put(dim);
  }

  #failed(message: string): void {
    const text = Buffer.from(message).subarray(0, textBytesMax);
    this.#put(resultKinds.failed, text.byteLength);
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
    if (this.at >= this.words.length) throw malformed("it is truncated");
    return this.words[this.at++]!;
  }

  natural(max = Number.MAX_SAFE_INTEGER): number {
    const word = this.next();
    if (!Number.isSafeInteger(word) || word < 0 || word > max) throw malformed(`${word} is not from 0 to ${max}`);
    return word;
  }

  /** Reads a list of elements, each of which has at least one word. */
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

export function readRunThreadCommand(words: Float64Array): RunThreadCommand {
  const reader = new FrameReader(words);
  const kind = reader.next();
  const command = kind === commandKinds.run ? readRun(reader) : kind === commandKinds.place ? readPlace(reader) : null;
  if (command === null && kind !== commandKinds.drop) throw malformed(`a command of unknown kind ${kind}`);
  reader.end();
  return command ?? { kind: "drop" };
}

function readRun(reader: FrameReader): RunCommand {
  const session = reader.natural();
  const flags = reader.natural();
  const countMax = reader.words.length;
  const [processorCount, inputCount, outputCount] = [
    reader.natural(countMax),
    reader.natural(countMax),
    reader.natural(countMax),
  ];
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

function readPlace(reader: FrameReader): RunThreadCommand {
  return { kind: "place", addresses: reader.list(() => reader.natural()) };
}

/** Parses a run thread's result and checks every field, because a model may have corrupted the run thread's process. */
export function readRunThreadResult(words: Float64Array): RunThreadResult {
  const reader = new FrameReader(words);
  const kind = reader.next();
  if (kind === resultKinds.failed) {
    const byteLength = reader.natural(textBytesMax);
    const text = new Uint8Array(words.buffer, words.byteOffset + reader.at * wordBytes);
    if (Math.ceil(byteLength / wordBytes) !== words.length - reader.at)
      throw malformed("its text does not have the declared length");
    return { kind: "failed", message: Buffer.from(text.subarray(0, byteLength)).toString("utf8") };
  }
  if (kind !== resultKinds.done && kind !== resultKinds.unplaced) throw malformed(`a response of unknown kind ${kind}`);
  const results = reader.list(() => {
    const [elementType, byteLength, rank] = [reader.natural(), reader.natural(), reader.natural()];
    return { elementType, byteLength, shape: reader.shape(rank) };
  });
  reader.end();
  return { kind: kind === resultKinds.done ? "done" : "unplaced", results };
}

function malformed(cause: string): MalformedRunFrame {
  return new MalformedRunFrame(`an invalid frame of a run: ${cause}`);
}
