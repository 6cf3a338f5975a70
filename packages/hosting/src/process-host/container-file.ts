import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { ProcessIdentity } from "@galatea/base/processes";
import { readSealed, sealedText } from "../objects/index.ts";
import type { ContainerSpec, InstanceOwner } from "../index.ts";

/** What the platform's next life has to know of a container: a file in the container's directory. */
export interface ContainerFile {
  /** Null where the next life only ends it. */
  readonly owner: InstanceOwner | null;
  /** Where its models come from, where it has many; null for others. */
  readonly modelDataUrl: string | null;
  /** Of the spec that its process was started with. */
  readonly specDigest: string;
  readonly process: ContainerProcess | null;
}

/** The process of a container, and where it answers. */
export interface ContainerProcess extends ProcessIdentity {
  /** Another after each start of the machine: process ids and start times begin anew then. */
  readonly bootId: string;
  readonly socketPath: string;
}

const fileName = "container.json";

/** By the bytes that a process is started with: what its log lines go to is no part of it. */
export function specDigest(spec: ContainerSpec): string {
  const environment = Object.entries(spec.environment).toSorted(([one], [other]) => (one < other ? -1 : 1));
  return createHash("sha256")
    .update(
      JSON.stringify([spec.title, spec.runtime, spec.models, environment, spec.modelMemoryBytes, spec.concurrencyMax]),
    )
    .digest("hex");
}

export async function writeContainerFile(directory: string, file: ContainerFile): Promise<void> {
  const path = join(directory, fileName);
  await writeFile(`${path}.tmp`, sealedText(file));
  await rename(`${path}.tmp`, path);
}

/** Null where there is none that can be read: the container was just being made. */
export async function readContainerFile(directory: string): Promise<ContainerFile | null> {
  try {
    return (await readSealed<ContainerFile>(join(directory, fileName))).content;
  } catch {
    return null;
  }
}

export function readBootId(): string {
  return readFileSync("/proc/sys/kernel/random/boot_id", "latin1").trim();
}
