/** One line of a container's output, or one event that a client put. */
export interface LogEvent {
  readonly timestampMs: number;
  readonly message: string;
  /** Unique in the stream; ids of later events are greater. */
  readonly id: string;
}

/** An event without an id, before or while it is written. */
export type NewLogEvent = Pick<LogEvent, "timestampMs" | "message">;

/** A receiver of new events, in the order of each stream. Writers wait for `receive`, so it must be quick. */
export interface LogFollower {
  wants(group: string, stream: string): boolean;
  receive(group: string, stream: string, events: readonly NewLogEvent[]): void | Promise<void>;
}

export interface LogGroup {
  readonly name: string;
  readonly createdMs: number;
  /** Null: events are deleted only when their stream exceeds its size limit. */
  readonly retentionDays: number | null;
  readonly storedBytes: number;
}

export interface LogStream {
  readonly name: string;
  readonly createdMs: number;
  readonly firstEventMs: number | null;
  readonly lastEventMs: number | null;
  readonly storedBytes: number;
}

export interface LogReadOptions {
  /** Inclusive epoch time; null: from the beginning. */
  readonly startTimeMs: number | null;
  /** Exclusive epoch time; null: to the end. */
  readonly endTimeMs: number | null;
  /** Used if `token` is null: true starts with the oldest events, false with the newest page. */
  readonly startFromHead: boolean;
  readonly eventsMax: number;
  /** A token of an earlier page; the token includes the reading direction. */
  readonly token: string | null;
}

/** A page of events, oldest first. At either end of the stream, the token in that direction equals the token of the request. */
export interface LogPage {
  readonly events: readonly LogEvent[];
  readonly forwardToken: string;
  readonly backwardToken: string;
}

/**
 * Container logs by group and stream. Errors are AwsError with CloudWatch Logs' codes and texts. Every stream has a maximum size;
 * the oldest events are deleted first. Implementations pass `log-streams.contract.ts`.
 */
export interface LogStreams extends AsyncDisposable {
  /** Returns names with a prefix, sorted. */
  groupNames(prefix: string): Promise<readonly string[]>;
  /** Returns null for an unknown group. */
  group(name: string): Promise<LogGroup | null>;
  /** Returns the retention of a group; null: events are kept forever. Does not read the group's streams. */
  retentionDays(group: string): Promise<number | null>;
  /** Returns names with a prefix, sorted, including streams whose first lines are still being written. */
  streamNames(group: string, prefix: string): Promise<readonly string[]>;
  /** Returns null for an unknown stream. */
  stream(group: string, name: string): Promise<LogStream | null>;
  /**
   * Reads a page, including every complete line that a writer received before the call. Events older than the group's retention
   * are excluded.
   */
  read(group: string, stream: string, options: LogReadOptions): Promise<LogPage>;

  createGroup(group: string): Promise<void>;
  createStream(group: string, stream: string): Promise<void>;
  setRetention(group: string, retentionDays: number | null): Promise<void>;
  deleteGroup(group: string): Promise<void>;
  deleteStream(group: string, stream: string): Promise<void>;

  /** Resolves when the events are stored. */
  append(group: string, stream: string, events: readonly NewLogEvent[]): Promise<void>;
  /**
   * Returns a function that writes a process's output: each line becomes an event, and the function never blocks. Creates the
   * group and the stream if needed. If the disk is too slow, output above a limit is dropped, and a log line reports the number
   * of dropped lines.
   */
  writer(group: string, stream: string): (chunk: Uint8Array) => void;
  /** Notifies a follower until the result is disposed. */
  follow(follower: LogFollower): Disposable;
  /** Deletes events older than their group's retention, and files that an interrupted deletion left behind. */
  prune(): Promise<void>;
}
