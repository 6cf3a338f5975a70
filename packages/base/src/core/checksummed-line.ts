import { crc32 } from "node:zlib";

/** Length of the checksum and of the space that follows it. */
const prefixLength = 9;

/**
 * Returns a line of text prefixed with its CRC-32, so that a reader can detect damage by the disk. `text` must not
 * contain a line break.
 */
export function checksummedLine(text: string): string {
  return `${hexOf(crc32(text))} ${text}`;
}

export interface ChecksummedLine {
  readonly text: string;
  /** True if one bit of the line had flipped and was repaired. */
  readonly isRepaired: boolean;
}

/**
 * Returns the text of a checksummed line, which must be given without its line break. Repairs a single flipped bit,
 * which the CRC locates. Returns null for a line with more damage and for any other line.
 */
export function parseChecksummedLine(line: Buffer): ChecksummedLine | null {
  if (line.length < prefixLength) return null;
  const text = line.subarray(prefixLength);
  const computed = crc32(text);
  const sealBits = differingBits(line.subarray(0, prefixLength), Buffer.from(`${hexOf(computed)} `, "latin1"));
  if (sealBits === 0) return { text: text.toString("utf8"), isRepaired: false };
  // The flipped bit is in the checksum or in the space, so the text is undamaged.
  if (sealBits === 1) return { text: text.toString("utf8"), isRepaired: true };
  const seal = line.toString("latin1", 0, prefixLength);
  if (!/^[0-9a-f]{8} $/.test(seal)) return null;
  const bit = flippedBit(text.length, (computed ^ Number.parseInt(seal, 16)) >>> 0);
  if (bit === null) return null;
  const repaired = Buffer.from(text);
  repaired[bit >>> 3]! ^= 1 << (bit & 7);
  return { text: repaired.toString("utf8"), isRepaired: true };
}

/** Maximum length of a text in which a flipped bit is searched for. The search takes one step per bit. */
const repairedBytesMax = 2 ** 20;

/**
 * Returns the bit that changes the CRC of a text of this length by `difference`; null if no single bit does. Because
 * the CRC is linear, the effect of a flipped bit depends only on its distance from the end.
 */
function flippedBit(byteLength: number, difference: number): number | null {
  const effects = Array.from({ length: 8 }, (_, bit) => afterZeroByte(1 << bit));
  for (let at = byteLength - 1; at >= Math.max(0, byteLength - repairedBytesMax); at -= 1) {
    for (let bit = 0; bit < 8; bit += 1) {
      if (effects[bit] === difference) return at * 8 + bit;
      effects[bit] = afterZeroByte(effects[bit] ?? 0);
    }
  }
  return null;
}

/** Returns the CRC-32 register (reflected, polynomial 0xEDB88320) after one more zero byte. */
function afterZeroByte(register: number): number {
  let value = register;
  for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  return value >>> 0;
}

function differingBits(a: Buffer, b: Buffer): number {
  let count = 0;
  for (let at = 0; at < a.length; at += 1) {
    for (let difference = a[at]! ^ b[at]!; difference !== 0; difference &= difference - 1) count += 1;
  }
  return count;
}

const hexOf = (value: number) => value.toString(16).padStart(8, "0");
