import { scalePowersOf10 } from "./json-powers.ts";
import type { JsonScanner } from "./json-scanner.ts";

export interface FloatsTarget {
  readonly view: DataView;
  /** Byte offset of the first number in the buffer. */
  readonly offset: number;
  readonly countMax: number;
}

/** Bound of the relative error when an integer of up to 18 digits is divided by an exact power of ten. */
const error = 2 ** -49;

/**
 * Reads FP32 numbers of an array up to the offset `untilAt`, each with the comma and the space after it, and returns their count. Stops
 * before any element that needs `JsonScanner.number`: the array's last element, other white space, more than 18 digits, exponents, decimals
 * close to the middle between two floats, and elements that are not numbers. Takes half the time of `JsonScanner.number`
 * (bench/rows/large-messages.ts).
 */
export function readPlainFloats(
  scanner: JsonScanner,
  { view, offset, countMax }: FloatsTarget,
  untilAt: number,
): number {
  const { bytes, end } = scanner;
  const stopAt = Math.min(untilAt, end);
  let startAt = scanner.at;
  let count = 0;
  while (startAt < stopAt && count < countMax) {
    let at = startAt;
    let byte = bytes[at]!;
    const isNegative = byte === 0x2d;
    if (isNegative) byte = bytes[++at]!;
    let high = 0;
    let low = 0;
    let digits = 0;
    if (byte === 0x30) byte = bytes[++at]!;
    else if (byte > 0x30 && byte <= 0x39)
      do {
        if (digits++ < 9) high = (Math.imul(high, 10) + byte - 0x30) | 0;
        else low = (Math.imul(low, 10) + byte - 0x30) | 0;
        byte = bytes[++at]!;
      } while (byte >= 0x30 && byte <= 0x39);
    else break;
    let decimals = 0;
    if (byte === 0x2e) {
      const pointAt = at;
      byte = bytes[++at]!;
      if (digits === 0) while (byte === 0x30) byte = bytes[++at]!;
      while (byte >= 0x30 && byte <= 0x39) {
        if (digits++ < 9) high = (Math.imul(high, 10) + byte - 0x30) | 0;
        else low = (Math.imul(low, 10) + byte - 0x30) | 0;
        byte = bytes[++at]!;
      }
      decimals = at - pointAt - 1;
      if (decimals === 0) break;
    }
    if (byte !== 0x2c || at >= end || digits > 18 || decimals > 22) break;
    const magnitude = (digits <= 9 ? high : high * scalePowersOf10[digits - 9]! + low) / scalePowersOf10[decimals]!;
    const value = Math.fround(magnitude * (1 - error));
    if (value !== Math.fround(magnitude * (1 + error))) break;
    view.setFloat32(offset + 4 * count, isNegative ? -value : value, true);
    startAt = bytes[at + 1] === 0x20 ? at + 2 : at + 1;
    count++;
  }
  scanner.at = Math.min(startAt, end);
  return count;
}
