import { readFile, readdir, rename, stat, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { type Clock, type Logger, checksummedLine, parseChecksummedLine } from "@galatea/base";
import { emptyIfMissing } from "./absent.ts";
import { AtomicDirectories } from "./complete-directories.ts";
import { encodeFileName, isHashedName, decodeFileName, encodeStreamFileName } from "./log-lines.ts";
import { LogSegments } from "./log-segments.ts";
import type { SegmentFile } from "./log-chunks.ts";
import type { GroupFacts, LogStorage } from "./log-storage.ts";
import type { LogStream, LogStreams } from "./log-streams.ts";
import { StoredLogStreams, type LogStreamsOptions } from "./stored-log-streams.ts";

export interface DirectoryLogStreamsOptions extends LogStreamsOptions {
  readonly directory: string;
}

/**
 * Creates log streams in files `<directory>/<group>/<stream>/<number>.log`, with `/` in names written as `~`. Users can
 * read and grep the files.
 */
export function createDirectoryLogStreams(options: DirectoryLogStreamsOptions): LogStreams {
  return new StoredLogStreams(new DirectoryLogStorage(options), options);
}

interface DirectoryLogStorageOptions {
  readonly directory: string;
  readonly streamBytesMax: number;
  readonly clock: Clock;
  readonly logger: Logger;
}

export class DirectoryLogStorage implements LogStorage {
  readonly #options: DirectoryLogStorageOptions;
  /** The segments of each stream that is being written, with the number of pending writes. */
  readonly #writing = new Map<string, { readonly segments: LogSegments; userCount: number }>();
  readonly #directories: AtomicDirectories;

  constructor(options: DirectoryLogStorageOptions) {
    this.#options = options;
    this.#directories = new AtomicDirectories(options.directory);
  }

  groupNames(): Promise<readonly string[]> {
    return namesIn(this.#options.directory, encodeFileName);
  }

  async groupBytes(group: string): Promise<number> {
    let storedBytes = 0;
    for (const stream of await this.streamNames(group)) storedBytes += await this.#open(group, stream).byteLength();
    return storedBytes;
  }

  async makeGroup(group: string, facts: GroupFacts): Promise<void> {
    const path = this.#groupDirectory(group);
    await this.#directories.make(path, new Map([...nameFiles(path, group), [factsFile, JSON.stringify(facts)]]));
  }

  async changeFacts(group: string, facts: GroupFacts): Promise<void> {
    const path = join(this.#groupDirectory(group), factsFile);
    await writeFile(`${path}.new`, JSON.stringify(facts));
    await rename(`${path}.new`, path);
  }

  async removeGroup(group: string): Promise<void> {
    await this.#directories.remove(this.#groupDirectory(group));
  }

  streamNames(group: string): Promise<readonly string[]> {
    return namesIn(this.#groupDirectory(group), encodeStreamFileName);
  }

  async hasStream(group: string, stream: string): Promise<boolean> {
    return !Array.isArray(await stat(this.#streamDirectory(group, stream)).catch(emptyIfMissing));
  }

  async stream(group: string, name: string): Promise<LogStream | null> {
    const segments = this.#open(group, name);
    const directory = await stat(segments.directory).catch(emptyIfMissing);
    if (Array.isArray(directory)) return null;
    return {
      name,
      createdMs: directory.birthtimeMs || ((await this.facts(group))?.createdMs ?? 0),
      firstEventMs: (await segments.firstLine())?.timestampMs ?? null,
      lastEventMs: (await segments.lastLine())?.timestampMs ?? null,
      storedBytes: await segments.byteLength(),
    };
  }

  async makeStream(group: string, stream: string): Promise<void> {
    const path = this.#streamDirectory(group, stream);
    await this.#directories.make(path, nameFiles(path, stream));
  }

  async removeStream(group: string, stream: string): Promise<void> {
    await this.#directories.remove(this.#streamDirectory(group, stream));
  }

  async removeOldestStream(group: string): Promise<void> {
    let oldest: { readonly name: string; readonly mtimeMs: number } | null = null;
    for (const name of await this.streamNames(group)) {
      const { mtimeMs } = await stat(this.#streamDirectory(group, name));
      if (oldest === null || mtimeMs < oldest.mtimeMs) oldest = { name, mtimeMs };
    }
    if (oldest !== null) await this.removeStream(group, oldest.name);
  }

  async append(group: string, stream: string, lines: string): Promise<void> {
    await this.#change(group, stream, (segments) => segments.append(lines));
  }

  segments(group: string, stream: string): Promise<readonly SegmentFile[]> {
    return this.#open(group, stream).files();
  }

  async dropBefore(group: string, stream: string, timeMs: number): Promise<void> {
    await this.#change(group, stream, (segments) => segments.dropBefore(timeMs)).catch(emptyIfMissing);
  }

  async sweep(): Promise<void> {
    await this.#directories.sweep();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // No file stays open between calls.
  }

  /** Changes the files of a stream. Concurrent calls share one `LogSegments`, which serializes them. */
  async #change(group: string, stream: string, change: (segments: LogSegments) => Promise<void>): Promise<void> {
    const key = this.#streamDirectory(group, stream);
    const shared = this.#writing.get(key) ?? { segments: this.#open(group, stream), userCount: 0 };
    this.#writing.set(key, shared);
    shared.userCount++;
    try {
      await change(shared.segments);
    } finally {
      shared.userCount--;
      if (shared.userCount === 0) this.#writing.delete(key);
    }
  }

  async facts(group: string): Promise<GroupFacts | null> {
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
    await this.changeFacts(group, facts);
    return facts;
  }

  #open(group: string, stream: string): LogSegments {
    return new LogSegments(this.#streamDirectory(group, stream), this.#options.streamBytesMax);
  }

  #groupDirectory(group: string): string {
    return join(this.#options.directory, encodeFileName(group));
  }

  #streamDirectory(group: string, stream: string): string {
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
  return names.sort();
}
