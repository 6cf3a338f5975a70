/** One line of a container's output, or one event that a client put. */
export interface LogEvent {
  readonly timestampMs: number;
  readonly message: string;
  /** Unique in its stream, ascending. */
  readonly id: string;
}

/** An event that was just written. */
export type NewLogEvent = Pick<LogEvent, "timestampMs" | "message">;

/** Receives new events, in the order of each stream. Writers wait for it, so it must be quick. */
export interface LogFollower {
  wants(group: string, stream: string): boolean;
  receive(group: string, stream: string, events: readonly NewLogEvent[]): void | Promise<void>;
}

export interface LogGroup {
  readonly name: string;
  readonly createdMs: number;
  /** Null: events are kept up to the size limit of their streams. */
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
  /** Inclusive; null: from the beginning. */
  readonly startTimeMs: number | null;
  /** Exclusive; null: to the end. */
  readonly endTimeMs: number | null;
  /** Without a token: true starts with the oldest events, false with the newest page. */
  readonly startFromHead: boolean;
  readonly eventsMax: number;
  /** A token of an earlier page, which includes the direction. */
  readonly token: string | null;
}

/** A page of events in ascending time. At either end, the token in that direction equals the token of the request. */
export interface LogPage {
  readonly events: readonly LogEvent[];
  readonly forwardToken: string;
  readonly backwardToken: string;
}

/**
 * Container logs by group and stream. Errors are AwsError with CloudWatch Logs' codes and texts. Every stream is bounded in bytes:
 * the oldest go first. Implementations pass `log-streams.contract.ts`.
 */
export interface LogStreams extends AsyncDisposable {
  /** Returns names with a prefix, sorted. */
  groupNames(prefix: string): Promise<readonly string[]>;
  /** Returns null for an unknown group. */
  group(name: string): Promise<LogGroup | null>;
  /** Returns the retention of a group, without reading its streams; null: for ever. */
  retentionDays(group: string): Promise<number | null>;
  /** Returns names with a prefix, sorted, including streams whose first lines are still being written. */
  streamNames(group: string, prefix: string): Promise<readonly string[]>;
  /** Returns null for an unknown stream. */
  stream(group: string, name: string): Promise<LogStream | null>;
  /**
   * Reads a page, including every complete line that a writer got before. Events older than the group's retention are
   * excluded.
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
   * Returns a sink for a process's output: it takes bytes, makes an event of each line, and never waits. Creates group
   * and stream as needed. Output that the disk does not take in time is dropped above a limit, and a line reports its
   * size.
   */
  writer(group: string, stream: string): (chunk: Uint8Array) => void;
  /** Notifies a follower until the result is disposed. */
  follow(follower: LogFollower): Disposable;
  /** Deletes events older than their group's retention, and the remains of deletions that a crash interrupted. */
  prune(): Promise<void>;
}
