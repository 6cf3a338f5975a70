import type { ModelConfig } from "../modelconfig/index.ts";
import type { LoadOverride } from "./engine.ts";

/** A model as found on disk: its configuration (parsed and completed from the files) and the versions that its policy selects. */
export interface CatalogModel {
  readonly servedName: string;
  readonly modelDirectory: string;
  readonly config: ModelConfig;
  /** Ascending; empty when the policy selects none of those on disk. */
  readonly versions: readonly { readonly version: number; readonly directory: string }[];
  /** Directories that are ignored because their names (`v1`) are not version numbers. */
  readonly misnamedVersions: readonly string[];
}

/** The repositories of one namespace, read from disk at every call. Disposed with the namespace. */
export interface Catalog extends AsyncDisposable {
  /** Returns every model directory, in order of name; `duplicate` marks a name that two repositories have. */
  names(): Promise<readonly { readonly name: string; readonly duplicate: boolean }[]>;
  /** Throws InferenceError with file, line and field; NOT_FOUND when no repository has the name, or several have it. */
  find(name: string, override: LoadOverride | null): Promise<CatalogModel>;
}
