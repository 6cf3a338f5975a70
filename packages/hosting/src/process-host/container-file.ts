import { readFileSync } from "node:fs";
import { rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { ProcessIdentity } from "@galatea/base/processes";
import { readChecksummed, checksummedText } from "../objects/index.ts";
import type { InstanceOwner, InstanceSpec } from "../instances/index.ts";

/**
 * The content of `container.json` in a container's directory. The next run of the platform reads it, and adopts or stops the container.
 */
export interface ContainerFile {
  /** The instance's owner; null for a container that the next run stops instead of adopting. */
  readonly owner: InstanceOwner | null;
  /** The node that runs the container. */
  readonly node: InstanceSpec["node"];
  /** The S3 prefix of the archives of a multi-model container; null for other containers. */
  readonly modelDataUrl: string | null;
  /** Digest of the spec with which the process was started. */
  readonly specDigest: string;
  readonly process: ContainerProcess | null;
}

/** The process of a container, and the socket that it listens on. */
export interface ContainerProcess extends ProcessIdentity {
  /** The id of the machine's boot. After a reboot, an unrelated process could have the same pid and start time. */
  readonly bootId: string;
  readonly socketPath: string;
}

const fileName = "container.json";

export async function writeContainerFile(directory: string, file: ContainerFile): Promise<void> {
  const path = join(directory, fileName);
  await writeFile(`${path}.tmp`, checksummedText(file));
  await rename(`${path}.tmp`, path);
}

/**
 * Reads a container file. Returns null if the file is missing or damaged, because the previous run ended while it created the
 * container.
 */
export async function readContainerFile(directory: string): Promise<ContainerFile | null> {
  try {
    return (await readChecksummed<ContainerFile>(join(directory, fileName))).content;
  } catch {
    return null;
  }
}

export function readBootId(): string {
  return readFileSync("/proc/sys/kernel/random/boot_id", "latin1").trim();
}
