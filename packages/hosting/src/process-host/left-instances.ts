import { mkdir, readdir, rm, stat, unlink } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "@galatea/base";
import { endLeftover } from "@galatea/base/processes";
import type { InstanceOwner } from "../index.ts";
import { readBootId, readContainerFile, type ContainerProcess } from "./container-file.ts";

const keyOf = ({ endpointName, fleetKey, seat }: InstanceOwner) => JSON.stringify([endpointName, fleetKey, seat]);

/** Instances from an earlier life of the platform, until somebody claims them for the same owner. */
export class LeftInstances {
  readonly #ids = new Map<string, string>();

  /** Keeps one instance for each wanted owner; ends and removes the others. */
  async open(directory: string, wanted: readonly InstanceOwner[], clock: Clock): Promise<void> {
    const keys = new Set(wanted.map(keyOf));
    for (const [id, names] of await instancesIn(directory)) {
      const paths = names.map((name) => join(directory, name));
      const files = await Promise.all(paths.map(readContainerFile));
      const owner = files.find((file) => file !== null)?.owner ?? null;
      const key = owner === null ? null : keyOf(owner);
      if (key !== null && keys.delete(key)) {
        this.#ids.set(key, id);
        continue;
      }
      await Promise.all(files.map((file) => endProcess(file?.process ?? null, clock)));
      for (const path of paths) await rm(path, { recursive: true, force: true });
    }
  }

  get ids(): ReadonlySet<string> {
    return new Set(this.#ids.values());
  }

  claim(owner: InstanceOwner): string | null {
    const key = keyOf(owner);
    const id = this.#ids.get(key) ?? null;
    this.#ids.delete(key);
    return id;
  }
}

/** Directories of containers by the instance that they belong to: the first one has the instance's name. */
async function instancesIn(directory: string): Promise<ReadonlyMap<string, readonly string[]>> {
  const byId = new Map<string, string[]>();
  for (const name of await readdir(directory)) {
    const id = /^(i-[^-]+)(?:-\d+)?$/.exec(name)?.[1];
    if (id !== undefined) byId.set(id, [...(byId.get(id) ?? []), name]);
  }
  return byId;
}

/** Ends what runs of a container that nobody wants any more. */
export async function endProcess(process: ContainerProcess | null, clock: Clock): Promise<void> {
  if (process === null || process.bootId !== readBootId()) return;
  await endLeftover(process, clock, new AbortController().signal);
  await rm(process.socketPath, { force: true });
}

/** Removes the shared files that no tree links to: what an interrupted removal has left. */
export async function collectLeftContents(directory: string): Promise<void> {
  await mkdir(directory, { recursive: true });
  for (const length of await readdir(directory)) {
    for (const id of await readdir(join(directory, length))) {
      const path = join(directory, length, id);
      if ((await stat(path)).nlink === 1) await unlink(path);
    }
  }
}
