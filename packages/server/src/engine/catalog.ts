import type { ModelConfig } from "../modelconfig/index.ts";
import type { LoadOverride } from "./engine.ts";

/** A model as found on disk: its configuration (parsed and completed from the files) and the versions that its policy selects. */
export interface CatalogModel {
  readonly servedName: string;
  readonly modelDirectory: string;
  readonly config: ModelConfig;
  /** Versions to serve, ascending; empty if the version policy selects no version on disk. */
  readonly versions: readonly { readonly version: number; readonly directory: string }[];
  /** Names of directories, such as `v1`, that are ignored because they are not version numbers. */
  readonly misnamedVersions: readonly string[];
}

/** The repositories of one namespace, read from disk at every call. Disposed with the namespace. */
export interface Catalog extends AsyncDisposable {
  /** Returns every model directory, sorted by name; `duplicate` marks a name that exists in two repositories. */
  names(): Promise<readonly { readonly name: string; readonly duplicate: boolean }[]>;
  /**
   * Returns a model. Throws InferenceError with file, line and field for an invalid configuration; NOT_FOUND when no repository has the
   * name, or several have it.
   */
  find(name: string, override: LoadOverride | null): Promise<CatalogModel>;
}
