import { transformClientError } from "./transform-error.ts";

/** A record to send to the container. */
export interface PackedRecord {
  /** The record's bytes if it is sent alone. */
  readonly alone: Buffer;
  /** The record's bytes if it is sent together with other records. */
  readonly together: Buffer;
  /** The unfiltered record, which a join needs; null without a join. */
  readonly original: Buffer | null;
}

/** The records of one request. */
export interface Payload {
  readonly body: Buffer;
  readonly recordCount: number;
  /** The unfiltered records, each with a line feed, which a join needs; null without a join. */
  readonly originals: Buffer | null;
}

export type BatchStrategy = "MultiRecord" | "SingleRecord";

const firstBytes = 4 * 1024;
const lineFeed = Buffer.from("\n");

/**
 * Concatenates records. Each record is copied immediately, because objects for millions of short records would need
 * many times their size.
 */
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
    const received = this.#buffer.subarray(0, this.#byteLength);
    this.#buffer = Buffer.alloc(0);
    this.#byteLength = 0;
    return received;
  }

  #grow(byteLength: number): void {
    const bytes = Math.max(firstBytes, byteLength, Math.min(this.#bytesMax, this.#buffer.length * 2));
    const grown = Buffer.allocUnsafeSlow(bytes);
    this.#buffer.copy(grown, 0, 0, this.#byteLength);
    this.#buffer = grown;
  }
}

/** Packs records into payloads of limited size, in order. */
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

  /** Adds a record. Returns a payload if one is complete; null while more records can be added. */
  push(record: PackedRecord): Payload | null {
    const isAlone = this.#strategy === "SingleRecord";
    const { together, alone, original } = record;
    const bytes = isAlone ? alone.length : together.length;
    this.#recordCount += 1;
    if (bytes > this.#bytesMax) {
      throw transformClientError(
        `record ${this.#recordCount} has ${bytes} bytes, more than the ${this.#bytesMax} of MaxPayloadInMB`,
      );
    }
    if (isAlone) {
      return { body: alone, recordCount: 1, originals: original === null ? null : Buffer.concat([original, lineFeed]) };
    }
    // A filtered record may be much shorter than the original, which a join keeps.
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

  /** Returns the last payload; null if no records are left. */
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
