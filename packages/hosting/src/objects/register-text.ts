import { checksummedLine, undamagedText } from "@galatea/base";
import type { ObjectEntry, StoredEntry } from "./object-entry.ts";

const formatNumber = 1;

/** The first line of a register. */
export const registerHeader = `${checksummedLine(JSON.stringify({ register: formatNumber }))}\n`;

export function registerLine({ version, offset, head, data, crc32, uploadId }: ObjectEntry): string {
  return `${checksummedLine(JSON.stringify([version, offset, { head, data, crc32, uploadId }]))}\n`;
}

/**
 * Parses a line without its line break. Returns null for any damage: a flipped bit is not corrected, because the
 * entry's own file has the same data.
 */
export function parseRegisterLine(line: Buffer): ObjectEntry | null {
  const row = parsed(line);
  if (!Array.isArray(row) || row.length !== 3) return null;
  const [version, offset, stored] = row as readonly unknown[];
  if (!isCount(version) || !isCount(offset) || !isStoredEntry(stored)) return null;
  const { head, data, crc32, uploadId } = stored;
  return { head, data, crc32, uploadId, version, offset };
}

function parsed(line: Buffer): unknown {
  const text = undamagedText(line);
  if (text === null) return null;
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;
const isText = (value: unknown): value is string => typeof value === "string";
const isTextOrNull = (value: unknown): value is string | null => value === null || isText(value);

function isStoredEntry(value: unknown): value is StoredEntry {
  if (!isRecord(value)) return false;
  const { head, data, crc32, uploadId } = value;
  return isHead(head) && isTextOrNull(data) && isCount(crc32) && crc32 < 2 ** 32 && isTextOrNull(uploadId);
}

function isHead(value: unknown): boolean {
  if (!isRecord(value)) return false;
  const { bucket, key, byteLength, etag, lastModifiedMs, contentType, headers, checksums, checksumType } = value;
  return (
    [bucket, key, etag, contentType].every(isText) &&
    isCount(byteLength) &&
    Number.isFinite(lastModifiedMs) &&
    areTexts(headers) &&
    areTexts(checksums) &&
    (checksumType === undefined || checksumType === "COMPOSITE" || checksumType === "FULL_OBJECT")
  );
}

const areTexts = (value: unknown) => isRecord(value) && Object.values(value).every(isText);

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
