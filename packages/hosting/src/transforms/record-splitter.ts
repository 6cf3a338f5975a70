import { unreachable } from "@galatea/base";
import { LineSplitter } from "./line-splitter.ts";
import { RecordIoSplitter } from "./recordio-splitter.ts";
import type { RecordSplitter } from "./split-record.ts";
import { TfRecordSplitter } from "./tfrecord-splitter.ts";

export type RecordFormat = "Line" | "RecordIO" | "TFRecord";

export function openSplitter(format: RecordFormat, recordBytesMax: number): RecordSplitter {
  switch (format) {
    case "Line":
      return new LineSplitter(recordBytesMax);
    case "RecordIO":
      return new RecordIoSplitter(recordBytesMax);
    case "TFRecord":
      return new TfRecordSplitter(recordBytesMax);
    default:
      return unreachable(format);
  }
}
