import { crc32 } from "node:zlib";

export const eventStreamType = "application/vnd.amazon.eventstream";

/** The headers of a message, all with text values. Names must be shorter than 256 bytes, values shorter than 32 KiB. */
export type EventHeaders = readonly (readonly [name: string, value: string])[];

/**
 * Size of the prelude before the headers: the length of the message, the length of the headers, and the checksum of
 * both.
 */
const preludeBytes = 12;
const checksumBytes = 4;
/** The code for a header with a text value. */
const textType = 7;

/** Encodes headers. Callers reuse the bytes for frequent kinds of messages. */
export function encodeEventHeaders(headers: EventHeaders): Buffer {
  const chunks: Buffer[] = [];
  for (const [name, value] of headers) {
    const nameBytes = Buffer.from(name);
    const valueBytes = Buffer.from(value);
    const head = Buffer.alloc(1 + nameBytes.length + 3);
    head.writeUInt8(nameBytes.length, 0);
    nameBytes.copy(head, 1);
    head.writeUInt8(textType, 1 + nameBytes.length);
    head.writeInt16BE(valueBytes.length, 2 + nameBytes.length);
    chunks.push(head, valueBytes);
  }
  return Buffer.concat(chunks);
}

/** Encodes one message of an Amazon event stream. */
export function encodeEvent(headers: Buffer, payload: Uint8Array): Buffer {
  const payloadAt = preludeBytes + headers.length;
  const end = payloadAt + payload.length;
  const message = Buffer.allocUnsafe(end + checksumBytes);
  message.writeUInt32BE(message.length, 0);
  message.writeUInt32BE(headers.length, 4);
  message.writeUInt32BE(crc32(message.subarray(0, 8)), 8);
  headers.copy(message, preludeBytes);
  message.set(payload, payloadAt);
  message.writeUInt32BE(crc32(message.subarray(0, end)), end);
  return message;
}
