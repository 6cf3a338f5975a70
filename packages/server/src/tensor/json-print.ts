import { InferenceError } from "@galatea/base";
import { elementEnd } from "./bytes-elements.ts";
import type { Datatype } from "./datatype.ts";
import type { JsonSink } from "./json-sink.ts";
import type { NumberTexts } from "./number-texts.ts";
import type { Tensor } from "./tensor.ts";

/**
 * Prints a tensor as a flat JSON array, in chunks; a chunk may end inside a string. As in tritonserver 2.51, FP32 is printed as a double
 * (0.1 as 0.10000000149011612), and NaN and infinities are literals. Throws Triton's INVALID_ARG for FP16 and BF16. The sink must have no
 * other writer until the end. Without brackets, a single element is printed as a plain value.
 */
export class JsonDataPrinter {
  readonly datatype: Datatype;
  readonly #sink: JsonSink;
  readonly #printer: Printer | "strings";
  readonly #data: Uint8Array;
  readonly #brackets: boolean;
  #at = 0;
  /** Offset of the end of the string that is being printed; 0 between strings. */
  #stringEnd = 0;
  /** Cache of printed numbers; null if the cache would take more time than it saves. */
  #texts: NumberTexts | null;

  constructor(sink: JsonSink, { datatype, data }: Pick<Tensor, "datatype" | "data">, brackets: "[]" | "" = "[]") {
    this.datatype = datatype;
    this.#sink = sink;
    this.#printer = printerOf(datatype);
    this.#data = data;
    this.#brackets = brackets === "[]";
    this.#texts = datatype === "FP32" && data.length >= keptFromBytes ? sink.texts : null;
    if (this.#brackets) sink.byte(0x5b);
  }

  /** Prints about `dataBytes` more of the tensor, up to the end of a number; returns true at the end of the tensor. */
  advance(dataBytes: number): boolean {
    const until = this.#at + dataBytes;
    if (this.#printer === "strings") this.#printStrings(until);
    else if (this.#texts !== null) this.#printCachedFloats(this.#texts, until);
    else this.#at = printNumbers(this.#sink, this.#printer, this.#data, { at: this.#at, until });
    const isOver = this.#at >= this.#data.length && this.#stringEnd === 0;
    if (isOver && this.#brackets) this.#sink.byte(0x5d);
    return isOver;
  }

  /**
   * Prints with cached texts. When a chunk has more new numbers than cached ones, caching stops, because the remaining numbers of the
   * tensor are probably new, too.
   */
  #printCachedFloats(texts: NumberTexts, until: number): void {
    texts.foundCount = 0;
    texts.addedCount = 0;
    const data = this.#data;
    const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
    const end = data.length - (data.length % 4);
    const to = Math.min(end, Math.ceil(until / 4) * 4);
    this.#sink.cachedFloats(view, this.#at, to);
    this.#at = to === end ? data.length : to;
    if (texts.foundCount <= texts.addedCount) this.#texts = null;
  }

  #printStrings(until: number): void {
    const [sink, data] = [this.#sink, this.#data];
    while (this.#stringEnd !== 0 || (this.#at < data.length && this.#at < until)) {
      if (this.#stringEnd === 0) {
        this.#stringEnd = elementEnd(data, this.#at);
        if (this.#at > 0) sink.byte(0x2c);
        sink.byte(0x22);
        this.#at += lengthBytes;
      }
      const to = Math.min(this.#stringEnd, Math.max(this.#at, until));
      sink.stringPart(data, this.#at, to);
      this.#at = to;
      if (to < this.#stringEnd) return;
      sink.byte(0x22);
      this.#stringEnd = 0;
    }
  }
}

/** Tensors below this size are printed without a cache, because filling the cache would take more time than it saves. */
const keptFromBytes = 64 * 1024;
/** Size of the length field before each string of a tensor. */
const lengthBytes = 4;

function printerOf(datatype: Datatype): Printer | "strings" {
  const row = printers[datatype];
  if (row === null) {
    throw new InferenceError(
      "INVALID_ARG",
      `sending ${datatype} data via JSON is not supported. Please use the binary data format for output`,
    );
  }
  return row;
}

interface Stretch {
  readonly at: number;
  readonly until: number;
}

/** Prints the numbers that begin in a range of the data; returns the offset of the next number. */
function printNumbers(sink: JsonSink, { bytes, print }: Printer, data: Uint8Array, { at, until }: Stretch): number {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  const end = data.length - (data.length % bytes);
  const stop = Math.min(end, until);
  let next = at;
  for (; next < stop; next += bytes) {
    if (next > 0) sink.byte(0x2c);
    print(sink, view, next);
  }
  return next >= end ? data.length : next;
}

function print64(sink: JsonSink, view: DataView, at: number, high: number, signed: boolean): void {
  const value = high * 2 ** 32 + view.getUint32(at, true);
  if (Number.isSafeInteger(value)) sink.integer(value);
  else sink.ascii(String(signed ? view.getBigInt64(at, true) : view.getBigUint64(at, true)));
}

interface Printer {
  readonly bytes: number;
  readonly print: (sink: JsonSink, view: DataView, at: number) => void;
}

const printers: Readonly<Record<Datatype, Printer | "strings" | null>> = {
  BOOL: { bytes: 1, print: (sink, view, at) => sink.ascii(view.getUint8(at) === 0 ? "false" : "true") },
  UINT8: { bytes: 1, print: (sink, view, at) => sink.integer(view.getUint8(at)) },
  UINT16: { bytes: 2, print: (sink, view, at) => sink.integer(view.getUint16(at, true)) },
  UINT32: { bytes: 4, print: (sink, view, at) => sink.integer(view.getUint32(at, true)) },
  UINT64: { bytes: 8, print: (sink, view, at) => print64(sink, view, at, view.getUint32(at + 4, true), false) },
  INT8: { bytes: 1, print: (sink, view, at) => sink.integer(view.getInt8(at)) },
  INT16: { bytes: 2, print: (sink, view, at) => sink.integer(view.getInt16(at, true)) },
  INT32: { bytes: 4, print: (sink, view, at) => sink.integer(view.getInt32(at, true)) },
  INT64: { bytes: 8, print: (sink, view, at) => print64(sink, view, at, view.getInt32(at + 4, true), true) },
  FP16: null,
  FP32: { bytes: 4, print: (sink, view, at) => sink.double(view.getFloat32(at, true)) },
  FP64: { bytes: 8, print: (sink, view, at) => sink.double(view.getFloat64(at, true)) },
  BYTES: "strings",
  BF16: null,
};
