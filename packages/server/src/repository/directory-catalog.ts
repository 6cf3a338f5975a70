import { join } from "node:path";
import { InferenceError } from "@galatea/base";
import { listDirectories, isDirectory } from "./directories.ts";
import { readModel, type FoundModel, type ModelLocation, type ReadOptions } from "./model-files.ts";
import { OverrideFiles } from "./override-files.ts";

/** The configuration and files that the client of a load sends instead of those on disk. */
export interface ModelOverride {
  /** ModelConfig as JSON text. */
  readonly configJson: string | null;
  /** File contents by path inside the model directory. */
  readonly files: ReadonlyMap<string, Uint8Array>;
}

export interface CatalogOptions extends ReadOptions {
  /** Absolute paths of the model repositories, in the order of the flags `--model-repository`. */
  readonly repositoryDirectories: readonly string[];
  /** Serves one directory under another name, for an archive registered through the container API; null otherwise. */
  readonly mapping: { readonly directoryName: string; readonly servedName: string } | null;
  /** Parent of the directories with the files of `file:` parameters. */
  readonly overrideDirectory: string;
  /** Maximum disk space of all directories below `overrideDirectory`, in bytes. */
  readonly overrideBytesMax: number;
}

/** Rejects model names that lead outside of a repository, with Triton's texts. */
export function checkModelName(name: string): void {
  if (name === "") {
    throw new InferenceError("INVALID_ARG", "Model name cannot be empty. Please enter a valid name to deploy.");
  }
  if (name === "." || name === ".." || /[/\\\0]/.test(name)) {
    throw new InferenceError(
      "INVALID_ARG",
      `invalid model name '${name}', model name must not contain path traversal characters`,
    );
  }
}

/** Model repositories on disk, read at every call. Disposing it removes the files of `file:` parameters. */
export class DirectoryCatalog implements AsyncDisposable {
  readonly #options: CatalogOptions;
  readonly #overrides: OverrideFiles;

  constructor(options: CatalogOptions) {
    // Repositories that are configured twice are used once. Otherwise all their models would be duplicates.
    this.#options = { ...options, repositoryDirectories: [...new Set(options.repositoryDirectories)] };
    const { overrideDirectory: parent, overrideBytesMax: bytesMax } = options;
    this.#overrides = new OverrideFiles({ parent, bytesMax });
  }

  /** Returns every model directory under its served name, sorted by name. As in Triton, hidden directories are models too. */
  async names(): Promise<readonly { readonly name: string; readonly duplicate: boolean }[]> {
    const counts = new Map<string, number>();
    for (const repository of this.#options.repositoryDirectories) {
      for (const directory of await listDirectories(repository)) {
        const name = this.#servedName(directory);
        counts.set(name, (counts.get(name) ?? 0) + 1);
      }
    }
    return [...counts].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, count]) => ({ name, duplicate: count > 1 }));
  }

  /**
   * Returns a model with its completed configuration. Throws NOT_FOUND if no repository contains the name or several do. Throws other
   * errors, which describe the problem, if the model is invalid.
   */
  async find(name: string, override: ModelOverride | null): Promise<FoundModel> {
    // The served name of an archive is not a path: TargetModel may contain slashes.
    if (name !== this.#options.mapping?.servedName) checkModelName(name);
    if (override !== null && override.files.size > 0) return this.#findOverridden(name, override);
    const locations = await this.#locations(name);
    const [location] = locations;
    if (location === undefined) {
      const locations = this.#options.repositoryDirectories.join(", ");
      throw new InferenceError("NOT_FOUND", `model '${name}' is not in any model repository (searched: ${locations})`);
    }
    if (locations.length > 1) throw new InferenceError("NOT_FOUND", "model appears in two or more repositories");
    return readModel(location, this.#options, override?.configJson ?? null);
  }

  async #findOverridden(name: string, override: ModelOverride): Promise<FoundModel> {
    if (override.configJson === null) {
      throw new InferenceError("INVALID_ARG", "Load parameter 'config' must be specified for model file override");
    }
    const modelDirectory = await this.#overrides.write(name, override.files);
    const location = { modelDirectory, directoryName: name, servedName: name };
    try {
      return await readModel(location, this.#options, override.configJson);
    } catch (error) {
      await this.#overrides.remove(name, modelDirectory);
      throw error;
    }
  }

  async #locations(name: string): Promise<readonly ModelLocation[]> {
    const directoryName = this.#directoryName(name);
    if (directoryName === null) return [];
    const isMapped = name === this.#options.mapping?.servedName;
    const locations: ModelLocation[] = [];
    for (const repository of this.#options.repositoryDirectories) {
      const modelDirectory = join(repository, directoryName);
      if (await isDirectory(modelDirectory)) {
        locations.push({ modelDirectory, directoryName: isMapped ? null : directoryName, servedName: name });
      }
    }
    return locations;
  }

  #servedName(directoryName: string): string {
    const { mapping } = this.#options;
    return mapping !== null && mapping.directoryName === directoryName ? mapping.servedName : directoryName;
  }

  /** Returns the directory name of a served name; null if the directory of that name is served under another name. */
  #directoryName(servedName: string): string | null {
    const { mapping } = this.#options;
    if (mapping === null) return servedName;
    if (servedName === mapping.servedName) return mapping.directoryName;
    return servedName === mapping.directoryName ? null : servedName;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#overrides[Symbol.asyncDispose]();
  }
}
