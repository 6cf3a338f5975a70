import { mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { delay, TaskGroup } from "@galatea/base";
import type { BucketStore } from "../../objects/index.ts";
import type { Documents } from "../../records/index.ts";
import { emptyIfMissing } from "../absent.ts";
import { firstLineOf, lastLineOf, SegmentFile } from "../log-chunks.ts";
import type { GroupFacts, LogStorage, Segment } from "../log-storage.ts";
import type { LogStream, LogStreams } from "../log-streams.ts";
import { StoredLogStreams, type LogStreamsOptions } from "../stored-log-streams.ts";
import { bytesInMemory } from "./chunk-facts.ts";
import { ChunkObjects } from "./chunk-objects.ts";
import { ChunkWriter, deleteChunks } from "./chunk-writer.ts";
import { importDirectory } from "./import-directory.ts";
import { LocalStream, type LocalSegment, type LocalUsage } from "./local-stream.ts";
import {
  chunkKey,
  deletionKeptMs,
  LogRecords,
  streamPrefix,
  type ChunkRecord,
  type GroupRecord,
  type LogStreamId,
} from "./log-records.ts";

export interface ChunkedLogStreamsOptions extends LogStreamsOptions {
  readonly documents: Documents;
  readonly store: BucketStore;
  /** The bucket of the chunks, which no client may see (`hideBuckets`). */
  readonly bucket: string;
  /**
   * Directory of the lines that are not in the object store yet. Log files of a platform with records in SQLite are
   * moved from it to the object store.
   */
  readonly directory: string;
  /** Returns a new unique text of hex digits. */
  readonly newId: () => string;
  /** Maximum bytes of the local files. */
  readonly localBytesMax: number;
}

/** Time between two passes of the writer: with ten seconds for a pass, a kill loses the lines of a minute at most. */
export const storeIntervalMs = 50_000;
const mebibyte = 2 ** 20;
/** A stream has this number of full segments. */
const segmentsPerStream = 16;
const writerLimits = { openStreamsMax: 10_000, idleMsMax: 86_400_000, chunksMax: 1000 };
const objectLimits = { chunkBytesMax: 64 * mebibyte, cacheBytesMax: 32 * mebibyte };

/** A directory name that no log group has. */
const localName = ".open";

/** Opens log streams whose lines are chunks in an object store, with an index in the records. */
export async function openChunkedLogStreams(
  options: ChunkedLogStreamsOptions,
): Promise<LogStreams & { store(): Promise<void> }> {
  const storage = await ChunkedLogStorage.open(options);
  const streams = new StoredLogStreams(storage, options);
  return Object.assign(streams, { store: () => storage.store() });
}

class ChunkedLogStorage implements LogStorage {
  readonly #options: ChunkedLogStreamsOptions;
  readonly #records: LogRecords;
  readonly #objects: ChunkObjects;
  readonly #segmentBytesMax: number;
  readonly #localDirectory: string;
  /** Streams with local files, by group id and name. */
  readonly #locals = new Map<string, LocalStream>();
  readonly #usage: LocalUsage = { bytes: 0 };
  readonly #writer: ChunkWriter;
  readonly #tasks: TaskGroup;

  private constructor(options: ChunkedLogStreamsOptions, records: LogRecords) {
    const { store, bucket, logger, clock, localBytesMax } = options;
    this.#options = options;
    this.#records = records;
    this.#objects = new ChunkObjects({ store, bucket, logger, ...objectLimits });
    this.#segmentBytesMax = Math.floor(options.streamBytesMax / segmentsPerStream);
    this.#localDirectory = join(options.directory, localName);
    this.#writer = new ChunkWriter(this.#locals, {
      records,
      objects: this.#objects,
      logger,
      nowMs: () => clock.epochMs(),
      usage: this.#usage,
      localBytesMax,
      streamBytesMax: options.streamBytesMax,
      segmentBytesMax: this.#segmentBytesMax,
      ...writerLimits,
    });
    this.#tasks = new TaskGroup((error) => logger.error("upkeep of log lines failed", { error: String(error) }));
  }

  static async open(options: ChunkedLogStreamsOptions): Promise<ChunkedLogStorage> {
    const storage = new ChunkedLogStorage(options, await LogRecords.open(options.documents, options.logger));
    await mkdir(storage.#localDirectory, { recursive: true });
    await storage.#findLocalFiles();
    await importDirectory(options, storage, (group, stream, path) => storage.#local(group, stream).adopt(path));
    storage.#tasks.run((closing) => storage.#storePeriodically(closing));
    return storage;
  }

  /** Stores all lines that were appended before the call, and deletes chunks over the size limit of their stream. */
  async store(): Promise<void> {
    await this.#writer.store({ sealing: false });
  }

  async groupNames(): Promise<readonly string[]> {
    return [...this.#records.groups.keys()].sort();
  }

  async facts(group: string): Promise<GroupFacts | null> {
    const found = this.#records.groups.get(group);
    return found === undefined ? null : { createdMs: found.createdMs, retentionDays: found.retentionDays };
  }

  async groupBytes(group: string): Promise<number> {
    const { id } = this.#group(group);
    const local = new Map<string, number>();
    for (const stream of this.#locals.values()) {
      if (stream.groupId !== id || stream.id === null) continue;
      for (const { segment, bytes } of stream.segments) local.set(chunkKey(stream.id, segment), bytes);
    }
    let storedBytes = 0;
    for await (const { key, bytes } of this.#records.chunks(`${id}/`)) if (!local.has(key)) storedBytes += bytes;
    for (const bytes of local.values()) storedBytes += bytes;
    return storedBytes;
  }

  async makeGroup(group: string, facts: GroupFacts): Promise<void> {
    await this.#records.putGroup(group, { id: this.#options.newId(), ...facts });
  }

  async changeFacts(group: string, facts: GroupFacts): Promise<void> {
    await this.#records.putGroup(group, { ...this.#group(group), ...facts });
  }

  async removeGroup(group: string): Promise<void> {
    const record = this.#group(group);
    await this.#records.deleteGroup(group, record, this.#nowMs());
    for (const stream of this.#locals.values()) if (stream.groupId === record.id) await this.#removeLocal(stream);
    this.#sweepLater(`${record.id}/`);
  }

  async streamNames(group: string): Promise<readonly string[]> {
    return [...(await this.#records.streams(this.#group(group).id)).keys()].sort();
  }

  async hasStream(group: string, stream: string): Promise<boolean> {
    const { id } = this.#group(group);
    // A stream with local lines needs no record to be read, so its lines are accepted while the database is away.
    const local = this.#locals.get(localKey(id, stream));
    return (local !== undefined && local.id !== null) || (await this.#records.stream(id, stream)) !== null;
  }

  async stream(group: string, name: string): Promise<LogStream | null> {
    const found = await this.#find(group, name);
    if (found === null) return null;
    const { local, chunks, createdMs } = found;
    const files = local.map(({ segment, path }) => new SegmentFile(segment, path));
    const [first, last] = [await firstLineOf(files), await lastLineOf(files)];
    const firsts = [...chunks.map(({ firstMs }) => firstMs), ...(first === null ? [] : [first.timestampMs])];
    const lasts = [...chunks.map(({ lastMs }) => lastMs), ...(last === null ? [] : [last.timestampMs])];
    return {
      name,
      createdMs,
      firstEventMs: firsts.length === 0 ? null : Math.min(...firsts),
      lastEventMs: lasts.length === 0 ? null : Math.max(...lasts),
      storedBytes: [...local, ...chunks].reduce((sum, { bytes }) => sum + bytes, 0),
    };
  }

  async makeStream(group: string, stream: string): Promise<void> {
    const record = { id: this.#options.newId(), createdMs: this.#nowMs(), segmentNext: 1 };
    await this.#records.makeStream(this.#group(group).id, stream, record);
  }

  async removeStream(group: string, name: string): Promise<void> {
    const { id: groupId } = this.#group(group);
    const found = await this.#records.stream(groupId, name);
    if (found === null) return;
    const id = { groupId, streamId: found.id };
    await this.#records.deleteStream(id, name, this.#nowMs());
    const local = this.#locals.get(localKey(groupId, name));
    if (local !== undefined) await this.#removeLocal(local);
    this.#sweepLater(streamPrefix(id));
  }

  async removeOldestStream(group: string): Promise<void> {
    const { id } = this.#group(group);
    for await (const name of this.#records.streamsByOpening(id)) {
      if (!this.#locals.has(localKey(id, name))) return await this.removeStream(group, name);
    }
    const open = [...this.#locals.values()].filter(({ groupId }) => groupId === id);
    const [oldest] = open.sort((a, b) => a.lastWrittenMs - b.lastWrittenMs);
    if (oldest !== undefined) await this.removeStream(group, oldest.name);
  }

  async append(group: string, stream: string, lines: string): Promise<void> {
    await this.#local(group, stream).append(lines);
  }

  async segments(group: string, stream: string): Promise<readonly Segment[]> {
    const found = await this.#find(group, stream);
    if (found === null) return [];
    const { id, local, chunks } = found;
    const segments = [
      ...chunks.map((chunk) => this.#chunkSegment(id, chunk)),
      ...local.map((segment) => this.#localSegment(id, segment)),
    ];
    return segments.sort((a, b) => a.segment - b.segment);
  }

  async dropBefore(group: string, stream: string, timeMs: number): Promise<void> {
    const found = await this.#find(group, stream);
    if (found === null) return;
    const { id, local, chunks } = found;
    // The last lines of a chunk that is not sealed may be later than its record says.
    const isOld = ({ lastMs, isSealed }: ChunkRecord) => lastMs + (isSealed ? 0 : 2 * storeIntervalMs) < timeMs;
    const old = chunks.filter(isOld).map(({ segment }) => segment);
    const files = this.#locals.get(localKey(id.groupId, stream));
    for (const each of local) {
      const { bytes, segment, path } = each;
      const last = await lastLineOf([new SegmentFile(segment, path)]);
      if (last === null || last.timestampMs >= timeMs) continue;
      // New lines have arrived meanwhile.
      if (files === undefined || !files.isIdle || each.bytes !== bytes) continue;
      await files.drop(each);
      old.push(segment);
    }
    const keys = old.map((segment) => chunkKey(id, segment));
    await deleteChunks({ records: this.#records, objects: this.#objects }, keys);
  }

  async sweep(): Promise<void> {
    for await (const { prefix, deletedMs } of this.#records.deletions()) {
      await this.#sweep(prefix);
      if (deletedMs + deletionKeptMs < this.#nowMs()) await this.#records.endDeletion(prefix);
    }
  }

  /** Stores all lines and deletes the local files. Lines that cannot be stored stay in files for the next start. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#tasks[Symbol.asyncDispose]();
    await this.#writer.store({ sealing: true });
  }

  async #storePeriodically(closing: AbortSignal): Promise<never> {
    // The first pass stores the lines that a previous process left.
    for (;;) {
      await this.store();
      await delay(this.#options.clock, storeIntervalMs, closing);
    }
  }

  #nowMs(): number {
    return this.#options.clock.epochMs();
  }

  #group(name: string): GroupRecord {
    const group = this.#records.groups.get(name);
    if (group === undefined) throw new Error(`bug: the log group ${name} does not exist`);
    return group;
  }

  /** Returns the local files of a stream. A stream without any gets its first file with its next line. */
  #local(group: string, name: string): LocalStream {
    const { id } = this.#group(group);
    const key = localKey(id, name);
    let local = this.#locals.get(key);
    if (local === undefined) this.#locals.set(key, (local = this.#newLocal(id, name)));
    return local;
  }

  #newLocal(groupId: string, name: string): LocalStream {
    return new LocalStream({
      groupId,
      name,
      directory: this.#localDirectory,
      usage: this.#usage,
      records: this.#records,
      streamBytesMax: this.#options.streamBytesMax,
      segmentBytesMax: this.#segmentBytesMax,
      nowMs: () => this.#nowMs(),
      makeSpace: (stream, bytes) => this.#writer.makeSpace(stream, bytes),
    });
  }

  /** Finds files that a previous process left. Deletes those of groups and streams that do not exist any more. */
  async #findLocalFiles(): Promise<void> {
    const known = new Set([...this.#records.groups.values()].map(({ id }) => id));
    for (const groupId of await readdir(this.#localDirectory)) {
      const directory = join(this.#localDirectory, groupId);
      const names = known.has(groupId) ? await this.#records.streams(groupId) : new Map<string, string>();
      const nameOf = new Map([...names].map(([name, id]) => [id, name]));
      for (const streamId of await readdir(directory).catch(emptyIfMissing)) {
        const name = nameOf.get(streamId);
        if (name === undefined) {
          await rm(join(directory, streamId), { recursive: true });
          continue;
        }
        const local = this.#newLocal(groupId, name);
        await local.find(streamId);
        if (local.segments.length > 0) this.#locals.set(localKey(groupId, name), local);
      }
    }
  }

  /** Finds the segments of a stream: those with local files, and the other chunks. */
  async #find(group: string, name: string) {
    const { id: groupId } = this.#group(group);
    const record = await this.#records.stream(groupId, name);
    if (record === null) return null;
    const id = { groupId, streamId: record.id };
    // The local files are listed first: a segment that is stored meanwhile is then among the chunks, too.
    const stream = this.#locals.get(localKey(groupId, name));
    const local = stream?.streamId === record.id ? [...stream.segments] : [];
    const numbers = new Set(local.map(({ segment }) => segment));
    const chunks: ChunkRecord[] = [];
    for await (const chunk of this.#records.chunks(streamPrefix(id))) {
      if (!numbers.has(chunk.segment)) chunks.push(chunk);
    }
    return { id, createdMs: record.createdMs, local, chunks };
  }

  #chunkSegment(id: LogStreamId, chunk: ChunkRecord): Segment {
    const { segment, firstMs, lastMs, isSealed } = chunk;
    return {
      segment,
      times: isSealed ? { firstMs, lastMs } : null,
      open: () => this.#openChunk(id, segment, chunk),
    };
  }

  #localSegment(id: LogStreamId, { segment, path }: LocalSegment): Segment {
    const file = new SegmentFile(segment, path);
    return {
      segment,
      times: null,
      // The file is deleted when its lines are in the object store.
      open: async () => (await file.open()) ?? (await this.#openChunk(id, segment, null)),
    };
  }

  async #openChunk(id: LogStreamId, segment: number, chunk: ChunkRecord | null) {
    const lines = await this.#objects.get(chunkKey(id, segment), chunk);
    return lines === null ? null : bytesInMemory(lines);
  }

  async #removeLocal(stream: LocalStream): Promise<void> {
    this.#locals.delete(localKey(stream.groupId, stream.name));
    await stream.remove();
  }

  async #sweep(prefix: string): Promise<void> {
    await this.#objects.deleteBelow(prefix);
    await this.#records.deleteBelow(prefix);
  }

  /** Deletes the chunks of a deleted group or stream in the background. `sweep` repeats what fails or is interrupted. */
  #sweepLater(prefix: string): void {
    this.#tasks.run(() => this.#sweep(prefix));
  }
}

const localKey = (groupId: string, stream: string): string => `${groupId}/${stream}`;
