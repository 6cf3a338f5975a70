import { createHash } from "node:crypto";
import type { LogEvent } from "./log-streams.ts";

/** Formats a line of a log file: time in ISO 8601, one space, the message with backslashes and line breaks escaped. */
export function formatLogLine(timestampMs: number, message: string): string {
  const escaped = message.replaceAll(/[\\\n\r]/g, (character) =>
    character === "\\" ? "\\\\" : character === "\n" ? "\\n" : "\\r",
  );
  return `${new Date(timestampMs).toISOString()} ${escaped}\n`;
}

const timeLength = "2026-11-21T05:20:00.123Z".length;

/** The start of a line: the segment (number of the file) and the offset in bytes. */
export interface LogPosition {
  readonly segment: number;
  readonly offset: number;
}

export interface LogLine {
  readonly position: LogPosition;
  readonly timestampMs: number;
  readonly message: string;
}

/**
 * Parses the complete lines of a segment. The first line begins at `position`. Skips lines in another format and an
 * unfinished last line, which an interrupted write leaves.
 */
export function* parseLogLines(bytes: Buffer, { segment, offset }: LogPosition): Generator<LogLine> {
  let start = 0;
  for (let end = bytes.indexOf(10); end >= 0; end = bytes.indexOf(10, start)) {
    const timestampMs = Date.parse(bytes.toString("latin1", start, start + timeLength));
    if (!Number.isNaN(timestampMs) && end >= start + timeLength + 1) {
      const escaped = bytes.toString("utf8", start + timeLength + 1, end);
      yield { position: { segment, offset: offset + start }, timestampMs, message: unescape(escaped) };
    }
    start = end + 1;
  }
}

function unescape(escaped: string): string {
  if (!escaped.includes("\\")) return escaped;
  return escaped.replaceAll(/\\([\\nr])/g, (_, code: string) => (code === "n" ? "\n" : code === "r" ? "\r" : "\\"));
}

/**
 * Formats a page token: `f/<segment>/<offset>` for lines from the position on, `b/<segment>/<offset>` for lines before
 * it.
 */
export function formatPageToken(direction: "f" | "b", { segment, offset }: LogPosition): string {
  return `${direction}/${String(segment).padStart(10, "0")}/${String(offset).padStart(12, "0")}`;
}

export function parsePageToken(
  token: string,
): { readonly direction: "f" | "b"; readonly position: LogPosition } | null {
  const match = /^([fb])\/(\d{1,10})\/(\d{1,12})$/.exec(token);
  if (match === null) return null;
  return {
    direction: match[1] as "f" | "b",
    position: { segment: Number(match[2]), offset: Number(match[3]) },
  };
}

export function toLogEvent({ position, timestampMs, message }: LogLine): LogEvent {
  return { timestampMs, message, id: formatPageToken("f", position).slice(2).replace("/", "") };
}

/**
 * Maximum length of a file name in bytes. File systems allow 255; the difference is for the suffix of a temporary name.
 */
const fileNameBytesMax = 240;

/**
 * Returns a file name for any group or stream name: `/` becomes `~`, and other special characters are percent-encoded.
 * A name that is too long becomes `%%` and a hash; the directory's name file has the full name.
 */
export function encodeFileName(name: string): string {
  const encoded = encodeURIComponent(name).replaceAll("~", "%7E").replaceAll("%2F", "~");
  if (encoded.length > fileNameBytesMax) return `%%${createHash("sha256").update(name).digest("hex")}`;
  return encoded.startsWith(".") ? `%2E${encoded.slice(1)}` : encoded;
}

/** Names of a group's own files, which are next to the directories of its streams. */
const groupFiles = /^(group\.json(\.new|\.damaged-\d+)?|name)$/;

/**
 * Returns the directory name of a stream. Names of the group's own files are avoided: `group.json` becomes
 * `%67roup.json`.
 */
export function encodeStreamFileName(stream: string): string {
  const fileName = encodeFileName(stream);
  return groupFiles.test(fileName) ? `%${fileName.charCodeAt(0).toString(16)}${fileName.slice(1)}` : fileName;
}

/** Returns true if a directory's name is a hash. The name file in the directory has the full name then. */
export function isHashedName(fileName: string): boolean {
  return fileName.startsWith("%%");
}

export function decodeFileName(fileName: string): string | null {
  try {
    return decodeURIComponent(fileName.replaceAll("~", "%2F"));
  } catch {
    return null;
  }
}
