/** One line that a container wrote, or one event that a client put. */
export interface LogEvent {
  readonly timestampMs: number;
  readonly message: string;
  /** Unique in its stream, ascending. */
  readonly id: string;
}

/** An event that was just written. */
export type NewLogEvent = Pick<LogEvent, "timestampMs" | "message">;

/** Is told of what is written from now on, in the order of each stream. What it does must be quick: those who write wait for it. */
export interface LogFollower {
  wants(group: string, stream: string): boolean;
  take(group: string, stream: string, events: readonly NewLogEvent[]): void | Promise<void>;
}

export interface LogGroup {
  readonly name: string;
  readonly createdMs: number;
  /** null: kept as long as its streams' bounds allow. */
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
  /** Without a token: whether the oldest events come first, or the newest page does. */
  readonly startFromHead: boolean;
  readonly eventsMax: number;
  /** A token of an earlier page; it says the direction. */
  readonly token: string | null;
}

/** Events ascend in time on every page. At either end a page's token in that direction is the one that was asked with. */
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
  /** Sorted. */
  groupNames(prefix: string): Promise<readonly string[]>;
  /** Null for one that is not there. */
  group(name: string): Promise<LogGroup | null>;
  /** Of a group, without looking at its streams; null: for ever. */
  retentionDays(group: string): Promise<number | null>;
  /** Sorted; with those that a writer has been given lines for. */
  streamNames(group: string, prefix: string): Promise<readonly string[]>;
  /** Null for one that is not there. */
  stream(group: string, name: string): Promise<LogStream | null>;
  /** With every whole line that a writer was given before. Events older than the group's retention are not answered any more. */
  read(group: string, stream: string, options: LogReadOptions): Promise<LogPage>;

  createGroup(group: string): Promise<void>;
  createStream(group: string, stream: string): Promise<void>;
  setRetention(group: string, retentionDays: number | null): Promise<void>;
  deleteGroup(group: string): Promise<void>;
  deleteStream(group: string, stream: string): Promise<void>;

  /** Resolves when the events are stored. */
  append(group: string, stream: string, events: readonly NewLogEvent[]): Promise<void>;
  /**
   * For a process's output: takes bytes as they come, makes an event of each line, and never waits. Group and stream are made as
   * needed. What the disk does not take in time is dropped beyond a bound, and a line says how much.
   */
  writer(group: string, stream: string): (chunk: Uint8Array) => void;
  /** Until the result is disposed. */
  follow(follower: LogFollower): Disposable;
  /** Deletes what is older than its group's retention, and what a death in the middle of a deletion has left. */
  prune(): Promise<void>;
}
