import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { Logger } from "@galatea/base";
import { isQuarantined, renameToQuarantine, readChecksummed, checksummedText, quarantineFile } from "./damaged-file.ts";
import { replaceDurably } from "./durable-file.ts";
import type { JoinedParts } from "./joined-parts.ts";
import type { PartHead, UploadHead, UploadOptions } from "./object-store.ts";

export interface StoredPart extends PartHead {
  /** Name of the file with the part's bytes: a separate file, or the file of joined parts. */
  readonly data: string;
  /** Offset of the bytes in the file; absent: 0. */
  readonly offset?: number;
  /** CRC-32 of the part's bytes, base64. */
  readonly crc32: string;
}

export interface MultipartUpload {
  readonly head: UploadHead;
  readonly options: UploadOptions;
  readonly parts: Map<number, StoredPart>;
  /**
   * True for an upload of a previous run. A power failure may have lost unsynced data, so its parts are checked before
   * they are joined.
   */
  readonly isResumed: boolean;
  readonly joined: JoinedParts;
}

export interface UploadRecord {
  readonly head: UploadHead;
  readonly options: UploadOptions;
}

/** The folder of an upload, described by its name and location. */
interface FoundUpload {
  readonly folder: string;
  readonly bucket: string;
  readonly uploadId: string;
  readonly names: readonly string[];
  readonly joined: JoinedParts;
}

/** Reads an upload. Returns null if it is damaged, and quarantines its folder. */
export async function readUpload(
  { folder, bucket, uploadId, names, joined }: FoundUpload,
  logger: Logger,
): Promise<MultipartUpload | null> {
  let record: UploadRecord;
  try {
    record = await readDescription<UploadRecord>(join(folder, "upload.json"), logger);
    if (record.head.uploadId !== uploadId) throw new Error("it belongs to another upload");
  } catch (error) {
    await quarantineFile(folder, "an unfinished upload is damaged", String(error), logger);
    return null;
  }
  const upload: MultipartUpload = {
    head: { ...record.head, bucket },
    options: record.options,
    parts: new Map(),
    isResumed: true,
    joined,
  };
  const damaged = new Set<string>();
  for (const name of names.filter((file) => /^\d+\.json$/.test(file))) {
    try {
      const part = await readDescription<StoredPart>(join(folder, name), logger);
      if (`${part.partNumber}.json` !== name || !names.includes(part.data)) throw new Error("it names no file");
      upload.parts.set(part.partNumber, part);
    } catch (error) {
      damaged.add(name.slice(0, -".json".length));
      await quarantineFile(join(folder, name), "a part of an unfinished upload is damaged", String(error), logger);
    }
  }
  const kept = new Set([...upload.parts.values()].map((part) => part.data));
  for (const name of names) {
    if (/^(?:upload|\d+)\.json$/.test(name) || kept.has(name) || isQuarantined(name)) continue;
    if (damaged.has(name.split(".")[0] ?? "")) await renameToQuarantine(join(folder, name));
    else await rm(join(folder, name), { recursive: true, force: true });
  }
  return upload;
}

async function readDescription<Content>(path: string, logger: Logger): Promise<Content> {
  const { content, isRepaired } = await readChecksummed<Content>(path);
  if (isRepaired) {
    logger.error("an unfinished upload's description had a flipped bit and is repaired", { path });
    await replaceDurably(path, checksummedText(content));
  }
  return content;
}
