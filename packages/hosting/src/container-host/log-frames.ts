/** A message of a container's log, as the engine sends it: a line, or a chunk of a long line. */
export interface LogMessage {
  readonly stream: "stdout" | "stderr";
  /** Time of the message in nanoseconds since the Unix epoch. */
  readonly timeNs: bigint;
  /** The text including its newline. A chunk of a line that is not the last one has no newline. */
  readonly text: Buffer;
}

const headerBytes = 8;
const stderrId = 2;
/**
 * Maximum bytes of one message. Docker splits lines into messages of 16 KiB; Podman sends whole lines up to its own
 * limit.
 */
const messageBytesMax = 4 * 2 ** 20;
const spaceByte = 32;

/**
 * Parses the log stream of a container without a terminal. The stream consists of frames: a header of 8 bytes, then one
 * message with a timestamp.
 */
export class LogFrames {
  #rest: Buffer = Buffer.alloc(0);

  /** Returns the messages that this chunk completes. Throws if the stream is not a log with timestamps. */
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

/** Returns an RFC 3339 time as nanoseconds since the Unix epoch; null for any other text. */
export function parseTimeNs(text: string): bigint | null {
  const [, seconds, fraction = "", zone] = rfc3339.exec(text) ?? [];
  if (seconds === undefined || zone === undefined) return null;
  const epochMs = Date.parse(`${seconds}${zone}`);
  return Number.isNaN(epochMs) ? null : BigInt(epochMs) * 1_000_000n + BigInt(fraction.padEnd(9, "0"));
}

/**
 * Returns a time in the format of the `since` parameter of log requests: seconds, a dot, and nine digits of
 * nanoseconds.
 */
export function sinceText(timeNs: bigint): string {
  return `${timeNs / 1_000_000_000n}.${String(timeNs % 1_000_000_000n).padStart(9, "0")}`;
}
