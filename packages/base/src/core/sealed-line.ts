import { crc32 } from "node:zlib";

/** Length of the checksum and the space behind it. */
const sealLength = 9;

/** One line of text with its CRC-32 before it, so that a reader can tell what a disk has changed. `text` has no line break. */
export function sealLine(text: string): string {
  return `${hexOf(crc32(text))} ${text}`;
}

export interface UnsealedLine {
  readonly text: string;
  /** One bit of the line was another one and has been put right. */
  readonly isRepaired: boolean;
}

/**
 * The text of a sealed line (without its line break). Where one bit has flipped, the CRC tells which, and it is flipped back.
 * Null when more than that is damaged, or when it never was a sealed line.
 */
export function unsealLine(line: Buffer): UnsealedLine | null {
  if (line.length < sealLength) return null;
  const text = line.subarray(sealLength);
  const computed = crc32(text);
  const sealBits = differingBits(line.subarray(0, sealLength), Buffer.from(`${hexOf(computed)} `, "latin1"));
  if (sealBits === 0) return { text: text.toString("utf8"), isRepaired: false };
  // The flipped bit is in the checksum or in the space: the text is as it was written.
  if (sealBits === 1) return { text: text.toString("utf8"), isRepaired: true };
  const seal = line.toString("latin1", 0, sealLength);
  if (!/^[0-9a-f]{8} $/.test(seal)) return null;
  const bit = flippedBit(text.length, (computed ^ Number.parseInt(seal, 16)) >>> 0);
  if (bit === null) return null;
  const repaired = Buffer.from(text);
  repaired[bit >>> 3]! ^= 1 << (bit & 7);
  return { text: repaired.toString("utf8"), isRepaired: true };
}

/** The text of a sealed line whose checksum is right (without its line break); null otherwise: nothing is put right. */
export function soundText(line: Buffer): string | null {
  if (line.length < sealLength) return null;
  const text = line.subarray(sealLength);
  return line.toString("latin1", 0, sealLength) === `${hexOf(crc32(text))} ` ? text.toString("utf8") : null;
}

/** Longer texts are not searched for a flipped bit: the search takes a step for each. */
const repairedBytesMax = 2 ** 20;

/**
 * The bit whose change turns the CRC of a text of this length by `difference`; null when no single one does. The CRC is linear:
 * what a flipped bit does to it depends on its distance from the end and on nothing else.
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

/** The register of CRC-32 (reflected, polynomial 0xEDB88320) one zero byte later. */
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
