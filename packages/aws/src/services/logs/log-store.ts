/** Where CloudWatch Logs reads and writes: the part of hosting's container logs that it needs. Errors are AwsError. */
export interface LogStore {
  /** Sorted, as those of streams are. */
  groupNames(prefix: string): Promise<readonly string[]>;
  /** Null for one that is not there. */
  group(name: string): Promise<StoredGroup | null>;
  streamNames(group: string, prefix: string): Promise<readonly string[]>;
  /** Of a group, without looking at its streams; null: for ever. */
  retentionDays(group: string): Promise<number | null>;
  /** Null for one that is not there. */
  stream(group: string, name: string): Promise<StoredStream | null>;
  /** Events older than the group's retention are not answered any more. */
  read(group: string, stream: string, options: LogStoreRead): Promise<LogStorePage>;
  createGroup(group: string): Promise<void>;
  createStream(group: string, stream: string): Promise<void>;
  setRetention(group: string, retentionDays: number | null): Promise<void>;
  deleteGroup(group: string): Promise<void>;
  deleteStream(group: string, stream: string): Promise<void>;
  append(
    group: string,
    stream: string,
    events: readonly { readonly timestampMs: number; readonly message: string }[],
  ): Promise<void>;
  /** Until the result is disposed. */
  follow(follower: StoreFollower): Disposable;
}

/** Is told of what is written from now on, in the order of each stream. What it does must be quick. */
export interface StoreFollower {
  wants(group: string, stream: string): boolean;
  take(
    group: string,
    stream: string,
    events: readonly Pick<LogStoreEvent, "timestampMs" | "message">[],
  ): void | Promise<void>;
}

export interface StoredGroup {
  readonly name: string;
  readonly createdMs: number;
  readonly retentionDays: number | null;
  readonly storedBytes: number;
}

export interface StoredStream {
  readonly name: string;
  readonly createdMs: number;
  readonly firstEventMs: number | null;
  readonly lastEventMs: number | null;
  readonly storedBytes: number;
}

export interface LogStoreRead {
  readonly startTimeMs: number | null;
  /** Exclusive. */
  readonly endTimeMs: number | null;
  readonly startFromHead: boolean;
  readonly eventsMax: number;
  readonly token: string | null;
}

export interface LogStoreEvent {
  readonly timestampMs: number;
  readonly message: string;
  readonly id: string;
}

export interface LogStorePage {
  readonly events: readonly LogStoreEvent[];
  readonly forwardToken: string;
  readonly backwardToken: string;
}
