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
  readonly originals: readonly Buffer[];
}

export type BatchStrategy = "MultiRecord" | "SingleRecord";

/** Puts records together to requests of a bounded length, in their order. */
export class PayloadPacker {
  readonly #strategy: BatchStrategy;
  readonly #bytesMax: number;
  #records: PackedRecord[] = [];
  #byteLength = 0;
  #recordCount = 0;

  constructor(strategy: BatchStrategy, bytesMax: number) {
    this.#strategy = strategy;
    this.#bytesMax = bytesMax;
  }

  /** The payloads that are complete with this record. */
  push(record: PackedRecord): readonly Payload[] {
    const isAlone = this.#strategy === "SingleRecord";
    const bytes = isAlone ? record.alone.length : record.together.length;
    this.#recordCount += 1;
    if (bytes > this.#bytesMax) {
      throw clientError(
        `record ${this.#recordCount} has ${bytes} bytes, more than the ${this.#bytesMax} of MaxPayloadInMB`,
      );
    }
    if (isAlone) return [payloadOf([record], record.alone)];
    const full = this.#byteLength + bytes > this.#bytesMax ? this.end() : [];
    this.#records.push(record);
    this.#byteLength += bytes;
    return full;
  }

  end(): readonly Payload[] {
    if (this.#records.length === 0) return [];
    const records = this.#records;
    const body = Buffer.concat(
      records.map(({ together }) => together),
      this.#byteLength,
    );
    this.#records = [];
    this.#byteLength = 0;
    return [payloadOf(records, body)];
  }
}

function payloadOf(records: readonly PackedRecord[], body: Buffer): Payload {
  const originals = records.flatMap(({ original }) => (original === null ? [] : [original]));
  return { body, recordCount: records.length, originals };
}
