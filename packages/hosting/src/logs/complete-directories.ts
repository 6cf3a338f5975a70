import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";

/** Names of temporary directories; no log group's directory begins with a dot. */
const [comingName, goingName] = [".coming", ".going"];

/**
 * Directories that are created with all their first files or not at all, and removed completely or not at all, even if
 * the platform crashes meanwhile. Callers make one change at a time.
 */
export class AtomicDirectories {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /**
   * Creates a directory with the given files, texts by name; its parent has to exist. An existing directory keeps its
   * files and gets these, too.
   */
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

  /** Removes a directory with its content. */
  async remove(path: string): Promise<void> {
    await this.sweep();
    const going = join(this.#folder, goingName);
    await rename(path, going);
    await rm(going, { recursive: true });
  }

  /** Deletes the remains of changes that a crash interrupted. */
  async sweep(): Promise<void> {
    for (const name of [comingName, goingName]) await rm(join(this.#folder, name), { recursive: true, force: true });
  }
}
