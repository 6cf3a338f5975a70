import { InferenceError } from "../base/index.ts";
import { elementEnd } from "./bytes-elements.ts";
import type { Datatype } from "./datatype.ts";
import type { JsonSink } from "./json-sink.ts";

/**
 * Prints a tensor's bytes as a flat JSON array. FP32 goes through double (0.1 prints as 0.10000000149011612), NaN and
 * infinities are literals, both as tritonserver 2.51 does. FP16 and BF16 throw Triton's INVALID_ARG.
 */
export function printJsonData(sink: JsonSink, datatype: Datatype, data: Uint8Array): void {
  const row = printerOf(datatype);
  sink.byte(0x5b);
  printElements(sink, row, data);
  sink.byte(0x5d);
}

/** Prints the elements with commas between them and no brackets: a value of its own where there is one element. */
export function printJsonElements(sink: JsonSink, datatype: Datatype, data: Uint8Array): void {
  printElements(sink, printerOf(datatype), data);
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

function printElements(sink: JsonSink, row: Printer | "strings", data: Uint8Array): void {
  if (row === "strings") printStrings(sink, data);
  else {
    const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
    const { bytes, print } = row;
    const end = data.length - (data.length % bytes);
    for (let at = 0; at < end; at += bytes) {
      if (at > 0) sink.byte(0x2c);
      print(sink, view, at);
    }
  }
}

function printStrings(sink: JsonSink, data: Uint8Array): void {
  for (let at = 0; at < data.length;) {
    const end = elementEnd(data, at);
    if (at > 0) sink.byte(0x2c);
    sink.stringBytes(data, at + 4, end);
    at = end;
  }
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
