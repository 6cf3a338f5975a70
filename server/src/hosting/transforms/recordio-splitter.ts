import { ByteQueue } from "./byte-queue.ts";
import type { RecordSplitter, SplitRecord } from "./split-record.ts";
import { clientError } from "./transform-error.ts";

const magic = 0xced7230a;
const headerBytes = 8;
const alignment = 4;

const whole = 0;
const middle = 2;
const last = 3;

/**
 * MXNet's RecordIO: a magic number, then three bits that say which part of a record follows and 29 that say how long it is, then that,
 * padded to four bytes. A record that contains the magic number was cut there, and the number left out between its parts.
 */
export class RecordIoSplitter implements RecordSplitter {
  readonly #recordBytesMax: number;
  readonly #queue = new ByteQueue();
  /** Of a record of several parts that has begun. */
  #framed: Buffer[] = [];
  #contents: Buffer[] = [];
  #byteLength = 0;
  #recordCount = 0;

  constructor(recordBytesMax: number) {
    this.#recordBytesMax = recordBytesMax;
  }

  push(piece: Buffer): readonly SplitRecord[] {
    this.#queue.push(piece);
    const records: SplitRecord[] = [];
    for (;;) {
      const header = this.#queue.peek(headerBytes);
      if (header === null) return records;
      if (header.readUInt32LE(0) !== magic) throw this.#damaged("does not begin with the number of a RecordIO record");
      const word = header.readUInt32LE(4);
      const contentBytes = word & 0x1fffffff;
      const frameBytes = headerBytes + Math.ceil(contentBytes / alignment) * alignment;
      if (this.#byteLength + frameBytes > this.#recordBytesMax + headerBytes + alignment) {
        throw this.#damaged(`is longer than the ${this.#recordBytesMax} bytes of a payload`);
      }
      const framed = this.#queue.take(frameBytes);
      if (framed === null) return records;
      this.#part(word >>> 29, framed, framed.subarray(headerBytes, headerBytes + contentBytes));
      if (word >>> 29 === whole || word >>> 29 === last) records.push(this.#close());
    }
  }

  end(): readonly SplitRecord[] {
    if (this.#queue.byteLength > 0 || this.#framed.length > 0) throw this.#damaged("ends before its end");
    return [];
  }

  #part(kind: number, framed: Buffer, content: Buffer): void {
    const hasBegun = this.#framed.length > 0;
    const continues = kind === middle || kind === last;
    if (kind > last || hasBegun !== continues) throw this.#damaged("has parts in an order that no record has");
    if (hasBegun) {
      const number = Buffer.alloc(4);
      number.writeUInt32LE(magic);
      this.#contents.push(number);
    }
    this.#framed.push(framed);
    this.#contents.push(content);
    this.#byteLength += framed.length;
  }

  #close(): SplitRecord {
    const record = { framed: Buffer.concat(this.#framed), content: Buffer.concat(this.#contents) };
    this.#framed = [];
    this.#contents = [];
    this.#byteLength = 0;
    this.#recordCount += 1;
    return record;
  }

  #damaged(what: string): Error {
    return clientError(`record ${this.#recordCount + 1} ${what}`);
  }
}
