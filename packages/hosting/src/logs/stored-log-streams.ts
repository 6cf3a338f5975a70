import { AwsError, type Clock, type Logger, Semaphore } from "@galatea/base";
import { LogFollowers } from "./log-followers.ts";
import { formatLogLine } from "./log-lines.ts";
import { readLogPage } from "./log-reading.ts";
import type { GroupFacts, LogStorage } from "./log-storage.ts";
import type {
  LogFollower,
  LogGroup,
  LogPage,
  LogReadOptions,
  LogStream,
  LogStreams,
  NewLogEvent,
} from "./log-streams.ts";
import { LogWriter } from "./log-writer.ts";

export interface LogLimits {
  /** Maximum size of one stream, in bytes. */
  readonly streamBytesMax: number;
  /**
   * Maximum number of streams of one group. Above it, clients get an error, and a new stream of a container replaces
   * the stream that was written longest ago.
   */
  readonly streamsMax: number;
  /** Maximum number of groups that clients can create. Groups of containers are not limited. */
  readonly groupsMax: number;
}

export interface LogStreamsOptions extends LogLimits {
  readonly clock: Clock;
  readonly logger: Logger;
}

const lineLengthMax = 256 * 1024;
const waitingLengthMax = 4 * 1024 * 1024;

/** Log streams over a storage: limits, errors, writers, followers and pages. Owns the storage. */
export class StoredLogStreams implements LogStreams {
  readonly #storage: LogStorage;
  readonly #options: LogStreamsOptions;
  /** Writers with text that is not stored yet, and the group of each writer. */
  readonly #writers = new Map<LogWriter, string>();
  /** Serializes the creation and deletion of groups and streams. */
  readonly #changeLock = new Semaphore(1);
  readonly #never = new AbortController().signal;
  readonly #followers: LogFollowers;
  #deletedCount = 0;

  constructor(storage: LogStorage, options: LogStreamsOptions) {
    this.#storage = storage;
    this.#options = options;
    this.#followers = new LogFollowers((error) =>
      options.logger.error("a follower of log lines failed", { error: String(error) }),
    );
  }

  async groupNames(prefix: string): Promise<readonly string[]> {
    return (await this.#storage.groupNames()).filter((name) => name.startsWith(prefix));
  }

  async group(name: string): Promise<LogGroup | null> {
    const facts = await this.#storage.facts(name);
    return facts === null ? null : { name, ...facts, storedBytes: await this.#storage.groupBytes(name) };
  }

  async retentionDays(group: string): Promise<number | null> {
    return (await this.#existing(group)).retentionDays;
  }

  async streamNames(group: string, prefix: string): Promise<readonly string[]> {
    await this.#written(group);
    await this.#existing(group);
    return (await this.#storage.streamNames(group)).filter((name) => name.startsWith(prefix));
  }

  async stream(group: string, name: string): Promise<LogStream | null> {
    checkStreamName(name);
    return await this.#storage.stream(group, name);
  }

  async read(group: string, stream: string, options: LogReadOptions): Promise<LogPage> {
    await this.#written(group);
    const { retentionDays } = await this.#existing(group);
    await this.#checkStream(group, stream);
    const segments = await this.#storage.segments(group, stream);
    if (retentionDays === null) return await readLogPage(segments, options);
    const startTimeMs = Math.max(options.startTimeMs ?? 0, this.#keptSinceMs(retentionDays));
    return await readLogPage(segments, { ...options, startTimeMs });
  }

  async createGroup(group: string): Promise<void> {
    using _lock = await this.#changeLock.acquire(this.#never);
    if ((await this.#storage.facts(group)) !== null) {
      throw new AwsError("ResourceAlreadyExistsException", "The specified log group already exists");
    }
    const { groupsMax } = this.#options;
    if ((await this.#storage.groupNames()).length >= groupsMax)
      throw new AwsError("LimitExceededException", `Resource limit exceeded: ${groupsMax} log groups`);
    await this.#makeGroup(group);
  }

  async createStream(group: string, stream: string): Promise<void> {
    checkStreamName(stream);
    using _lock = await this.#changeLock.acquire(this.#never);
    await this.#existing(group);
    if (await this.#storage.hasStream(group, stream)) {
      throw new AwsError("ResourceAlreadyExistsException", "The specified log stream already exists");
    }
    if ((await this.#storage.streamNames(group)).length >= this.#options.streamsMax) {
      throw new AwsError("LimitExceededException", `Resource limit exceeded: ${this.#options.streamsMax} log streams`);
    }
    await this.#storage.makeStream(group, stream);
  }

  async setRetention(group: string, retentionDays: number | null): Promise<void> {
    using _lock = await this.#changeLock.acquire(this.#never);
    const { createdMs } = await this.#existing(group);
    await this.#storage.changeFacts(group, { createdMs, retentionDays });
  }

  async deleteGroup(group: string): Promise<void> {
    using _lock = await this.#changeLock.acquire(this.#never);
    await this.#existing(group);
    this.#deletedCount++;
    await this.#storage.removeGroup(group);
  }

  async deleteStream(group: string, stream: string): Promise<void> {
    using _lock = await this.#changeLock.acquire(this.#never);
    await this.#existing(group);
    await this.#checkStream(group, stream);
    this.#deletedCount++;
    await this.#storage.removeStream(group, stream);
  }

  async append(group: string, stream: string, events: readonly NewLogEvent[]): Promise<void> {
    await this.#existing(group);
    await this.#checkStream(group, stream);
    await this.#append(group, stream, events.map((event) => formatLogLine(event.timestampMs, event.message)).join(""));
  }

  writer(group: string, stream: string): (chunk: Uint8Array) => void {
    // The value of `#deletedCount` when the writer's group and stream last existed. A later deletion may have removed
    // them, so they are created again.
    let preparedAt = -1;
    const writer = new LogWriter({
      clock: this.#options.clock,
      lineLengthMax,
      waitingLengthMax,
      append: async (lines) => {
        const deletedCount = this.#deletedCount;
        if (preparedAt !== deletedCount) await this.#prepare(group, stream);
        preparedAt = deletedCount;
        await this.#append(group, stream, lines);
      },
      idle: () => this.#writers.delete(writer),
      failed: (error) => {
        preparedAt = -1;
        this.#options.logger.warning("log lines could not be written", { group, stream, error: String(error) });
      },
    });
    return (chunk) => {
      this.#writers.set(writer, group);
      writer.write(chunk);
    };
  }

  follow(follower: LogFollower): Disposable {
    return this.#followers.add(follower);
  }

  async prune(): Promise<void> {
    await this.#storage.sweep();
    for (const group of await this.#storage.groupNames()) {
      const retentionDays = (await this.#storage.facts(group))?.retentionDays ?? null;
      if (retentionDays === null) continue;
      const sinceMs = this.#keptSinceMs(retentionDays);
      for (const name of await this.#storage.streamNames(group)) await this.#storage.dropBefore(group, name, sinceMs);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#writers.keys()].map((writer) => writer.close()));
    this.#writers.clear();
    await this.#storage[Symbol.asyncDispose]();
  }

  #keptSinceMs(retentionDays: number): number {
    return this.#options.clock.epochMs() - retentionDays * 86_400_000;
  }

  /**
   * Waits for pending writes of a group. Without this, a reader could miss output that a container has already written.
   */
  async #written(group: string): Promise<void> {
    await Promise.all([...this.#writers].flatMap(([writer, own]) => (own === group ? [writer.written()] : [])));
  }

  async #append(group: string, stream: string, lines: string): Promise<void> {
    await this.#storage.append(group, stream, lines);
    await this.#followers.notify(group, stream, lines);
  }

  /** Creates the group and the stream for a writer. Deletes the oldest stream of a full group. */
  async #prepare(group: string, stream: string): Promise<void> {
    checkStreamName(stream);
    using _lock = await this.#changeLock.acquire(this.#never);
    if ((await this.#storage.facts(group)) === null) await this.#makeGroup(group);
    if (await this.#storage.hasStream(group, stream)) return;
    const { length } = await this.#storage.streamNames(group);
    if (length >= this.#options.streamsMax) {
      this.#deletedCount++;
      await this.#storage.removeOldestStream(group);
    }
    await this.#storage.makeStream(group, stream);
  }

  async #makeGroup(group: string): Promise<void> {
    await this.#storage.makeGroup(group, { createdMs: this.#options.clock.epochMs(), retentionDays: null });
  }

  async #existing(group: string): Promise<GroupFacts> {
    const facts = await this.#storage.facts(group);
    if (facts === null) throw new AwsError("ResourceNotFoundException", "The specified log group does not exist.");
    return facts;
  }

  async #checkStream(group: string, stream: string): Promise<void> {
    checkStreamName(stream);
    if (await this.#storage.hasStream(group, stream)) return;
    throw new AwsError("ResourceNotFoundException", "The specified log stream does not exist.");
  }
}

/** Rejects a lone surrogate, which neither a file name nor a record can contain. */
function checkStreamName(stream: string): void {
  if (stream.isWellFormed()) return;
  throw new AwsError(
    "InvalidParameterException",
    "1 validation error detected: Value at 'logStreamName' failed to satisfy constraint: Member must be text of whole characters",
  );
}
