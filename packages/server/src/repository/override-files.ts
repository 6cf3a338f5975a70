import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { dirname, join, normalize } from "node:path";
import { InferenceError } from "@galatea/base";

/** Directories of one model that may be in use at once: the one that loads and the one that drains. */
const keptPerModel = 2;
/** One block and one directory entry: even an empty file takes space. */
const entryBytes = 4096;

interface MadeDirectory {
  readonly path: string;
  readonly bytes: number;
}

export interface OverrideFilesOptions {
  /** Created when it is needed. */
  readonly parent: string;
  /** Limit of all directories together: a model may load others from its own files, under any number of names. */
  readonly bytesMax: number;
}

/** Model directories created from the `file:` parameters of loads; all are removed when this is disposed. */
export class OverrideFiles implements AsyncDisposable {
  readonly #options: OverrideFilesOptions;
  readonly #made = new Map<string, MadeDirectory[]>();
  #usedBytes = 0;

  constructor(options: OverrideFilesOptions) {
    this.#options = options;
  }

  /** Writes the files into a new directory, which is used instead of the repository's. UNAVAILABLE when there is no space. */
  async write(modelName: string, files: ReadonlyMap<string, Uint8Array>): Promise<string> {
    const paths = [...files].map(([path, content]) => ({ path: pathInside(path), content }));
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
    const made = [...(this.#made.get(modelName) ?? []), { path, bytes }];
    this.#made.set(modelName, made);
    for (const oldest of made.slice(0, -keptPerModel)) await this.remove(modelName, oldest.path);
    return path;
  }

  /** Removes a directory whose load failed. */
  async remove(modelName: string, path: string): Promise<void> {
    const made = this.#made.get(modelName) ?? [];
    const removed = made.find((each) => each.path === path);
    if (removed === undefined) return;
    const left = made.filter((each) => each !== removed);
    if (left.length === 0) this.#made.delete(modelName);
    else this.#made.set(modelName, left);
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
    for (const { path } of [...this.#made.values()].flat()) await rm(path, { recursive: true, force: true });
    this.#made.clear();
    this.#usedBytes = 0;
  }
}

/** Returns the path of a `file:` parameter inside its model directory; rejects one that leaves it. */
export function pathInside(path: string): string {
  const normalized = normalize(path);
  if (normalized.startsWith("/") || normalized.split("/")[0] === ".." || normalized === "." || path.includes("\0")) {
    throw new InferenceError(
      "INVALID_ARG",
      `Invalid file parameter 'file:${path}' with normalized path '${normalized}' must stay within model directory.`,
    );
  }
  return normalized;
}
