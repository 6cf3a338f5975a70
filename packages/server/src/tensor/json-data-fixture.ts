import type { Datatype } from "./datatype.ts";
import { JsonDataReader, type JsonDataTarget } from "./json-data.ts";
import { JsonDataPrinter } from "./json-print.ts";
import type { JsonScanner } from "./json-scanner.ts";
import type { JsonSink } from "./json-sink.ts";

/** Reads the whole `data` array at once. Returns the bytes written. */
export function readJsonData(scanner: JsonScanner, target: JsonDataTarget): number {
  const reading = new JsonDataReader(scanner, target);
  reading.advance(Infinity);
  return reading.byteLength;
}

/** Prints a tensor's bytes at once. */
export function printJsonData(sink: JsonSink, datatype: Datatype, data: Uint8Array): void {
  new JsonDataPrinter(sink, { datatype, data }).advance(Infinity);
}
