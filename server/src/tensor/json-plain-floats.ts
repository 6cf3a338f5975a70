import { scalePowersOf10 } from "./json-powers.ts";
import type { JsonScanner } from "./json-scanner.ts";

export interface FloatsTarget {
  readonly view: DataView;
  /** Where the first one goes. */
  readonly offset: number;
  readonly countMax: number;
}

/** Of a quotient of an integer of 18 digits at most and a power of ten that a double holds: closer than this part of it. */
const error = 2 ** -49;

/**
 * Reads FP32 numbers of an array as `JsonScanner.number` does, each with the comma behind it and the blank behind that, until one begins at
 * `untilAt` or later, and returns how many they are. Stops before whatever takes a closer look: the array's last element, white space
 * elsewhere, more than 18 digits, exponents, the few decimals next to the middle between two floats, what is no number.
 * Half the time of a call for each number and for what is around it (bench/rows/large-messages.ts).
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
