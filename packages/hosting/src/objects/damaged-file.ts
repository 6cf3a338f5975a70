import { randomBytes } from "node:crypto";
import { readFile, rename } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { checksummedLine, parseChecksummedLine, type Logger } from "@galatea/base";

/** What a sealed file was read as. */
export interface SealedFile<Content> {
  readonly content: Content;
  /** One of its bits was another one: it is to be written anew. */
  readonly isRepaired: boolean;
}

export function sealedText(content: unknown): string {
  return `${checksummedLine(JSON.stringify(content))}\n`;
}

/** Throws where the file cannot be read or its checksum is another one. */
export async function readSealed<Content>(path: string): Promise<SealedFile<Content>> {
  const bytes = await readFile(path);
  const unsealed = parseChecksummedLine(bytes.subarray(0, bytes.length - 1));
  if (unsealed === null) throw new Error("its checksum is another one");
  return { content: JSON.parse(unsealed.text) as Content, isRepaired: unsealed.isRepaired };
}

const damagedPattern = /\.damaged-[0-9a-f]{12}$/;

/** Whether this is the name of something that was set aside. */
export function isAside(name: string): boolean {
  return damagedPattern.test(name);
}

/** Renames what is damaged, or was made by nobody, and tells it in one line; it stays for a person to look at. */
export async function setAside(path: string, what: string, reason: string, logger: Logger): Promise<void> {
  const aside = await moveAside(path);
  logger.error(`${what} and is set aside`, { path, aside, reason });
}

/** As `setAside`, for what was told with something else; gives the name that it has now. */
export async function moveAside(path: string): Promise<string> {
  const aside = `${basename(path).slice(0, 200)}.damaged-${randomBytes(6).toString("hex")}`;
  await rename(path, join(dirname(path), aside));
  return aside;
}
