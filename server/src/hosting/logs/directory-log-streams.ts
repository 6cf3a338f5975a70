import { mkdir, readFile, readdir, rename, rm, stat, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { AwsError, type Clock, type Logger, sealLine, Semaphore, unsealLine } from "../../base/index.ts";
import {
  asLogEvent,
  comparePositions,
  fileNameOf,
  formatLogLine,
  formatToken,
  isHashedName,
  nameOfFile,
  parseToken,
  type LogLine,
  type LogPosition,
} from "./log-lines.ts";
import { LogSegments, noneWhenAbsent } from "./log-segments.ts";
import type { LogGroup, LogPage, LogReadOptions, LogStream, LogStreams } from "./log-streams.ts";
import { LogWriter } from "./log-writer.ts";

export interface DirectoryLogStreamsOptions {
  readonly directory: string;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Of one stream on disk. */
  readonly streamBytesMax: number;
  /** Streams of one group; one more is refused, and a writer's drops the stream written longest ago. */
  readonly streamsMax: number;
}

/** Of one page, as in CloudWatch Logs. */
const pageLengthMax = 1024 * 1024;
const lineLengthMax = 256 * 1024;
const waitingLengthMax = 4 * 1024 * 1024;

/** `<directory>/<group>/<stream>/<number>.log`, with `/` in names written as `~`. Files that people can read and grep. */
export function createDirectoryLogStreams(options: DirectoryLogStreamsOptions): LogStreams {
  return new DirectoryLogStreams(options);
}

interface GroupFacts {
  readonly createdMs: number;
  readonly retentionDays: number | null;
}

class DirectoryLogStreams implements LogStreams {
  readonly #options: DirectoryLogStreamsOptions;
  /** One writer of segments for each stream that is written to now; forgotten when its last write has ended. */
  readonly #segments = new Map<string, { readonly segments: LogSegments; userCount: number }>();
  /** Those that hold text which is not in a file yet. */
  readonly #writers = new Set<LogWriter>();
  /** Groups and streams are made and deleted by one at a time. */
  readonly #changing = new Semaphore(1);
  readonly #never = new AbortController().signal;
  #deletedCount = 0;

  constructor(options: DirectoryLogStreamsOptions) {
    this.#options = options;
  }

  async groups(prefix: string): Promise<readonly LogGroup[]> {
    const groups: LogGroup[] = [];
    for (const name of await namesIn(this.#options.directory)) {
      if (!name.startsWith(prefix)) continue;
      const facts = await this.#facts(name);
      if (facts === null) continue;
      let storedBytes = 0;
      for (const stream of await this.#streamNames(name)) storedBytes += await this.#open(name, stream).byteLength();
      groups.push({ name, ...facts, storedBytes });
    }
    return groups;
  }

  async streams(group: string, prefix: string): Promise<readonly LogStream[]> {
    const facts = await this.#existing(group);
    const found: LogStream[] = [];
    for (const name of await this.#streamNames(group)) {
      if (!name.startsWith(prefix)) continue;
      const segments = this.#open(group, name);
      const files = await segments.files();
      const [first, last] = [files[0], files.at(-1)];
      const lines = async (file: typeof first) => (file === undefined ? [] : await segments.linesOf(file));
      found.push({
        name,
        createdMs: (await stat(segments.directory)).birthtimeMs || facts.createdMs,
        firstEventMs: (await lines(first))[0]?.timestampMs ?? null,
        lastEventMs: (await lines(last)).at(-1)?.timestampMs ?? null,
        storedBytes: await segments.byteLength(),
      });
    }
    return found;
  }

  async read(group: string, stream: string, options: LogReadOptions): Promise<LogPage> {
    await this.#existing(group);
    const segments = this.#open(group, stream);
    if (Array.isArray(await stat(segments.directory).catch(noneWhenAbsent))) throw noSuchStream();
    const token = options.token === null ? null : parseToken(options.token);
    if (options.token !== null && token === null) {
      throw new AwsError("InvalidParameterException", "The specified nextToken is invalid.");
    }
    const isForward = token === null ? options.startFromHead : token.direction === "f";
    const lines = isForward
      ? await linesAfter(segments, options, token?.position ?? null)
      : await linesBefore(segments, options, token?.position ?? null);
    return pageOf(lines, token?.position ?? (await edgeOf(segments, isForward)));
  }

  async createGroup(group: string): Promise<void> {
    using _turn = await this.#changing.acquire(this.#never);
    if ((await this.#facts(group)) !== null) {
      throw new AwsError("ResourceAlreadyExistsException", "The specified log group already exists");
    }
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
    await makeDirectory(this.#streamDirectory(group, stream), stream);
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
    await rm(this.#groupDirectory(group), { recursive: true, force: true });
  }

  async deleteStream(group: string, stream: string): Promise<void> {
    using _turn = await this.#changing.acquire(this.#never);
    await this.#existing(group);
    if (!(await this.#streamNames(group)).includes(stream)) throw noSuchStream();
    this.#deletedCount++;
    await rm(this.#streamDirectory(group, stream), { recursive: true, force: true });
  }

  async append(
    group: string,
    stream: string,
    events: readonly { readonly timestampMs: number; readonly message: string }[],
  ): Promise<void> {
    await this.#existing(group);
    if (!(await this.#streamNames(group)).includes(stream)) throw noSuchStream();
    await this.#append(group, stream, events.map((event) => formatLogLine(event.timestampMs, event.message)).join(""));
  }

  writer(group: string, stream: string): (chunk: Uint8Array) => void {
    // Of how many deletions the group and the stream that it made are known to be there after.
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
      this.#writers.add(writer);
      writer.write(chunk);
    };
  }

  async prune(): Promise<void> {
    const nowMs = this.#options.clock.epochMs();
    for (const group of await this.groups("")) {
      if (group.retentionDays === null) continue;
      const beforeMs = nowMs - group.retentionDays * 86_400_000;
      for (const name of await this.#streamNames(group.name)) {
        for (const { path } of await this.#open(group.name, name).files()) {
          const found = await stat(path).catch(noneWhenAbsent);
          if (!Array.isArray(found) && found.mtimeMs < beforeMs) await rm(path, { force: true });
        }
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#writers].map((writer) => writer.close()));
    this.#writers.clear();
  }

  async #append(group: string, stream: string, lines: string): Promise<void> {
    const key = this.#streamDirectory(group, stream);
    const held = this.#segments.get(key) ?? { segments: this.#open(group, stream), userCount: 0 };
    this.#segments.set(key, held);
    held.userCount++;
    try {
      await held.segments.append(lines);
    } finally {
      held.userCount--;
      if (held.userCount === 0) this.#segments.delete(key);
    }
  }

  /** For a writer: the group and the stream exist, and the group has room. */
  async #prepare(group: string, stream: string): Promise<void> {
    using _turn = await this.#changing.acquire(this.#never);
    if ((await this.#facts(group)) === null) await this.#makeGroup(group);
    const names = await this.#streamNames(group);
    if (!names.includes(stream) && names.length >= this.#options.streamsMax) await this.#dropOldestStream(group, names);
    await makeDirectory(this.#streamDirectory(group, stream), stream);
  }

  async #dropOldestStream(group: string, names: readonly string[]): Promise<void> {
    let oldest: { readonly name: string; readonly mtimeMs: number } | null = null;
    for (const name of names) {
      const { mtimeMs } = await stat(this.#streamDirectory(group, name));
      if (oldest === null || mtimeMs < oldest.mtimeMs) oldest = { name, mtimeMs };
    }
    if (oldest !== null) await rm(this.#streamDirectory(group, oldest.name), { recursive: true, force: true });
  }

  async #makeGroup(group: string): Promise<void> {
    await makeDirectory(this.#groupDirectory(group), group);
    await this.#writeFacts(group, { createdMs: this.#options.clock.epochMs(), retentionDays: null });
  }

  async #writeFacts(group: string, facts: GroupFacts): Promise<void> {
    const path = join(this.#groupDirectory(group), "group.json");
    await writeFile(`${path}.new`, JSON.stringify(facts));
    await rename(`${path}.new`, path);
  }

  async #facts(group: string): Promise<GroupFacts | null> {
    const path = join(this.#groupDirectory(group), "group.json");
    const text = await readFile(path, "utf8").catch(noneWhenAbsent);
    if (Array.isArray(text)) return null;
    try {
      const { createdMs, retentionDays } = JSON.parse(text) as GroupFacts;
      if (Number.isFinite(createdMs) && (retentionDays === null || Number.isFinite(retentionDays))) {
        return { createdMs, retentionDays };
      }
    } catch (error) {
      if (!(error instanceof SyntaxError || error instanceof TypeError)) throw error;
    }
    // Its lines are still there. Without a retention none of them goes before a person has set it again.
    const { birthtimeMs } = await stat(path);
    const facts = { createdMs: Math.floor(birthtimeMs), retentionDays: null };
    await rename(path, `${path}.damaged-${this.#options.clock.epochMs()}`);
    this.#options.logger.error("a log group's description is damaged, set aside and made anew without a retention", {
      path,
    });
    await this.#writeFacts(group, facts);
    return facts;
  }

  async #existing(group: string): Promise<GroupFacts> {
    const facts = await this.#facts(group);
    if (facts === null) throw new AwsError("ResourceNotFoundException", "The specified log group does not exist.");
    return facts;
  }

  #streamNames(group: string): Promise<readonly string[]> {
    return namesIn(this.#groupDirectory(group));
  }

  #open(group: string, stream: string): LogSegments {
    return new LogSegments(this.#streamDirectory(group, stream), this.#options.streamBytesMax);
  }

  #groupDirectory(group: string): string {
    return join(this.#options.directory, fileNameOf(group));
  }

  #streamDirectory(group: string, stream: string): string {
    return join(this.#groupDirectory(group), fileNameOf(stream));
  }
}

/** Holds the name of a directory whose own name is a hash of it. */
const nameFile = "name";

async function makeDirectory(path: string, name: string): Promise<void> {
  await mkdir(path, { recursive: true });
  if (isHashedName(basename(path))) await writeFile(join(path, nameFile), sealLine(name));
}

async function readName(directory: string): Promise<string | null> {
  const bytes = await readFile(join(directory, nameFile)).catch(noneWhenAbsent);
  return Buffer.isBuffer(bytes) ? (unsealLine(bytes)?.text ?? null) : null;
}

/** The groups or streams that lie in a directory, sorted. */
async function namesIn(directory: string): Promise<readonly string[]> {
  const names: string[] = [];
  for (const entry of await readdir(directory, { withFileTypes: true }).catch(noneWhenAbsent)) {
    if (!entry.isDirectory()) continue;
    const name = isHashedName(entry.name) ? await readName(join(directory, entry.name)) : nameOfFile(entry.name);
    // A name that another directory has, or none at all, is not ours.
    if (name !== null && fileNameOf(name) === entry.name) names.push(name);
  }
  return names.sort(byText);
}

function byText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function noSuchStream(): AwsError {
  return new AwsError("ResourceNotFoundException", "The specified log stream does not exist.");
}

function isWanted(line: LogLine, { startTimeMs, endTimeMs }: LogReadOptions): boolean {
  return (
    (startTimeMs === null || line.timestampMs >= startTimeMs) && (endTimeMs === null || line.timestampMs < endTimeMs)
  );
}

async function linesAfter(
  segments: LogSegments,
  options: LogReadOptions,
  from: LogPosition | null,
): Promise<readonly LogLine[]> {
  const found: LogLine[] = [];
  let length = 0;
  for (const file of await segments.files()) {
    if (from !== null && file.segment < from.segment) continue;
    for (const line of await segments.linesOf(file)) {
      if (from !== null && comparePositions(line.position, from) < 0) continue;
      if (!isWanted(line, options)) continue;
      length += line.message.length;
      if (found.length >= options.eventsMax || (found.length > 0 && length > pageLengthMax)) return found;
      found.push(line);
    }
  }
  return found;
}

async function linesBefore(
  segments: LogSegments,
  options: LogReadOptions,
  before: LogPosition | null,
): Promise<readonly LogLine[]> {
  const found: LogLine[] = [];
  let length = 0;
  for (const file of (await segments.files()).toReversed()) {
    if (before !== null && file.segment > before.segment) continue;
    for (const line of (await segments.linesOf(file)).toReversed()) {
      if (before !== null && comparePositions(line.position, before) >= 0) continue;
      if (!isWanted(line, options)) continue;
      length += line.message.length;
      if (found.length >= options.eventsMax || (found.length > 0 && length > pageLengthMax)) return found.reverse();
      found.push(line);
    }
  }
  return found.reverse();
}

/** The position just behind a line: lines begin at least one byte later. */
function pageOf(lines: readonly LogLine[], edge: LogPosition): LogPage {
  const [first, last] = [lines[0], lines.at(-1)];
  const behind = last === undefined ? edge : { segment: last.position.segment, offset: last.position.offset + 1 };
  return {
    events: lines.map(asLogEvent),
    forwardToken: formatToken("f", behind),
    backwardToken: formatToken("b", first?.position ?? edge),
  };
}

/** Where an empty first page stands: reading forward, at the beginning; else behind everything. */
async function edgeOf(segments: LogSegments, isForward: boolean): Promise<LogPosition> {
  const files = await segments.files();
  if (isForward) return { segment: files[0]?.segment ?? 1, offset: 0 };
  const last = files.at(-1);
  const lines = last === undefined ? [] : await segments.linesOf(last);
  return { segment: last?.segment ?? 1, offset: (lines.at(-1)?.position.offset ?? -1) + 1 };
}
