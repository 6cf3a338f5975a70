import { join } from "node:path";
import { InferenceError } from "@galatea/base";
import {
  completeConfig,
  parseConfigOverride,
  parseConfigText,
  type CompletionContext,
  type ModelConfig,
  type ModelConfigMessage,
} from "../modelconfig/index.ts";
import { entryNames, readConfigFile, versionsIn } from "./directories.ts";
import { chooseVersions } from "./version-policy.ts";

/** A model on disk: its completed configuration and the versions to serve. Has the shape that the engine reads. */
export interface FoundModel {
  readonly servedName: string;
  readonly modelDirectory: string;
  readonly config: ModelConfig;
  /** Ascending; empty when the policy selects none of those on disk. */
  readonly versions: readonly { readonly version: number; readonly directory: string }[];
  /** Directories that are ignored because their names (`v1`) are not version numbers. */
  readonly misnamedVersions: readonly string[];
}

export interface ModelLocation {
  readonly modelDirectory: string;
  /** Null for a model that is mapped to its served name. */
  readonly directoryName: string | null;
  readonly servedName: string;
}

export interface ReadOptions {
  /** `--model-config-name`: `configs/<name>.pbtxt` is tried before config.pbtxt; "" for none. */
  readonly configName: string;
  /** False requires a configuration file (`--disable-auto-complete-config`). */
  readonly autoComplete: boolean;
  readonly gpuCount: number;
  /** See `CompletionContext`. */
  readonly cpuBackends?: () => Promise<ReadonlySet<string>>;
}

/** Reads one model directory. `overrideJson` replaces the configuration file. */
export async function readModel(
  place: ModelLocation,
  options: ReadOptions,
  overrideJson: string | null,
): Promise<FoundModel> {
  const message =
    overrideJson === null ? await readMessage(place.modelDirectory, options) : parseConfigOverride(overrideJson);
  const { present, misnamed } = await versionsIn(place.modelDirectory);
  const { gpuCount } = options;
  const cpuBackends = gpuCount === 0 ? undefined : await options.cpuBackends?.();
  return completeModel(place, {
    message,
    present,
    misnamed,
    gpuCount,
    ...(cpuBackends === undefined ? {} : { cpuBackends }),
  });
}

/** Returns the path of the configuration file: the selected variant if it exists, else config.pbtxt. */
export async function configFileOf(
  modelDirectory: string,
  configName: string,
): Promise<{ readonly path: string; readonly text: string | null }> {
  if (configName !== "") {
    const path = join(modelDirectory, "configs", `${configName}.pbtxt`);
    const text = await readConfigFile(path);
    if (text !== null) return { path, text };
  }
  const path = join(modelDirectory, "config.pbtxt");
  return { path, text: await readConfigFile(path) };
}

async function readMessage(modelDirectory: string, options: ReadOptions): Promise<ModelConfigMessage> {
  const { path, text } = await configFileOf(modelDirectory, options.configName);
  if (text === null && !options.autoComplete) {
    throw new InferenceError("INVALID_ARG", `failed to open text file for read ${path}: No such file or directory`);
  }
  return parseConfigText(text ?? "", path);
}

/** Completes a parsed configuration from the files beside it and applies its version policy. */
export async function completeModel(
  place: ModelLocation,
  parsed: Pick<CompletionContext, "gpuCount" | "cpuBackends"> & {
    readonly message: ModelConfigMessage;
    readonly present: readonly number[];
    readonly misnamed: readonly string[];
  },
): Promise<FoundModel> {
  const directoryOf = (version: number) => join(place.modelDirectory, String(version));
  const newest = parsed.present.at(-1);
  const complete = async (version: number | undefined) =>
    completeConfig(parsed.message, {
      directoryName: place.directoryName,
      servedName: place.servedName,
      versionEntries: version === undefined ? [] : await entryNames(directoryOf(version)),
      gpuCount: parsed.gpuCount,
      ...(parsed.cpuBackends === undefined ? {} : { cpuBackends: parsed.cpuBackends }),
    });
  let config = await complete(newest);
  const versions = chooseVersions(config.versionPolicy, parsed.present);
  // The files of the highest served version are used, not those of a newer version that is not served.
  if (versions.length > 0 && versions.at(-1) !== newest) config = await complete(versions.at(-1));
  return {
    servedName: place.servedName,
    modelDirectory: place.modelDirectory,
    config,
    versions: versions.map((version) => ({ version, directory: directoryOf(version) })),
    misnamedVersions: parsed.misnamed,
  };
}

/** Returns the models that an ensemble's steps name, each once; [] for every other model. */
export function composingModels(config: ModelConfig): readonly string[] {
  if (config.scheduling.kind !== "ensemble") return [];
  return [...new Set(config.scheduling.steps.map((step) => step.modelName))];
}
