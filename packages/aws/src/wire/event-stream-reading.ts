import { crc32 } from "node:zlib";

/** A message of an Amazon event stream. */
export interface ReadEvent {
  readonly headers: Readonly<Record<string, string>>;
  readonly payload: Buffer;
}

/** Returns the complete messages at the beginning of `bytes`, and the bytes after them. Throws for a wrong checksum. */
export function readEvents(bytes: Buffer): { readonly events: readonly ReadEvent[]; readonly rest: Buffer } {
  const events: ReadEvent[] = [];
  let at = 0;
  while (bytes.length - at >= 16) {
    const length = bytes.readUInt32BE(at);
    if (bytes.length - at < length) break;
    const message = bytes.subarray(at, at + length);
    check(message.readUInt32BE(8) === crc32(message.subarray(0, 8)), "the checksum of the prelude");
    check(message.readUInt32BE(length - 4) === crc32(message.subarray(0, length - 4)), "the checksum");
    const payloadAt = 12 + message.readUInt32BE(4);
    events.push({
      headers: readHeaders(message.subarray(12, payloadAt)),
      payload: message.subarray(payloadAt, length - 4),
    });
    at += length;
  }
  return { events, rest: bytes.subarray(at) };
}

function readHeaders(bytes: Buffer): Record<string, string> {
  const headers: [string, string][] = [];
  let at = 0;
  while (at < bytes.length) {
    const nameEnd = at + 1 + bytes.readUInt8(at);
    const name = bytes.toString("utf8", at + 1, nameEnd);
    check(bytes.readUInt8(nameEnd) === 7, "the type of a header");
    const end = nameEnd + 3 + bytes.readUInt16BE(nameEnd + 1);
    headers.push([name, bytes.toString("utf8", nameEnd + 3, end)]);
    at = end;
  }
  return Object.fromEntries(headers);
}

function check(holds: boolean, what: string): void {
  if (!holds) throw new Error(`an event stream is damaged: ${what} is wrong`);
}
