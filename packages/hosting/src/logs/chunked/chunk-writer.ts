import { rm } from "node:fs/promises";
import { SerialQueue, type Logger } from "@galatea/base";
import { emptyIfMissing } from "../absent.ts";
import { describeChunk } from "./chunk-facts.ts";
import type { ChunkObjects } from "./chunk-objects.ts";
import { chunkKey, streamPrefix, type LogRecords, type LogStreamId } from "./log-records.ts";
import { readLocalLines, type LocalSegment, type LocalStream, type LocalUsage } from "./local-stream.ts";

export interface ChunkWriterOptions {
  readonly records: LogRecords;
  readonly objects: ChunkObjects;
  readonly logger: Logger;
  readonly nowMs: () => number;
  /** Maximum number of streams with an open segment. Above it, the ones written longest ago are sealed. */
  readonly openStreamsMax: number;
  /** An open segment without a new line for this time is sealed. */
  readonly idleMsMax: number;
  readonly usage: LocalUsage;
  /** Maximum bytes of local files, of all streams. */
  readonly localBytesMax: number;
  /** Maximum bytes and number of the chunks of one stream. The oldest are deleted first. */
  readonly streamBytesMax: number;
  readonly segmentBytesMax: number;
  readonly chunksMax: number;
}

/** Number of segments that are stored at the same time. */
const concurrencyMax = 4;
/** A pass ends after this number of failures; the next pass begins with other streams. */
const failuresMax = 4;

interface Outage {
  droppedCount: number;
}

/**
 * Stores local segments as chunks. The record of a chunk is written before its first object, so that no object is
 * without a record. Each pass replaces the object by one with more lines, and then the record. A kill between the two
 * leaves a record of fewer lines than the object has; readers get all lines of the object.
 */
export class ChunkWriter {
  readonly #options: ChunkWriterOptions;
  /** Streams with local files, by group id and name. The ones whose pass failed are last. */
  readonly #streams: Map<string, LocalStream>;
  readonly #passes = new SerialQueue();
  readonly #spaces = new SerialQueue();
  #outage: Outage | null = null;

  constructor(streams: Map<string, LocalStream>, options: ChunkWriterOptions) {
    this.#streams = streams;
    this.#options = options;
  }

  /**
   * Stores all lines that were appended before the call. `sealing`: also closes all segments, and deletes the local
   * files. Failures are logged; the lines stay in the local files, and the next pass stores them.
   */
  store({ sealing }: { readonly sealing: boolean }): Promise<void> {
    return this.#passes.run(async () => {
      const sealed = sealing ? new Set(this.#streams.values()) : this.#idleStreams();
      const waiting = [...this.#streams];
      let failureCount = 0;
      const work = async () => {
        for (;;) {
          const next = failureCount < failuresMax ? waiting.shift() : undefined;
          if (next === undefined) return;
          const [key, stream] = next;
          try {
            if (sealed.has(stream)) await stream.close();
            for (const segment of stream.segments.slice()) await this.#storeSegment(stream, segment);
            if (stream.segments.length === 0) this.#forget(key, stream);
          } catch (error) {
            if (stream.isDeleted) continue;
            failureCount += 1;
            this.#streams.delete(key);
            this.#streams.set(key, stream);
            this.#failed(stream, error);
          }
        }
      };
      await Promise.all(Array.from({ length: concurrencyMax }, work));
      if (failureCount === 0) this.#succeeded();
    });
  }

  /**
   * Keeps the local files below their limit: deletes the files written longest ago, first those whose lines are all in
   * the object store. Other lines are lost; they are counted and logged.
   */
  makeSpace(writing: LocalStream, bytes: number): Promise<void> {
    return this.#spaces.run(async () => {
      let surplus = this.#options.usage.bytes + bytes - this.#options.localBytesMax;
      if (surplus <= 0) return;
      const all = [...this.#streams.values()].flatMap((stream) =>
        stream.segments.map((segment) => ({ stream, segment })),
      );
      const isStored = ({ segment }: (typeof all)[number]) => segment.storedBytes === segment.bytes;
      all.sort(
        (a, b) => Number(isStored(b)) - Number(isStored(a)) || a.segment.lastWrittenMs - b.segment.lastWrittenMs,
      );
      for (const { stream, segment } of all) {
        if (surplus <= 0) return;
        // A file that another stream is appending to stays.
        if (stream !== writing && !stream.isIdle) continue;
        surplus -= segment.bytes;
        await this.#dropLines(stream, segment);
      }
    });
  }

  /** Deletes a local file. Counts its lines that are not in the object store. */
  async #dropLines(stream: LocalStream, segment: LocalSegment): Promise<void> {
    stream.forget(segment);
    if (segment.storedBytes < segment.bytes) this.#countLost(segment, await readLocalLines(segment));
    await rm(segment.path, { force: true });
  }

  #countLost({ storedBytes }: LocalSegment, lines: Buffer): void {
    const outage = (this.#outage ??= { droppedCount: 0 });
    if (outage.droppedCount === 0) {
      this.#options.logger.error(
        "log lines are lost: they cannot be stored, and the local files have reached their limit; the oldest are dropped",
        { bytesMax: this.#options.localBytesMax },
      );
    }
    for (let at = storedBytes; (at = lines.indexOf(10, at) + 1) > 0;) outage.droppedCount += 1;
  }

  #idleStreams(): ReadonlySet<LocalStream> {
    const { openStreamsMax, idleMsMax, nowMs } = this.#options;
    const streams = [...this.#streams.values()];
    const surplus = streams.length - openStreamsMax;
    const oldest = surplus <= 0 ? [] : streams.sort((a, b) => a.lastWrittenMs - b.lastWrittenMs).slice(0, surplus);
    const sinceMs = nowMs() - idleMsMax;
    return new Set([...oldest, ...streams.filter(({ lastWrittenMs }) => lastWrittenMs < sinceMs)]);
  }

  async #storeSegment(stream: LocalStream, segment: LocalSegment): Promise<void> {
    const { records, objects } = this.#options;
    const id = stream.id;
    const isSealed = !stream.isOpen(segment);
    if (id === null || stream.isDeleted || (segment.storedBytes === segment.bytes && !isSealed)) return;
    const { bytes } = segment;
    const lines = await readLocalLines(segment).catch(emptyIfMissing);
    // The segment was dropped meanwhile.
    if (Array.isArray(lines)) return;
    if (lines.byteLength > 0) {
      const about = { segment: segment.segment, isSealed, fallbackMs: segment.lastWrittenMs };
      const isNew = segment.storedBytes === 0;
      if (isNew) await records.beginChunk(id, await describeChunk(Buffer.alloc(0), { ...about, isSealed: false }));
      if (segment.storedBytes < bytes) await objects.put(chunkKey(id, segment.segment), lines);
      await records.putChunk(id, await describeChunk(lines, about));
      if (isNew) await this.#deleteOldest(id);
    }
    segment.storedBytes = bytes;
    if (isSealed) await stream.drop(segment);
  }

  /** Deletes the oldest chunks of a stream over its limits. The newest one counts as full, because it may grow. */
  async #deleteOldest(id: LogStreamId): Promise<void> {
    const { records, objects, streamBytesMax, segmentBytesMax, chunksMax } = this.#options;
    const chunks: { readonly key: string; readonly bytes: number }[] = [];
    for await (const chunk of records.chunks(streamPrefix(id))) chunks.push(chunk);
    let count = chunks.length;
    let bytes = segmentBytesMax;
    for (const chunk of chunks.slice(0, -1)) bytes += chunk.bytes;
    const surplus = chunks.filter((chunk) => {
      if (bytes <= streamBytesMax && count <= chunksMax) return false;
      [bytes, count] = [bytes - chunk.bytes, count - 1];
      return true;
    });
    await deleteChunks(
      { records, objects },
      surplus.map(({ key }) => key),
    );
  }

  /** Forgets a stream without local lines, unless a line is being appended to it. */
  #forget(key: string, stream: LocalStream): void {
    if (stream.isIdle && stream.segments.length === 0) this.#streams.delete(key);
  }

  #failed(stream: LocalStream, error: unknown): void {
    if (this.#outage !== null) return;
    this.#outage = { droppedCount: 0 };
    this.#options.logger.error("log lines cannot be stored; they stay in local files until the store responds", {
      stream: stream.name,
      error: String(error),
    });
  }

  #succeeded(): void {
    if (this.#outage === null) return;
    const { droppedCount } = this.#outage;
    this.#outage = null;
    this.#options.logger.info("log lines are stored again", { droppedCount });
  }
}

/** Deletes chunks. The record of each is deleted after its object, so that no object is left without a record. */
export async function deleteChunks(
  { records, objects }: Pick<ChunkWriterOptions, "records" | "objects">,
  keys: readonly string[],
): Promise<void> {
  await objects.delete(keys);
  await records.deleteChunks(keys);
}
