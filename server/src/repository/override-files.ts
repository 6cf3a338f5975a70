import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { dirname, join, normalize } from "node:path";
import { InferenceError } from "../base/index.ts";

/** Directories of one model that may be in use at once: the one loading and the one still draining. */
const keptPerModel = 2;

/** Model directories made from the `file:` parameters of loads; all of them go when this is disposed. */
export class OverrideFiles implements AsyncDisposable {
  readonly #parent: string;
  readonly #made = new Map<string, string[]>();

  constructor(parent: string) {
    this.#parent = parent;
  }

  /** Writes the files into a fresh directory, which is used instead of the repository's. */
  async write(modelName: string, files: ReadonlyMap<string, Uint8Array>): Promise<string> {
    const paths = [...files].map(([path, content]) => ({ path: pathInside(path), content }));
    await mkdir(this.#parent, { recursive: true });
    const directory = await mkdtemp(join(this.#parent, "model-"));
    const made = this.#made.get(modelName) ?? [];
    this.#made.set(modelName, [...made, directory]);
    for (const { path, content } of paths) {
      await mkdir(dirname(join(directory, path)), { recursive: true });
      await writeFile(join(directory, path), content);
    }
    await this.#forgetOldest(modelName);
    return directory;
  }

  async #forgetOldest(modelName: string): Promise<void> {
    const made = this.#made.get(modelName) ?? [];
    this.#made.set(modelName, made.slice(-keptPerModel));
    for (const directory of made.slice(0, -keptPerModel)) await rm(directory, { recursive: true, force: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const directory of [...this.#made.values()].flat()) await rm(directory, { recursive: true, force: true });
    this.#made.clear();
  }
}

/** The path of a `file:` parameter inside its model directory; one that leaves it is refused. */
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
