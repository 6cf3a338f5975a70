import type { ModelConfig } from "../modelconfig/index.ts";
import type { LoadOverride } from "./engine.ts";

/** A model as found on disk: its configuration (parsed and completed from the files) and the versions its policy wants. */
export interface CatalogModel {
  readonly servedName: string;
  readonly modelDirectory: string;
  readonly config: ModelConfig;
  /** Ascending; empty where the policy wants none of those on disk. */
  readonly versions: readonly { readonly version: number; readonly directory: string }[];
  /** Directories that are ignored because their names (`v1`) are no version numbers. */
  readonly misnamedVersions: readonly string[];
}

/** One namespace's repositories. Read anew at every call: what lies on disk is the truth. Disposed of with the namespace. */
export interface Catalog extends AsyncDisposable {
  /** Every model directory, in order of name; `duplicate` marks a name that two repositories hold. */
  names(): Promise<readonly { readonly name: string; readonly duplicate: boolean }[]>;
  /** Throws InferenceError with file, line and field; NOT_FOUND when no repository holds the name, or several do. */
  find(name: string, override: LoadOverride | null): Promise<CatalogModel>;
}
