import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";

/** Removes all files and folders in `parent` that begin with `prefix`, except those that begin with `name`. The caller must hold a lock. */
export async function keepNewest(parent: string, prefix: string, name: string): Promise<void> {
  for (const each of await readdir(parent))
    if (each.startsWith(prefix) && !each.startsWith(name)) await rm(join(parent, each), { recursive: true });
}
