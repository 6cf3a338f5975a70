import { mkdir, readdir, rename, rm, stat, unlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { readSealed, sealedText } from "../objects/index.ts";
import type { InstanceOwner } from "../index.ts";

const ownerFile = "instance.json";
/** What of an instance's directory is taken over; its container's other files are not. */
const keptNames = new Set(["ml", "trees", ownerFile]);

const keyOf = ({ endpointName, variantName, modelDataUrl, seat }: InstanceOwner) =>
  JSON.stringify([endpointName, variantName, modelDataUrl, seat]);

/** Directories of instances from an earlier life of the platform, until an instance of the same owner takes one over. */
export class LeftInstances {
  readonly #left = new Map<string, string[]>();

  /** Keeps one directory for each wanted instance and removes the others. */
  async open(directory: string, wanted: readonly InstanceOwner[]): Promise<void> {
    const counts = new Map<string, number>();
    for (const owner of wanted) counts.set(keyOf(owner), (counts.get(keyOf(owner)) ?? 0) + 1);
    for (const name of await readdir(directory)) {
      if (!name.startsWith("i-")) continue;
      const path = join(directory, name);
      const key = await readOwner(path);
      const count = key === null ? 0 : (counts.get(key) ?? 0);
      if (key === null || count === 0) {
        await rm(path, { recursive: true, force: true });
        continue;
      }
      counts.set(key, count - 1);
      this.#left.set(key, [...(this.#left.get(key) ?? []), path]);
    }
  }

  /** Renames a directory of this owner to `directory`, which is absent; false when there is none. */
  async take(owner: InstanceOwner, directory: string): Promise<boolean> {
    const path = this.#left.get(keyOf(owner))?.pop();
    if (path === undefined) return false;
    await rename(path, directory);
    for (const name of await readdir(directory)) {
      if (!keptNames.has(name)) await rm(join(directory, name), { recursive: true, force: true });
    }
    for (const name of await readdir(join(directory, "ml"))) {
      if (name !== "models") await rm(join(directory, "ml", name), { recursive: true, force: true });
    }
    return true;
  }
}

/** So that the next life of the platform knows whose unpacked models these are. */
export async function writeOwner(directory: string, owner: InstanceOwner): Promise<void> {
  const path = join(directory, ownerFile);
  await writeFile(`${path}.tmp`, sealedText(owner));
  await rename(`${path}.tmp`, path);
}

async function readOwner(directory: string): Promise<string | null> {
  try {
    const { content } = await readSealed<Omit<InstanceOwner, "seat"> & Partial<InstanceOwner>>(
      join(directory, ownerFile),
    );
    // Written before instances were numbered: each was its variant's only one, or its models are fetched again.
    return keyOf({ ...content, seat: content.seat ?? 0 });
  } catch {
    // Of an instance that keeps nothing, or that was just being made.
    return null;
  }
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
