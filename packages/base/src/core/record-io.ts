/**
 * MXNet's RecordIO. A frame is a magic number, then three bits that say which part of a record follows and 29 that say how long it is, then
 * that, padded to four bytes. A record that contains the magic number is cut there, and the number left out between its parts.
 */
export const recordIoMagic = 0xced7230a;
export const recordIoHeaderBytes = 8;

const parts = ["whole", "first", "middle", "last"] as const;

export interface RecordIoHeader {
  /** Null for a number that stands for none. */
  readonly part: (typeof parts)[number] | null;
  readonly contentBytes: number;
  /** With the header and the padding. */
  readonly frameBytes: number;
}

/** Reads the header at an offset from which there are `recordIoHeaderBytes` at least; null where none begins there. */
export function readRecordIoHeader(bytes: Uint8Array, at: number): RecordIoHeader | null {
  const view = new DataView(bytes.buffer, bytes.byteOffset + at, recordIoHeaderBytes);
  if (view.getUint32(0, true) !== recordIoMagic) return null;
  const word = view.getUint32(4, true);
  const contentBytes = word & 0x1fffffff;
  const frameBytes = recordIoHeaderBytes + Math.ceil(contentBytes / 4) * 4;
  return { part: parts[word >>> 29] ?? null, contentBytes, frameBytes };
}

/** A frame with a whole record, which does not contain the magic number. */
export function recordIoFrame(content: Uint8Array): Uint8Array {
  const frame = new Uint8Array(recordIoHeaderBytes + Math.ceil(content.length / 4) * 4);
  const view = new DataView(frame.buffer);
  view.setUint32(0, recordIoMagic, true);
  view.setUint32(4, content.length, true);
  frame.set(content, recordIoHeaderBytes);
  return frame;
}
