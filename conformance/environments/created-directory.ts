import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { acquireLock } from "./lock.ts";
import type { Installation } from "./run-command.ts";

const stampName = "complete.json";

/**
 * Returns the result of `make` for `directory`, from now or from an earlier process. One process creates the directory
 * at a time, and the others wait. A directory without its stamp is left over from an interrupted or failed creation,
 * and is removed first.
 */
export async function createdDirectory<Told>(
  directory: string,
  { signal }: Pick<Installation, "signal">,
  make: () => Promise<Told>,
): Promise<Told> {
  const found = await readStamp<Told>(directory);
  if (found !== null) return found;
  await mkdir(dirname(directory), { recursive: true });
  using _lock = await acquireLock(`${directory}.making`, signal);
  const madeMeanwhile = await readStamp<Told>(directory);
  if (madeMeanwhile !== null) return madeMeanwhile;
  await rm(directory, { recursive: true, force: true });
  const reported = await make();
  const staging = join(directory, `${stampName}.writing`);
  await writeFile(staging, `${JSON.stringify(reported, null, 1)}\n`);
  await rename(staging, join(directory, stampName));
  return reported;
}

async function readStamp<Told>(directory: string): Promise<Told | null> {
  try {
    return JSON.parse(await readFile(join(directory, stampName), "utf8")) as Told;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}
