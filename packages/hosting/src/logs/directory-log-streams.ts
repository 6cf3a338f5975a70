import { readFile, readdir, rename, stat, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { AwsError, type Clock, type Logger, checksummedLine, Semaphore, parseChecksummedLine } from "@galatea/base";
import { emptyIfMissing } from "./absent.ts";
import { LogFollowers } from "./log-followers.ts";
import { encodeFileName, formatLogLine, isHashedName, decodeFileName, encodeStreamFileName } from "./log-lines.ts";
import { readLogPage } from "./log-reading.ts";
import { LogSegments } from "./log-segments.ts";
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
import { AtomicDirectories } from "./complete-directories.ts";

export interface DirectoryLogStreamsOptions {
  readonly directory: string;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Maximum size of one stream on disk, in bytes. */
  readonly streamBytesMax: number;
  /**
   * Maximum number of streams of one group. Above it, clients get an error, and a new stream of a container replaces
   * the stream that was written longest ago.
   */
  readonly streamsMax: number;
  /** Maximum number of groups that clients can create. Groups of containers are not limited. */
  readonly groupsMax: number;
}

const lineLengthMax = 256 * 1024;
const waitingLengthMax = 4 * 1024 * 1024;

/**
 * Creates log streams in files `<directory>/<group>/<stream>/<number>.log`, with `/` in names written as `~`. Users can
 * read and grep the files.
 */
export function createDirectoryLogStreams(options: DirectoryLogStreamsOptions): LogStreams {
  return new DirectoryLogStreams(options);
}

interface GroupFacts {
  readonly createdMs: number;
  readonly retentionDays: number | null;
}

class DirectoryLogStreams implements LogStreams {
  readonly #options: DirectoryLogStreamsOptions;
  /** The segments of each stream that is being written, with the number of pending writes. */
  readonly #segments = new Map<string, { readonly segments: LogSegments; userCount: number }>();
  /** Writers with text that is not in a file yet, and the group of each writer. */
  readonly #writers = new Map<LogWriter, string>();
  /** Serializes the creation and deletion of groups and streams. */
  readonly #changing = new Semaphore(1);
  readonly #never = new AbortController().signal;
  readonly #directories: AtomicDirectories;
  readonly #followers: LogFollowers;
  #deletedCount = 0;

  constructor(options: DirectoryLogStreamsOptions) {
    this.#options = options;
    this.#directories = new AtomicDirectories(options.directory);
    this.#followers = new LogFollowers((error) =>
      options.logger.error("a follower of log lines failed", { error: String(error) }),
    );
  }

  async groupNames(prefix: string): Promise<readonly string[]> {
    return (await namesIn(this.#options.directory, encodeFileName)).filter((name) => name.startsWith(prefix));
  }

  async group(name: string): Promise<LogGroup | null> {
    const facts = await this.#facts(name);
    if (facts === null) return null;
    let storedBytes = 0;
    for (const stream of await this.#streamNames(name)) storedBytes += await this.#open(name, stream).byteLength();
    return { name, ...facts, storedBytes };
  }

  async retentionDays(group: string): Promise<number | null> {
    return (await this.#existing(group)).retentionDays;
  }

  async streamNames(group: string, prefix: string): Promise<readonly string[]> {
    await this.#written(group);
    await this.#existing(group);
    return (await this.#streamNames(group)).filter((name) => name.startsWith(prefix));
  }

  async stream(group: string, name: string): Promise<LogStream | null> {
    const segments = this.#open(group, name);
    const directory = await stat(segments.directory).catch(emptyIfMissing);
    if (Array.isArray(directory)) return null;
    return {
      name,
      createdMs: directory.birthtimeMs || (await this.#existing(group)).createdMs,
      firstEventMs: (await segments.firstLine())?.timestampMs ?? null,
      lastEventMs: (await segments.lastLine())?.timestampMs ?? null,
      storedBytes: await segments.byteLength(),
    };
  }

  async read(group: string, stream: string, options: LogReadOptions): Promise<LogPage> {
    await this.#written(group);
    const { retentionDays } = await this.#existing(group);
    const segments = this.#open(group, stream);
    if (Array.isArray(await stat(segments.directory).catch(emptyIfMissing))) throw noSuchStream();
    if (retentionDays === null) return await readLogPage(segments, options);
    const startTimeMs = Math.max(options.startTimeMs ?? 0, this.#keptSinceMs(retentionDays));
    return await readLogPage(segments, { ...options, startTimeMs });
  }

  async createGroup(group: string): Promise<void> {
    using _turn = await this.#changing.acquire(this.#never);
    if ((await this.#facts(group)) !== null) {
      throw new AwsError("ResourceAlreadyExistsException", "The specified log group already exists");
    }
    const { groupsMax } = this.#options;
    if ((await this.groupNames("")).length >= groupsMax)
      throw new AwsError("LimitExceededException", `Resource limit exceeded: ${groupsMax} log groups`);
    await this.#makeGroup(group);
  }

  async createStream(group: string, stream: string): Promise<void> {
    using _turn = await this.#changing.acquire(this.#never);
    await this.#existing(group);
    const names = await this.#streamNames(group);
    if (names.includes(stream)) {
      throw new AwsError("ResourceAlreadyExistsException", "The specified log stream already exists");
    }
    if (names.length >= this.#options.streamsMax) {
      throw new AwsError("LimitExceededException", `Resource limit exceeded: ${this.#options.streamsMax} log streams`);
    }
    await this.#makeStream(group, stream);
  }

  async setRetention(group: string, retentionDays: number | null): Promise<void> {
    using _turn = await this.#changing.acquire(this.#never);
    const { createdMs } = await this.#existing(group);
    await this.#writeFacts(group, { createdMs, retentionDays });
  }

  async deleteGroup(group: string): Promise<void> {
    using _turn = await this.#changing.acquire(this.#never);
    await this.#existing(group);
    this.#deletedCount++;
    await this.#directories.remove(this.#groupDirectory(group));
  }

  async deleteStream(group: string, stream: string): Promise<void> {
    using _turn = await this.#changing.acquire(this.#never);
    await this.#existing(group);
    if (!(await this.#streamNames(group)).includes(stream)) throw noSuchStream();
    this.#deletedCount++;
    await this.#directories.remove(this.#streamDirectory(group, stream));
  }

  async append(group: string, stream: string, events: readonly NewLogEvent[]): Promise<void> {
    await this.#existing(group);
    if (!(await this.#streamNames(group)).includes(stream)) throw noSuchStream();
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
    {
      using _turn = await this.#changing.acquire(this.#never);
      await this.#directories.sweep();
    }
    for (const group of await this.groupNames("")) {
      const retentionDays = (await this.#facts(group))?.retentionDays ?? null;
      if (retentionDays === null) continue;
      const sinceMs = this.#keptSinceMs(retentionDays);
      for (const name of await this.#streamNames(group)) {
        await this.#writing(group, name, (segments) => segments.dropBefore(sinceMs)).catch(emptyIfMissing);
      }
    }
  }

  #keptSinceMs(retentionDays: number): number {
    return this.#options.clock.epochMs() - retentionDays * 86_400_000;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#writers.keys()].map((writer) => writer.close()));
    this.#writers.clear();
  }

  /**
   * Waits for pending writes of a group. Without this, a reader could miss output that a container has already written.
   */
  async #written(group: string): Promise<void> {
    await Promise.all([...this.#writers].flatMap(([writer, own]) => (own === group ? [writer.written()] : [])));
  }

  async #append(group: string, stream: string, lines: string): Promise<void> {
    await this.#writing(group, stream, (segments) => segments.append(lines));
    await this.#followers.notify(group, stream, lines);
  }

  /** Changes the files of a stream. Concurrent calls share one `LogSegments`, which serializes them. */
  async #writing(group: string, stream: string, change: (segments: LogSegments) => Promise<void>): Promise<void> {
    const key = this.#streamDirectory(group, stream);
    const shared = this.#segments.get(key) ?? { segments: this.#open(group, stream), userCount: 0 };
    this.#segments.set(key, shared);
    shared.userCount++;
    try {
      await change(shared.segments);
    } finally {
      shared.userCount--;
      if (shared.userCount === 0) this.#segments.delete(key);
    }
  }

  /** Creates the group and the stream for a writer. Deletes the oldest stream of a full group. */
  async #prepare(group: string, stream: string): Promise<void> {
    using _turn = await this.#changing.acquire(this.#never);
    if ((await this.#facts(group)) === null) await this.#makeGroup(group);
    const names = await this.#streamNames(group);
    if (!names.includes(stream) && names.length >= this.#options.streamsMax) await this.#dropOldestStream(group, names);
    await this.#makeStream(group, stream);
  }

  async #dropOldestStream(group: string, names: readonly string[]): Promise<void> {
    let oldest: { readonly name: string; readonly mtimeMs: number } | null = null;
    for (const name of names) {
      const { mtimeMs } = await stat(this.#streamDirectory(group, name));
      if (oldest === null || mtimeMs < oldest.mtimeMs) oldest = { name, mtimeMs };
    }
    if (oldest !== null) await this.#directories.remove(this.#streamDirectory(group, oldest.name));
  }

  async #makeGroup(group: string): Promise<void> {
    const facts: GroupFacts = { createdMs: this.#options.clock.epochMs(), retentionDays: null };
    const path = this.#groupDirectory(group);
    await this.#directories.make(path, new Map([...nameFiles(path, group), [factsFile, JSON.stringify(facts)]]));
  }

  async #makeStream(group: string, stream: string): Promise<void> {
    const path = this.#streamDirectory(group, stream);
    await this.#directories.make(path, nameFiles(path, stream));
  }

  async #writeFacts(group: string, facts: GroupFacts): Promise<void> {
    const path = join(this.#groupDirectory(group), factsFile);
    await writeFile(`${path}.new`, JSON.stringify(facts));
    await rename(`${path}.new`, path);
  }

  async #facts(group: string): Promise<GroupFacts | null> {
    const path = join(this.#groupDirectory(group), factsFile);
    const text = await readFile(path, "utf8").catch(emptyIfMissing);
    if (Array.isArray(text)) return null;
    try {
      const { createdMs, retentionDays } = JSON.parse(text) as GroupFacts;
      if (Number.isFinite(createdMs) && (retentionDays === null || Number.isFinite(retentionDays))) {
        return { createdMs, retentionDays };
      }
    } catch (error) {
      if (!(error instanceof SyntaxError || error instanceof TypeError)) throw error;
    }
    // The group's log files are intact. The new description has no retention, so that no line is deleted until an
    // operator sets one.
    const { birthtimeMs } = await stat(path);
    const facts = { createdMs: Math.floor(birthtimeMs), retentionDays: null };
    await rename(path, `${path}.damaged-${this.#options.clock.epochMs()}`);
    this.#options.logger.error(
      "a log group's description is damaged; it is kept aside and replaced by one without a retention",
      {
        path,
      },
    );
    await this.#writeFacts(group, facts);
    return facts;
  }

  async #existing(group: string): Promise<GroupFacts> {
    const facts = await this.#facts(group);
    if (facts === null) throw new AwsError("ResourceNotFoundException", "The specified log group does not exist.");
    return facts;
  }

  #streamNames(group: string): Promise<readonly string[]> {
    return namesIn(this.#groupDirectory(group), encodeStreamFileName);
  }

  #open(group: string, stream: string): LogSegments {
    return new LogSegments(this.#streamDirectory(group, stream), this.#options.streamBytesMax);
  }

  #groupDirectory(group: string): string {
    return join(this.#options.directory, encodeFileName(group));
  }

  #streamDirectory(group: string, stream: string): string {
    // A file name cannot contain a lone surrogate.
    if (!stream.isWellFormed()) {
      throw new AwsError(
        "InvalidParameterException",
        "1 validation error detected: Value at 'logStreamName' failed to satisfy constraint: Member must be text of whole characters",
      );
    }
    return join(this.#groupDirectory(group), encodeStreamFileName(stream));
  }
}

/** Name of the file with a group's creation time and retention. */
const factsFile = "group.json";

/** Name of the file that contains the full name of a group or stream whose directory name is a hash. */
const nameFile = "name";

/** Returns the name file of a directory; an empty map if the directory's name is not a hash. */
function nameFiles(path: string, name: string): ReadonlyMap<string, string> {
  return new Map(isHashedName(basename(path)) ? [[nameFile, checksummedLine(name)]] : []);
}

async function readName(directory: string): Promise<string | null> {
  const bytes = await readFile(join(directory, nameFile)).catch(emptyIfMissing);
  return Buffer.isBuffer(bytes) ? (parseChecksummedLine(bytes)?.text ?? null) : null;
}

/**
 * Returns the names of groups or streams in a directory, sorted. Ignores directories whose names differ from
 * `directoryNameOf`.
 */
async function namesIn(directory: string, directoryNameOf: (name: string) => string): Promise<readonly string[]> {
  const names: string[] = [];
  for (const entry of await readdir(directory, { withFileTypes: true }).catch(emptyIfMissing)) {
    if (!entry.isDirectory()) continue;
    const name = isHashedName(entry.name) ? await readName(join(directory, entry.name)) : decodeFileName(entry.name);
    // This program did not create a directory whose name does not match.
    if (name !== null && directoryNameOf(name) === entry.name) names.push(name);
  }
  return names.sort(byText);
}

function byText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function noSuchStream(): AwsError {
  return new AwsError("ResourceNotFoundException", "The specified log stream does not exist.");
}
