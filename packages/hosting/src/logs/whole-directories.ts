import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";

/** Names that no log group's directory has: these begin with no dot. */
const [comingName, goingName] = [".coming", ".going"];

/**
 * Directories below a folder that are made with all their first files or not at all, and that are gone at once or not at all, also where
 * the platform dies meanwhile. Callers make one change at a time.
 */
export class WholeDirectories {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** With these files, texts by name. The directory above it is there. One that is there already keeps what it has and gets these files, too. */
  async make(path: string, files: ReadonlyMap<string, string>): Promise<void> {
    if (files.size === 0) return void (await mkdir(path, { recursive: true }));
    const coming = join(this.#folder, comingName);
    await rm(coming, { recursive: true, force: true });
    await mkdir(coming, { recursive: true });
    for (const [name, text] of files) await writeFile(join(coming, name), text);
    try {
      await rename(coming, path);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code !== "ENOTEMPTY" && code !== "EEXIST") throw error;
      for (const name of files.keys()) await rename(join(coming, name), join(path, name));
      await rm(coming, { recursive: true });
    }
  }

  /** With all that is in it. */
  async remove(path: string): Promise<void> {
    await this.sweep();
    const going = join(this.#folder, goingName);
    await rename(path, going);
    await rm(going, { recursive: true });
  }

  /** Deletes what a death in the middle of a change has left. */
  async sweep(): Promise<void> {
    for (const name of [comingName, goingName]) await rm(join(this.#folder, name), { recursive: true, force: true });
  }
}
