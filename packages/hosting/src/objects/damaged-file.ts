import { randomBytes } from "node:crypto";
import { readFile, rename } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { checksummedLine, parseChecksummedLine, type Logger } from "@galatea/base";

/** The content of a checksummed file. */
export interface ChecksummedFile<Content> {
  readonly content: Content;
  /** True if one flipped bit was corrected. The caller must rewrite the file. */
  readonly isRepaired: boolean;
}

export function checksummedText(content: unknown): string {
  return `${checksummedLine(JSON.stringify(content))}\n`;
}

/** Reads a checksummed file. Rejects if it cannot be read, or its checksum does not match. */
export async function readChecksummed<Content>(path: string): Promise<ChecksummedFile<Content>> {
  const bytes = await readFile(path);
  const unsealed = parseChecksummedLine(bytes.subarray(0, bytes.length - 1));
  if (unsealed === null) throw new Error("its checksum does not match");
  return { content: JSON.parse(unsealed.text) as Content, isRepaired: unsealed.isRepaired };
}

const damagedPattern = /\.damaged-[0-9a-f]{12}$/;

/** Returns true if a name is the name of a quarantined file. */
export function isQuarantined(name: string): boolean {
  return damagedPattern.test(name);
}

/**
 * Renames a damaged or unknown file and logs the new name. The file stays on disk, so that an operator can examine it.
 */
export async function quarantineFile(path: string, what: string, reason: string, logger: Logger): Promise<void> {
  const aside = await renameToQuarantine(path);
  logger.error(`${what} and is set aside`, { path, aside, reason });
}

/** Renames a file without logging it, and returns its new name. */
export async function renameToQuarantine(path: string): Promise<string> {
  const aside = `${basename(path).slice(0, 200)}.damaged-${randomBytes(6).toString("hex")}`;
  await rename(path, join(dirname(path), aside));
  return aside;
}
