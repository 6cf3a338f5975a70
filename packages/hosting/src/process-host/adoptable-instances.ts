import { mkdir, readdir, rm, stat, unlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Clock } from "@galatea/base";
import { endLeftover, findDetached, readProcessStart } from "@galatea/base/processes";
import { ownerKey, type InstanceOwner, type AdoptableInstance } from "../instances/index.ts";
import { readBootId, readContainerFile, type ContainerProcess } from "./container-file.ts";

interface AdoptableInstancesOptions {
  readonly directory: string;
  /** The directory of the instances' sockets. Other programs must not use it, because unknown files in it are deleted. */
  readonly socketsDirectory: string;
  readonly desired: readonly InstanceOwner[];
  readonly clock: Clock;
}

/** The instances of a previous run of the platform that no fleet has claimed yet. */
export class AdoptableInstances {
  readonly #kept = new Map<string, AdoptableInstance>();

  /** Reads the instances of the previous run. Keeps one instance for each desired owner, and stops and removes all others. */
  async open({ directory, socketsDirectory, desired, clock }: AdoptableInstancesOptions): Promise<void> {
    const keys = new Set(desired.map(ownerKey));
    await endUnrecorded(directory, clock);
    const sockets = new Set<string>();
    for (const [id, names] of await instancesIn(directory)) {
      const paths = names.map((name) => join(directory, name));
      const files = await Promise.all(paths.map(readContainerFile));
      const first = files.find((file) => file !== null && file.owner !== null) ?? null;
      const key = first === null || first.owner === null ? null : ownerKey(first.owner);
      if (first !== null && key !== null && keys.delete(key)) {
        this.#kept.set(key, { id, node: first.node });
        for (const file of files) if (file !== null && file.process !== null) sockets.add(file.process.socketPath);
        continue;
      }
      await Promise.all(files.map((file) => stopContainerProcess(file?.process ?? null, clock)));
      for (const path of paths) await rm(path, { recursive: true, force: true });
    }
    // Deletes stale sockets: sockets of killed processes, and sockets that no container file mentions.
    for (const name of await readdir(socketsDirectory)) {
      const path = join(socketsDirectory, name);
      if (!sockets.has(path)) await rm(path, { force: true });
    }
  }

  get ids(): ReadonlySet<string> {
    return new Set(this.#kept.values().map(({ id }) => id));
  }

  claim(owner: InstanceOwner): AdoptableInstance | null {
    const key = ownerKey(owner);
    const kept = this.#kept.get(key) ?? null;
    this.#kept.delete(key);
    return kept;
  }
}

/**
 * Returns the names of container directories, by instance id. The directory of the first container is named after the instance; further directories have the
 * suffix `-2`, `-3` and so on.
 */
async function instancesIn(directory: string): Promise<ReadonlyMap<string, readonly string[]>> {
  const byId = new Map<string, string[]>();
  for (const name of await readdir(directory)) {
    const id = /^(i-[^-]+)(?:-\d+)?$/.exec(name)?.[1];
    if (id !== undefined) byId.set(id, [...(byId.get(id) ?? []), name]);
  }
  return byId;
}

/**
 * Stops container processes that are not in a container file. They exist if the previous run was killed between the start of a process and the write of its
 * file.
 */
async function endUnrecorded(directory: string, clock: Clock): Promise<void> {
  for (const process of await findDetached(directory)) {
    const file = await readContainerFile(dirname(process.outputDirectory));
    if (file !== null && file.process !== null && readProcessStart(file.process.pid) === file.process.startTicks)
      continue;
    await endLeftover(process, clock, new AbortController().signal);
  }
}

/** Stops a container process of a previous run and removes its socket. Does nothing if the machine has rebooted since. */
export async function stopContainerProcess(process: ContainerProcess | null, clock: Clock): Promise<void> {
  if (process === null || process.bootId !== readBootId()) return;
  await endLeftover(process, clock, new AbortController().signal);
  await rm(process.socketPath, { force: true });
}

/** Removes shared files that no tree links to. They exist if a removal was interrupted. */
export async function deleteAllUnlinkedContents(directory: string): Promise<void> {
  await mkdir(directory, { recursive: true });
  for (const length of await readdir(directory)) {
    for (const id of await readdir(join(directory, length))) {
      const path = join(directory, length, id);
      if ((await stat(path)).nlink === 1) await unlink(path);
    }
  }
}
