import { AwsError } from "@galatea/base";
import { toLogEvent, formatPageToken, parsePageToken, type LogLine, type LogPosition } from "./log-lines.ts";
import { lastLineOf, readLinesBefore, readLinesFrom } from "./log-chunks.ts";
import type { Segment } from "./log-storage.ts";
import type { LogPage, LogReadOptions } from "./log-streams.ts";

/** Maximum length of one page in characters, as in CloudWatch Logs. */
const pageLengthMax = 1024 * 1024;

/** Returns one page of a stream's segments. Reads them in chunks, beginning at the start of the page. */
export async function readLogPage(segments: readonly Segment[], options: LogReadOptions): Promise<LogPage> {
  const token = options.token === null ? null : parsePageToken(options.token);
  if (options.token !== null && token === null) {
    throw new AwsError("InvalidParameterException", "The specified nextToken is invalid.");
  }
  const isForward = token === null ? options.startFromHead : token.direction === "f";
  const at = token?.position ?? null;
  const lines = isForward
    ? await pageAfter(segments, options, at)
    : (await pageBefore(segments, options, at)).toReversed();
  const [first, last] = [lines[0], lines.at(-1)];
  if (first === undefined || last === undefined) {
    const edge = at ?? (await edgeOf(segments, isForward));
    return { events: [], forwardToken: formatPageToken("f", edge), backwardToken: formatPageToken("b", edge) };
  }
  return {
    events: lines.map(toLogEvent),
    forwardToken: formatPageToken("f", behind(last)),
    backwardToken: formatPageToken("b", first.position),
  };
}

/** Returns a position after the start of a line: the next line begins at least one byte later. */
const behind = ({ position }: LogLine): LogPosition => ({ segment: position.segment, offset: position.offset + 1 });

async function pageAfter(
  segments: readonly Segment[],
  options: LogReadOptions,
  from: LogPosition | null,
): Promise<readonly LogLine[]> {
  const page = new PageOfLines(options);
  for (const segment of segments) {
    if ((from !== null && segment.segment < from.segment) || !mayHave(segment, options)) continue;
    const offset = from !== null && segment.segment === from.segment ? from.offset : 0;
    for await (const chunk of readLinesFrom(segment, offset)) if (page.isFullWith(chunk)) return page.lines;
  }
  return page.lines;
}

/** Returns the lines before a position, last line first. */
async function pageBefore(
  segments: readonly Segment[],
  options: LogReadOptions,
  before: LogPosition | null,
): Promise<readonly LogLine[]> {
  const page = new PageOfLines(options);
  for (const segment of segments.toReversed()) {
    if ((before !== null && segment.segment > before.segment) || !mayHave(segment, options)) continue;
    const offset = before !== null && segment.segment === before.segment ? before.offset : null;
    for await (const chunk of readLinesBefore(segment, offset)) if (page.isFullWith(chunk)) return page.lines;
  }
  return page.lines;
}

/** Returns false if no event of a segment has one of the requested times. */
function mayHave({ times }: Segment, { startTimeMs, endTimeMs }: LogReadOptions): boolean {
  if (times === null) return true;
  return (startTimeMs === null || times.lastMs >= startTimeMs) && (endTimeMs === null || times.firstMs < endTimeMs);
}

/**
 * Collects matching lines until the page has the maximum number of events or length. A page always accepts its first
 * line, even an oversized one.
 */
class PageOfLines {
  readonly lines: LogLine[] = [];
  readonly #options: LogReadOptions;
  #length = 0;

  constructor(options: LogReadOptions) {
    this.#options = options;
  }

  isFullWith(chunk: readonly LogLine[]): boolean {
    const { startTimeMs, endTimeMs, eventsMax } = this.#options;
    for (const line of chunk) {
      if (startTimeMs !== null && line.timestampMs < startTimeMs) continue;
      if (endTimeMs !== null && line.timestampMs >= endTimeMs) continue;
      this.#length += line.message.length;
      if (this.lines.length >= eventsMax || (this.lines.length > 0 && this.#length > pageLengthMax)) return true;
      this.lines.push(line);
    }
    return false;
  }
}

/** Returns the position for an empty first page: the start of the stream for forward reading, otherwise its end. */
async function edgeOf(segments: readonly Segment[], isForward: boolean): Promise<LogPosition> {
  if (isForward) return { segment: segments[0]?.segment ?? 1, offset: 0 };
  const last = await lastLineOf(segments);
  return last === null ? { segment: 1, offset: 0 } : behind(last);
}
