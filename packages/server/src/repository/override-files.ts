import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { dirname, join, normalize } from "node:path";
import { InferenceError } from "@galatea/base";

/** Maximum number of directories of one model: one for the version that loads and one for the version that drains. */
const keptPerModel = 2;
/** Disk space that even an empty file takes: one block and one directory entry. */
const entryBytes = 4096;

interface CreatedDirectory {
  readonly path: string;
  readonly bytes: number;
}

export interface OverrideFilesOptions {
  /** Parent of all directories; created when the first files are written. */
  readonly parent: string;
  /**
   * Maximum disk space of all directories together, in bytes. Without it, a model that loads others from its own files could fill the disk.
   */
  readonly bytesMax: number;
}

/** Directories with the files that clients send in `file:` parameters of loads. All are removed when this is disposed. */
export class OverrideFiles implements AsyncDisposable {
  readonly #options: OverrideFilesOptions;
  readonly #generated = new Map<string, CreatedDirectory[]>();
  #usedBytes = 0;

  constructor(options: OverrideFilesOptions) {
    this.#options = options;
  }

  /**
   * Writes the files to a new directory, from which the model is loaded instead of from the repository. Throws UNAVAILABLE when there is
   * not enough space.
   */
  async write(modelName: string, files: ReadonlyMap<string, Uint8Array>): Promise<string> {
    const paths = [...files].map(([path, content]) => ({ path: normalizeOverridePath(path), content }));
    const bytes = paths.reduce((sum, { content }) => sum + content.length + entryBytes, entryBytes);
    this.#take(modelName, bytes);
    let path: string | null = null;
    try {
      await mkdir(this.#options.parent, { recursive: true });
      path = await mkdtemp(join(this.#options.parent, "model-"));
      for (const file of paths) {
        await mkdir(dirname(join(path, file.path)), { recursive: true });
        await writeFile(join(path, file.path), file.content);
      }
    } catch (error) {
      if (path !== null) await rm(path, { recursive: true, force: true });
      this.#usedBytes -= bytes;
      throw error;
    }
    const created = [...(this.#generated.get(modelName) ?? []), { path, bytes }];
    this.#generated.set(modelName, created);
    for (const oldest of created.slice(0, -keptPerModel)) await this.remove(modelName, oldest.path);
    return path;
  }

  /** Removes a directory whose load has failed. */
  async remove(modelName: string, path: string): Promise<void> {
    const created = this.#generated.get(modelName) ?? [];
    const removed = created.find((each) => each.path === path);
    if (removed === undefined) return;
    const left = created.filter((each) => each !== removed);
    if (left.length === 0) this.#generated.delete(modelName);
    else this.#generated.set(modelName, left);
    await rm(path, { recursive: true, force: true });
    this.#usedBytes -= removed.bytes;
  }

  #take(modelName: string, bytes: number): void {
    const { bytesMax } = this.#options;
    if (this.#usedBytes + bytes > bytesMax) {
      throw new InferenceError(
        "UNAVAILABLE",
        `the 'file:' parameters of the load of '${modelName}' take ${bytes} bytes of disk, and ${this.#usedBytes} of ${bytesMax} bytes ` +
          "for such files are in use; load fewer models from files, or put them into the repository",
      );
    }
    this.#usedBytes += bytes;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { path } of [...this.#generated.values()].flat()) await rm(path, { recursive: true, force: true });
    this.#generated.clear();
    this.#usedBytes = 0;
  }
}

/** Returns the normalized path of a `file:` parameter. Rejects a path that leads outside of the model directory. */
export function normalizeOverridePath(path: string): string {
  const normalized = normalize(path);
  if (normalized.startsWith("/") || normalized.split("/")[0] === ".." || normalized === "." || path.includes("\0")) {
    throw new InferenceError(
      "INVALID_ARG",
      `Invalid file parameter 'file:${path}' with normalized path '${normalized}' must stay within model directory.`,
    );
  }
  return normalized;
}
