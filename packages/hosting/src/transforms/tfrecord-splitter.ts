import { computeDigest } from "../objects/index.ts";
import { ByteQueue } from "./byte-queue.ts";
import type { RecordSplitter, SourceRecord } from "./split-record.ts";
import { transformClientError } from "./transform-error.ts";

const headerBytes = 12;
const footerBytes = 4;

/**
 * Splits a TFRecord stream into records. Each record has a length of eight bytes, a checksum of the length, the
 * content, and a checksum of the content. Both checksums are verified.
 */
export class TfRecordSplitter implements RecordSplitter {
  readonly #recordBytesMax: number;
  readonly #queue = new ByteQueue();
  #recordCount = 0;

  constructor(recordBytesMax: number) {
    this.#recordBytesMax = recordBytesMax;
  }

  push(chunk: Buffer): readonly SourceRecord[] {
    this.#queue.push(chunk);
    const records: SourceRecord[] = [];
    for (;;) {
      const header = this.#queue.peek(headerBytes);
      if (header === null) return records;
      if (header.readUInt32LE(8) !== maskedCrc32c(header.subarray(0, 8))) {
        throw this.#damaged("has a wrong checksum of its length");
      }
      const length = header.readBigUInt64LE(0);
      if (length > BigInt(this.#recordBytesMax)) {
        throw this.#damaged(`is longer than the ${this.#recordBytesMax} bytes of a payload`);
      }
      const contentBytes = Number(length);
      const framed = this.#queue.take(headerBytes + contentBytes + footerBytes);
      if (framed === null) return records;
      const content = framed.subarray(headerBytes, headerBytes + contentBytes);
      if (framed.readUInt32LE(headerBytes + contentBytes) !== maskedCrc32c(content)) {
        throw this.#damaged("has a wrong checksum");
      }
      records.push({ framed, content });
      this.#recordCount += 1;
    }
  }

  end(): readonly SourceRecord[] {
    if (this.#queue.byteLength > 0) throw this.#damaged("ends before its end");
    return [];
  }

  #damaged(what: string): Error {
    return transformClientError(`record ${this.#recordCount + 1} ${what}`);
  }
}

/**
 * Returns TensorFlow's masked CRC-32C: the CRC is rotated and a constant is added. The mask avoids problems with CRCs
 * of data that contains CRCs.
 */
export function maskedCrc32c(data: Buffer): number {
  const value = Buffer.from(computeDigest("crc32c", data), "base64").readUInt32BE(0);
  return (((value >>> 15) | (value << 17)) + 0xa282ead8) >>> 0;
}
