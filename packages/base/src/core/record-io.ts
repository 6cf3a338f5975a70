/**
 * The first four bytes of each frame of MXNet's RecordIO format. The next 32 bits are the segment's position in its
 * record (3 bits: whole, first, middle or last) and its length (29 bits). The segment follows, padded to four bytes. A
 * record that contains the magic number is split there, and the frames omit the number.
 */
export const recordIoMagic = 0xced7230a;
export const recordIoHeaderBytes = 8;

const parts = ["whole", "first", "middle", "last"] as const;

export interface RecordIoHeader {
  /** Position of the segment in its record; null for a number that the format does not assign. */
  readonly part: (typeof parts)[number] | null;
  readonly contentBytes: number;
  /** Length of the frame, including header and padding. */
  readonly frameBytes: number;
}

/**
 * Reads the header at an offset; null if there is no header. At least `recordIoHeaderBytes` bytes must follow the
 * offset.
 */
export function readRecordIoHeader(bytes: Uint8Array, at: number): RecordIoHeader | null {
  const view = new DataView(bytes.buffer, bytes.byteOffset + at, recordIoHeaderBytes);
  if (view.getUint32(0, true) !== recordIoMagic) return null;
  const word = view.getUint32(4, true);
  const contentBytes = word & 0x1fffffff;
  const frameBytes = recordIoHeaderBytes + Math.ceil(contentBytes / 4) * 4;
  return { part: parts[word >>> 29] ?? null, contentBytes, frameBytes };
}

/** Returns the frame of one record, which must not contain the magic number. */
export function recordIoFrame(content: Uint8Array): Uint8Array {
  const frame = new Uint8Array(recordIoHeaderBytes + Math.ceil(content.length / 4) * 4);
  const view = new DataView(frame.buffer);
  view.setUint32(0, recordIoMagic, true);
  view.setUint32(4, content.length, true);
  frame.set(content, recordIoHeaderBytes);
  return frame;
}
