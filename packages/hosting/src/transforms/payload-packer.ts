import { clientError } from "./transform-error.ts";

/** A record on its way to the container. */
export interface PackedRecord {
  /** As it is sent when it is alone. */
  readonly alone: Buffer;
  /** As it is sent with others behind it. */
  readonly together: Buffer;
  /** What a join has of it; null where nothing is joined. */
  readonly original: Buffer | null;
}

/** The records of one request. */
export interface Payload {
  readonly body: Buffer;
  readonly recordCount: number;
  /** What a join has of the records, each with a line feed behind it; null where nothing is joined. */
  readonly originals: Buffer | null;
}

export type BatchStrategy = "MultiRecord" | "SingleRecord";

const firstBytes = 4 * 1024;
const lineFeed = Buffer.from("\n");

/** Records one behind the other: copied as they come, because objects for millions of short ones would take many times their bytes. */
class JoinedRecords {
  readonly #bytesMax: number;
  #buffer = Buffer.alloc(0);
  #byteLength = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get byteLength(): number {
    return this.#byteLength;
  }

  add(record: Buffer): void {
    const byteLength = this.#byteLength + record.length;
    if (byteLength > this.#buffer.length) this.#grow(byteLength);
    record.copy(this.#buffer, this.#byteLength);
    this.#byteLength = byteLength;
  }

  take(): Buffer {
    const taken = this.#buffer.subarray(0, this.#byteLength);
    this.#buffer = Buffer.alloc(0);
    this.#byteLength = 0;
    return taken;
  }

  #grow(byteLength: number): void {
    const bytes = Math.max(firstBytes, byteLength, Math.min(this.#bytesMax, this.#buffer.length * 2));
    const grown = Buffer.allocUnsafeSlow(bytes);
    this.#buffer.copy(grown, 0, 0, this.#byteLength);
    this.#buffer = grown;
  }
}

/** Puts records together to requests of a bounded length, in their order. */
export class PayloadPacker {
  readonly #strategy: BatchStrategy;
  readonly #bytesMax: number;
  readonly #body: JoinedRecords;
  readonly #originals: JoinedRecords;
  #packedCount = 0;
  #recordCount = 0;

  constructor(strategy: BatchStrategy, bytesMax: number) {
    this.#strategy = strategy;
    this.#bytesMax = bytesMax;
    this.#body = new JoinedRecords(bytesMax);
    this.#originals = new JoinedRecords(bytesMax);
  }

  /** The payload that is complete with this record; null where more may come into it. */
  push(record: PackedRecord): Payload | null {
    const isAlone = this.#strategy === "SingleRecord";
    const { together, alone, original } = record;
    const bytes = isAlone ? alone.length : together.length;
    this.#recordCount += 1;
    if (bytes > this.#bytesMax) {
      throw clientError(
        `record ${this.#recordCount} has ${bytes} bytes, more than the ${this.#bytesMax} of MaxPayloadInMB`,
      );
    }
    if (isAlone) {
      return { body: alone, recordCount: 1, originals: original === null ? null : Buffer.concat([original, lineFeed]) };
    }
    // What a filter leaves of a record may be much shorter than the record, which a join keeps.
    const isFull =
      this.#body.byteLength + bytes > this.#bytesMax ||
      this.#originals.byteLength + (original?.length ?? 0) > this.#bytesMax;
    const full = isFull ? this.end() : null;
    this.#body.add(together);
    this.#packedCount += 1;
    if (original !== null) {
      this.#originals.add(original);
      this.#originals.add(lineFeed);
    }
    return full;
  }

  /** What is left; null where nothing is. */
  end(): Payload | null {
    if (this.#packedCount === 0) return null;
    const originals = this.#originals.take();
    const payload = {
      body: this.#body.take(),
      recordCount: this.#packedCount,
      originals: originals.length === 0 ? null : originals,
    };
    this.#packedCount = 0;
    return payload;
  }
}
