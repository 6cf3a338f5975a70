import { randomBytes } from "node:crypto";
import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";

const namePattern = /^lineage\.([0-9a-f]{32})$/;

/**
 * Empties a store's folder for what is on its way, but for the file that names the store's lineage: an unbroken row of lives that keep
 * registers of entries. A life of an earlier release, which keeps none and may use the name of a file once more, empties the
 * folder whole: the next run begins a new lineage, in which no register counts that was written before.
 */
export async function emptyTemporary(folder: string): Promise<string> {
  await mkdir(folder, { recursive: true });
  let lineage: string | null = null;
  for (const name of await readdir(folder)) {
    const named = namePattern.exec(name)?.[1] ?? null;
    if (named !== null && lineage === null) lineage = named;
    else await rm(join(folder, name), { recursive: true, force: true });
  }
  if (lineage !== null) return lineage;
  const made = randomBytes(16).toString("hex");
  await writeFile(join(folder, `lineage.${made}`), "");
  return made;
}
