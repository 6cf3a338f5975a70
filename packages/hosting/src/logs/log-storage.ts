import type { LogStream } from "./log-streams.ts";

export interface GroupFacts {
  readonly createdMs: number;
  readonly retentionDays: number | null;
}

/** The bytes of a segment while they are read. More bytes may be appended meanwhile; the first ones do not change. */
export interface SegmentBytes extends AsyncDisposable {
  byteLength(): Promise<number>;
  /** Reads up to `byteLength` bytes. Returns fewer only at the end. */
  read(offset: number, byteLength: number): Promise<Buffer>;
}

/** A part of a stream: lines in the order in which they were appended. A later segment has a greater number. */
export interface Segment {
  readonly segment: number;
  /** The times of its events; null: unknown, or more events may follow. */
  readonly times: { readonly firstMs: number; readonly lastMs: number } | null;
  /** Resolves with null if the segment was deleted meanwhile. */
  open(): Promise<SegmentBytes | null>;
}

/**
 * The storage of log streams. Callers check that groups and streams exist, and serialize the calls that
 * create or remove them.
 */
export interface LogStorage extends AsyncDisposable {
  /** Returns all names, sorted. */
  groupNames(): Promise<readonly string[]>;
  /** Resolves with null for an unknown group. */
  facts(group: string): Promise<GroupFacts | null>;
  groupBytes(group: string): Promise<number>;
  makeGroup(group: string, facts: GroupFacts): Promise<void>;
  changeFacts(group: string, facts: GroupFacts): Promise<void>;
  /** Removes a group with its streams. A crash leaves the whole group or nothing that readers see. */
  removeGroup(group: string): Promise<void>;

  /** Returns all names, sorted. */
  streamNames(group: string): Promise<readonly string[]>;
  hasStream(group: string, stream: string): Promise<boolean>;
  /** Resolves with null for an unknown stream. */
  stream(group: string, stream: string): Promise<LogStream | null>;
  makeStream(group: string, stream: string): Promise<void>;
  removeStream(group: string, stream: string): Promise<void>;
  /** Removes the stream that was written longest ago. */
  removeOldestStream(group: string): Promise<void>;

  /** Appends complete lines. Deletes the oldest segments if the stream exceeds its size limit. */
  append(group: string, stream: string, lines: string): Promise<void>;
  /** Returns the segments, ascending by number. */
  segments(group: string, stream: string): Promise<readonly Segment[]>;
  /** Deletes the segments whose events are all older than a time. Numbers of segments never repeat. */
  dropBefore(group: string, stream: string, timeMs: number): Promise<void>;
  /** Deletes what an interrupted call left behind. */
  sweep(): Promise<void>;
}
