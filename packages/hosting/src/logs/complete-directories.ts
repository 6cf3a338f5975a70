import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { SerialQueue } from "@galatea/base";

/** Names of temporary directories. They cannot collide with log groups, whose directories never begin with a dot. */
const [comingName, goingName] = [".coming", ".going"];

/**
 * Atomic creation and removal of directories: after a crash, a directory exists with all its initial files or not at
 * all. Concurrent calls are serialized.
 */
export class AtomicDirectories {
  readonly #folder: string;
  readonly #calls = new SerialQueue();

  constructor(folder: string) {
    this.#folder = folder;
  }

  /**
   * Creates a directory with the given files (name to text). The parent must exist. An existing directory keeps its
   * files and gets the given files in addition.
   */
  make(path: string, files: ReadonlyMap<string, string>): Promise<void> {
    return this.#calls.run(() => this.#make(path, files));
  }

  async #make(path: string, files: ReadonlyMap<string, string>): Promise<void> {
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
  remove(path: string): Promise<void> {
    return this.#calls.run(async () => {
      await this.#sweep();
      const going = join(this.#folder, goingName);
      await rename(path, going);
      await rm(going, { recursive: true });
    });
  }

  /** Deletes temporary directories that an interrupted call left behind. */
  sweep(): Promise<void> {
    return this.#calls.run(() => this.#sweep());
  }

  async #sweep(): Promise<void> {
    for (const name of [comingName, goingName]) await rm(join(this.#folder, name), { recursive: true, force: true });
  }
}
