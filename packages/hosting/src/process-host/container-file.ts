import { readFileSync } from "node:fs";
import { rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { ProcessIdentity } from "@galatea/base/processes";
import { readChecksummed, checksummedText } from "../objects/index.ts";
import type { InstanceOwner, InstanceSpec } from "../instances/index.ts";

/** The content of `container.json` in a container's directory, from which the next run of the platform adopts the container or ends it. */
export interface ContainerFile {
  /** Null for a container that the next run ends instead of adopting. */
  readonly owner: InstanceOwner | null;
  /** The node that runs it. */
  readonly node: InstanceSpec["node"];
  /** The S3 prefix of the archives of a multi-model container; null for other containers. */
  readonly modelDataUrl: string | null;
  /** The digest of the spec that the process was started with. */
  readonly specDigest: string;
  readonly process: ContainerProcess | null;
}

/** The process of a container, and the socket that it listens on. */
export interface ContainerProcess extends ProcessIdentity {
  /** Changes with each boot of the machine. Without it, a pid and start time from before a reboot could match an unrelated process. */
  readonly bootId: string;
  readonly socketPath: string;
}

const fileName = "container.json";

export async function writeContainerFile(directory: string, file: ContainerFile): Promise<void> {
  const path = join(directory, fileName);
  await writeFile(`${path}.tmp`, checksummedText(file));
  await rename(`${path}.tmp`, path);
}

/** Returns null for a file that is missing or damaged: the run before this one ended while it created the container. */
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
