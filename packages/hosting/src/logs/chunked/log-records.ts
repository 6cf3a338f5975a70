import { AwsError, type Logger } from "@galatea/base";
import { logBucketPrefix } from "../../objects/index.ts";
import {
  DocumentConflict,
  readAllJson,
  type DocumentChange,
  type DocumentPosition,
  type Documents,
} from "../../records/index.ts";
import type { GroupFacts } from "../log-storage.ts";

/** A log group. A group that is deleted and created again has another id. */
export interface GroupRecord extends GroupFacts {
  readonly id: string;
}

export interface StreamRecord {
  readonly id: string;
  readonly createdMs: number;
  /** Segments of this number and above are not reserved by any platform. */
  readonly segmentNext: number;
}

/** The address of a stream: names may be used again after a deletion, ids are not. */
export interface LogStreamId {
  readonly groupId: string;
  readonly streamId: string;
}

/** A segment in the object store. */
export interface ChunkRecord {
  readonly segment: number;
  readonly firstMs: number;
  readonly lastMs: number;
  readonly lineCount: number;
  /** Bytes of the lines. The object of a chunk that is not sealed may have more lines. */
  readonly bytes: number;
  /** SHA-256 of these bytes, in hex. */
  readonly sha256: string;
  /** True if no line is added any more. */
  readonly isSealed: boolean;
}

/** Numbers of segments that one write reserves for a platform. */
export const segmentsReserved = 1000;

/** A deletion is repeated during this time, because a platform that hangs may store a chunk late. */
export const deletionKeptMs = 3_600_000;

const kinds = {
  bucket: "log-bucket",
  group: "log-group",
  stream: "log-stream",
  chunk: "log-chunk",
  deletion: "log-deletion",
} as const;
const bucketKey = "name";
const openedOrder = "opened";
const documentsPerWrite = 500;

/** Returns the name of the bucket with the chunks of these records; null: the records have had no chunks so far. */
export async function readLogBucket(documents: Documents): Promise<string | null> {
  return (await documents.get(kinds.bucket, bucketKey))?.body ?? null;
}

/** Returns the name of the bucket with the chunks of these records. Chooses and records it at the first call. */
export async function chooseLogBucket(documents: Documents, newId: () => string): Promise<string> {
  const found = await readLogBucket(documents);
  if (found !== null) return found;
  const body = `${logBucketPrefix}${newId()}`;
  await documents.write([{ do: "put", kind: kinds.bucket, key: bucketKey, body, expects: "absent" }]);
  return body;
}

export const streamPrefix = ({ groupId, streamId }: LogStreamId): string => `${groupId}/${streamId}/`;

/** Returns the key of a chunk, both of its record and of its object. */
export const chunkKey = (stream: LogStreamId, segment: number): string =>
  streamPrefix(stream) + String(segment).padStart(10, "0");

/**
 * The records of groups, streams and chunks: the index of the lines. Only the platform that holds the records writes
 * them, so groups are read once.
 */
export class LogRecords {
  readonly #documents: Documents;
  readonly #groups: Map<string, GroupRecord>;

  private constructor(documents: Documents, groups: Map<string, GroupRecord>) {
    this.#documents = documents;
    this.#groups = groups;
  }

  static async open(documents: Documents, logger: Logger): Promise<LogRecords> {
    const groups = new Map<string, GroupRecord>();
    for await (const { key, value } of readAllJson<GroupRecord>(documents, kinds.group, { logger })) {
      groups.set(key, value);
    }
    return new LogRecords(documents, groups);
  }

  get groups(): ReadonlyMap<string, GroupRecord> {
    return this.#groups;
  }

  async putGroup(name: string, group: GroupRecord): Promise<void> {
    const body = JSON.stringify(group);
    await this.#documents.write([{ do: "put", kind: kinds.group, key: name, body, expects: "any" }]);
    this.#groups.set(name, group);
  }

  /** Deletes a group. `sweep` then deletes its streams and chunks. */
  async deleteGroup(name: string, { id }: GroupRecord, nowMs: number): Promise<void> {
    await this.#documents.write([
      { do: "delete", kind: kinds.group, key: name, expects: "any" },
      deletionOf(`${id}/`, nowMs),
    ]);
    this.#groups.delete(name);
  }

  async stream(groupId: string, name: string): Promise<StreamRecord | null> {
    const found = await this.#documents.get(kinds.stream, `${groupId}/${name}`);
    return found === null ? null : (JSON.parse(found.body) as StreamRecord);
  }

  /** Returns the ids of a group's streams by name. */
  async streams(groupId: string): Promise<ReadonlyMap<string, string>> {
    const prefix = `${groupId}/`;
    const streams = new Map<string, string>();
    for await (const { key, body } of this.#all(kinds.stream, { prefix })) {
      streams.set(key.slice(prefix.length), (JSON.parse(body) as StreamRecord).id);
    }
    return streams;
  }

  /** Yields the names of a group's streams, those that no platform has opened for the longest time first. */
  async *streamsByOpening(groupId: string): AsyncGenerator<string> {
    const prefix = `${groupId}/`;
    for await (const { key } of this.#all(kinds.stream, { prefix, order: openedOrder })) {
      yield key.slice(prefix.length);
    }
  }

  async makeStream(groupId: string, name: string, stream: StreamRecord): Promise<void> {
    await this.#documents.write([{ ...streamOf(groupId, name, stream, stream.createdMs), expects: "absent" }]);
  }

  /** Reserves numbers of segments for this platform. Returns the first one and the stream's id. */
  async reserveSegments(
    groupId: string,
    name: string,
    nowMs: number,
  ): Promise<{ readonly id: string; readonly first: number }> {
    const found = await this.#documents.get(kinds.stream, `${groupId}/${name}`);
    if (found === null) {
      throw new AwsError("ResourceNotFoundException", "The specified log stream does not exist.");
    }
    const stream = JSON.parse(found.body) as StreamRecord;
    const reserved = { ...stream, segmentNext: stream.segmentNext + segmentsReserved };
    await this.#documents.write([{ ...streamOf(groupId, name, reserved, nowMs), expects: found.version }]);
    return { id: stream.id, first: stream.segmentNext };
  }

  async deleteStream(stream: LogStreamId, name: string, nowMs: number): Promise<void> {
    await this.#documents.write([
      { do: "delete", kind: kinds.stream, key: `${stream.groupId}/${name}`, expects: "any" },
      deletionOf(streamPrefix(stream), nowMs),
    ]);
  }

  /** Yields the chunks of a stream or a group, sorted by stream and segment. */
  async *chunks(prefix: string): AsyncGenerator<ChunkRecord & { readonly key: string }> {
    for await (const { key, body } of this.#all(kinds.chunk, { prefix })) {
      yield { key, ...(JSON.parse(body) as ChunkRecord) };
    }
  }

  /** Makes the record of a chunk, unless there is one. */
  async beginChunk(stream: LogStreamId, chunk: ChunkRecord): Promise<void> {
    try {
      await this.#documents.write([{ ...chunkOf(stream, chunk), expects: "absent" }]);
    } catch (error) {
      if (!(error instanceof DocumentConflict)) throw error;
    }
  }

  async putChunk(stream: LogStreamId, chunk: ChunkRecord): Promise<void> {
    await this.#documents.write([{ ...chunkOf(stream, chunk), expects: "any" }]);
  }

  async deleteChunks(keys: readonly string[]): Promise<void> {
    await this.#deleteAll(kinds.chunk, keys);
  }

  /** Yields the prefixes of deleted groups and streams, and the time of each deletion. */
  async *deletions(): AsyncGenerator<{ readonly prefix: string; readonly deletedMs: number }> {
    for await (const { key, body } of this.#all(kinds.deletion, { prefix: "" })) {
      yield { prefix: key, deletedMs: Number(body) };
    }
  }

  /** Deletes the records below the prefix of a deletion. */
  async deleteBelow(prefix: string): Promise<void> {
    for (const kind of [kinds.chunk, kinds.stream]) {
      const keys: string[] = [];
      for await (const { key } of this.#all(kind, { prefix })) keys.push(key);
      await this.#deleteAll(kind, keys);
    }
  }

  async endDeletion(prefix: string): Promise<void> {
    await this.#deleteAll(kinds.deletion, [prefix]);
  }

  async *#all(kind: string, { prefix, order = null }: { readonly prefix: string; readonly order?: string | null }) {
    for (let after: DocumentPosition | null = null; ;) {
      const page = await this.#documents.list({ kind, order, isDescending: false, prefix, after, limit: 1000 });
      yield* page.documents;
      if (page.next === null) return;
      after = page.next;
    }
  }

  async #deleteAll(kind: string, keys: readonly string[]): Promise<void> {
    for (let at = 0; at < keys.length; at += documentsPerWrite) {
      const some = keys.slice(at, at + documentsPerWrite);
      await this.#documents.write(some.map((key) => ({ do: "delete", kind, key, expects: "any" })));
    }
  }
}

const deletionOf = (prefix: string, nowMs: number) =>
  ({ do: "put", kind: kinds.deletion, key: prefix, body: String(nowMs), expects: "any" }) satisfies DocumentChange;

const chunkOf = (stream: LogStreamId, chunk: ChunkRecord) => ({
  do: "put" as const,
  kind: kinds.chunk,
  key: chunkKey(stream, chunk.segment),
  body: JSON.stringify(chunk),
});

const streamOf = (groupId: string, name: string, stream: StreamRecord, openedMs: number) => ({
  do: "put" as const,
  kind: kinds.stream,
  key: `${groupId}/${name}`,
  body: JSON.stringify(stream),
  orders: { [openedOrder]: `${groupId}/${String(openedMs).padStart(15, "0")}` },
});
