import type { JsonScanner } from "./json-scanner.ts";

const escapeValues: readonly number[] = (() => {
  const table = Array.from({ length: 128 }, () => 0);
  for (const [letter, value] of [
    ['"', 0x22],
    ["\\", 0x5c],
    ["/", 0x2f],
    ["b", 8],
    ["f", 12],
    ["n", 10],
    ["r", 13],
    ["t", 9],
  ] as const) {
    table[letter.charCodeAt(0)] = value;
  }
  return table;
})();

/**
 * Decodes the string at the scanner's position into `into` at `offset`: UTF-8 is copied unchanged, escapes are resolved. Returns the offset
 * after the last byte. Writes at most as many bytes as the string has between its quotes. The string must have been checked.
 */
export function unescapeJsonString(scanner: JsonScanner, into: Uint8Array, offset: number): number {
  const { bytes } = scanner;
  let at = scanner.at + 1;
  let byte = bytes[at]!;
  while (byte !== 0x22) {
    if (byte !== 0x5c) {
      into[offset++] = byte;
      at++;
    } else if (bytes[at + 1] !== 0x75) {
      into[offset++] = escapeValues[bytes[at + 1]!]!;
      at += 2;
    } else {
      let point = scanner.hexUnit(at, at + 2);
      at += 6;
      if (point >= 0xd800 && point <= 0xdbff) {
        point = 0x10000 + ((point - 0xd800) << 10) + (scanner.hexUnit(at, at + 2) - 0xdc00);
        at += 6;
      }
      offset = writeCodePoint(point, into, offset);
    }
    byte = bytes[at]!;
  }
  scanner.at = at + 1;
  return offset;
}

/** Encodes lone low surrogates as three bytes, as Triton does. */
function writeCodePoint(point: number, into: Uint8Array, offset: number): number {
  if (point < 0x80) {
    into[offset++] = point;
  } else if (point < 0x800) {
    into[offset++] = 0xc0 | (point >> 6);
    into[offset++] = 0x80 | (point & 0x3f);
  } else if (point < 0x10000) {
    into[offset++] = 0xe0 | (point >> 12);
    into[offset++] = 0x80 | ((point >> 6) & 0x3f);
    into[offset++] = 0x80 | (point & 0x3f);
  } else {
    into[offset++] = 0xf0 | (point >> 18);
    into[offset++] = 0x80 | ((point >> 12) & 0x3f);
    into[offset++] = 0x80 | ((point >> 6) & 0x3f);
    into[offset++] = 0x80 | (point & 0x3f);
  }
  return offset;
}

const decoder = new TextDecoder();
const shortStringLength = 40;

/**
 * Returns the string at the scanner's position, which must have been checked, as a JavaScript string. Moves the scanner past the string.
 */
export function readJsonString(scanner: JsonScanner): string {
  const start = scanner.at + 1;
  const { bytes } = scanner;
  let at = start;
  let text = "";
  for (; at - start < shortStringLength; at++) {
    const byte = bytes[at]!;
    if (byte === 0x22) {
      scanner.at = at + 1;
      return text;
    }
    if (byte === 0x5c || byte >= 0x80) break;
    text += String.fromCharCode(byte);
  }
  scanner.skipString();
  const lag = scanner.at;
  scanner.at = start - 1;
  const unescaped = new Uint8Array(lag - start);
  const length = unescapeJsonString(scanner, unescaped, 0);
  return decoder.decode(unescaped.subarray(0, length));
}

/** Returns whether the bytes `[start, end)` equal `word` (ASCII). For names with escapes, callers use `readJsonString`. */
export function equalsAscii(bytes: Uint8Array, start: number, end: number, word: string): boolean {
  if (end - start !== word.length) return false;
  for (let i = 0; i < word.length; i++) if (bytes[start + i] !== word.charCodeAt(i)) return false;
  return true;
}
