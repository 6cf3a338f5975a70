/** A message of a container's log, as the engine sends it: a line, or a part of a long line. */
export interface LogMessage {
  readonly stream: "stdout" | "stderr";
  /** Time of the message in nanoseconds since the Unix epoch. */
  readonly timeNs: bigint;
  /** With its newline, unless it is a part of a line. */
  readonly text: Buffer;
}

const headerBytes = 8;
const stderrId = 2;
/** Docker splits lines at 16 KiB, Podman sends whole lines up to its own limit. */
const messageBytesMax = 4 * 2 ** 20;
const spaceByte = 32;

/** Reads the log stream of a container without a terminal, with timestamps: frames of a header of 8 bytes and one message each. */
export class LogFrames {
  #rest: Buffer = Buffer.alloc(0);

  /** Returns the messages that are complete with this chunk. Throws for a stream that is no log. */
  push(chunk: Buffer): readonly LogMessage[] {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    const messages: LogMessage[] = [];
    let start = 0;
    while (bytes.length - start >= headerBytes) {
      const length = bytes.readUInt32BE(start + 4);
      if (length > messageBytesMax) throw new Error(`a log message has ${length} bytes, more than ${messageBytesMax}`);
      const end = start + headerBytes + length;
      if (end > bytes.length) break;
      messages.push(
        messageOf(bytes[start] === stderrId ? "stderr" : "stdout", bytes.subarray(start + headerBytes, end)),
      );
      start = end;
    }
    this.#rest = bytes.subarray(start);
    return messages;
  }
}

function messageOf(stream: LogMessage["stream"], body: Buffer): LogMessage {
  const space = body.indexOf(spaceByte);
  const timeNs = space < 0 ? null : parseTimeNs(body.toString("latin1", 0, space));
  if (timeNs === null) throw new Error(`a log message has no time: ${body.toString("latin1", 0, 40)}`);
  return { stream, timeNs, text: body.subarray(space + 1) };
}

const rfc3339 = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)$/;

/** Returns the nanoseconds since the Unix epoch of an RFC 3339 time; null for another text. */
export function parseTimeNs(text: string): bigint | null {
  const [, seconds, fraction = "", zone] = rfc3339.exec(text) ?? [];
  if (seconds === undefined || zone === undefined) return null;
  const epochMs = Date.parse(`${seconds}${zone}`);
  return Number.isNaN(epochMs) ? null : BigInt(epochMs) * 1_000_000n + BigInt(fraction.padEnd(9, "0"));
}

/** Returns a time as the `since` parameter of the log expects it: seconds and nanoseconds. */
export function sinceText(timeNs: bigint): string {
  return `${timeNs / 1_000_000_000n}.${String(timeNs % 1_000_000_000n).padStart(9, "0")}`;
}
