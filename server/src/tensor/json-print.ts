import { InferenceError } from "../base/index.ts";
import { elementEnd } from "./bytes-elements.ts";
import type { Datatype } from "./datatype.ts";
import type { JsonSink } from "./json-sink.ts";

/**
 * Prints a tensor's bytes as a flat JSON array. FP32 goes through double (0.1 prints as 0.10000000149011612), NaN and
 * infinities are literals, both as tritonserver 2.51 does. FP16 and BF16 throw Triton's INVALID_ARG.
 */
export function printJsonData(sink: JsonSink, datatype: Datatype, data: Uint8Array): void {
  const printing = new JsonDataPrinting(sink, datatype, data);
  printing.advance(Infinity);
}

/** The same in pieces. Nobody else writes to the sink meanwhile. */
export class JsonDataPrinting {
  readonly #sink: JsonSink;
  readonly #printer: Printer | "strings";
  readonly #data: Uint8Array;
  #at = 0;

  constructor(sink: JsonSink, datatype: Datatype, data: Uint8Array) {
    this.#sink = sink;
    this.#printer = printerOf(datatype);
    this.#data = data;
    sink.byte(0x5b);
  }

  /** Goes on for about `dataBytes` of the tensor, further only by the rest of an element; true when all is printed. */
  advance(dataBytes: number): boolean {
    this.#at = printElements(this.#sink, this.#printer, this.#data, { at: this.#at, until: this.#at + dataBytes });
    const isOver = this.#at >= this.#data.length;
    if (isOver) this.#sink.byte(0x5d);
    return isOver;
  }
}

/** Prints the elements with commas between them and no brackets: a value of its own where there is one element. */
export function printJsonElements(sink: JsonSink, datatype: Datatype, data: Uint8Array): void {
  printElements(sink, printerOf(datatype), data, { at: 0, until: Infinity });
}

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

/** Prints the elements that begin in a stretch of the data; returns where the next one begins. */
function printElements(sink: JsonSink, row: Printer | "strings", data: Uint8Array, { at, until }: Stretch): number {
  if (row === "strings") return printStrings(sink, data, { at, until });
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  const { bytes, print } = row;
  const end = data.length - (data.length % bytes);
  const stop = Math.min(end, until);
  let next = at;
  for (; next < stop; next += bytes) {
    if (next > 0) sink.byte(0x2c);
    print(sink, view, next);
  }
  return next >= end ? data.length : next;
}

function printStrings(sink: JsonSink, data: Uint8Array, { at, until }: Stretch): number {
  let next = at;
  while (next < data.length && next < until) {
    const end = elementEnd(data, next);
    if (next > 0) sink.byte(0x2c);
    sink.stringBytes(data, next + 4, end);
    next = end;
  }
  return next;
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
