import { readRecordIoHeader, recordIoHeaderBytes, recordIoMagic, type RecordIoHeader } from "@galatea/base";
import { ByteQueue } from "./byte-queue.ts";
import type { RecordSplitter, SourceRecord } from "./split-record.ts";
import { transformClientError } from "./transform-error.ts";

const paddingBytesMax = 4;

/** Splits a RecordIO stream into records. A record may consist of several parts. */
export class RecordIoSplitter implements RecordSplitter {
  readonly #recordBytesMax: number;
  readonly #queue = new ByteQueue();
  /** Parts of the current record. */
  #framed: Buffer[] = [];
  #contents: Buffer[] = [];
  #byteLength = 0;
  #recordCount = 0;

  constructor(recordBytesMax: number) {
    this.#recordBytesMax = recordBytesMax;
  }

  push(chunk: Buffer): readonly SourceRecord[] {
    this.#queue.push(chunk);
    const records: SourceRecord[] = [];
    for (;;) {
      const head = this.#queue.peek(recordIoHeaderBytes);
      if (head === null) return records;
      const header = readRecordIoHeader(head, 0);
      if (header === null) throw this.#damaged("does not begin with the number of a RecordIO record");
      const { part, contentBytes, frameBytes } = header;
      if (this.#byteLength + frameBytes > this.#recordBytesMax + recordIoHeaderBytes + paddingBytesMax) {
        throw this.#damaged(`is longer than the ${this.#recordBytesMax} bytes of a payload`);
      }
      const framed = this.#queue.take(frameBytes);
      if (framed === null) return records;
      this.#add(part, framed, framed.subarray(recordIoHeaderBytes, recordIoHeaderBytes + contentBytes));
      if (part === "whole" || part === "last") records.push(this.#close());
    }
  }

  end(): readonly SourceRecord[] {
    if (this.#queue.byteLength > 0 || this.#framed.length > 0) throw this.#damaged("ends before its end");
    return [];
  }

  #add(part: RecordIoHeader["part"], framed: Buffer, content: Buffer): void {
    const hasStarted = this.#framed.length > 0;
    const continues = part === "middle" || part === "last";
    if (part === null || hasStarted !== continues) throw this.#damaged("has parts in an invalid order");
    if (hasStarted) {
      const number = Buffer.alloc(4);
      number.writeUInt32LE(recordIoMagic);
      this.#contents.push(number);
    }
    this.#framed.push(framed);
    this.#contents.push(content);
    this.#byteLength += framed.length;
  }

  #close(): SourceRecord {
    const record = { framed: Buffer.concat(this.#framed), content: Buffer.concat(this.#contents) };
    this.#framed = [];
    this.#contents = [];
    this.#byteLength = 0;
    this.#recordCount += 1;
    return record;
  }

  #damaged(what: string): Error {
    return transformClientError(`record ${this.#recordCount + 1} ${what}`);
  }
}
