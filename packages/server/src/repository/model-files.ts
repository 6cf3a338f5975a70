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
import { listEntries, readConfigFile, listVersions } from "./directories.ts";
import { chooseVersions } from "./version-policy.ts";

/** A model on disk: its completed configuration and the versions to serve. Compatible with the engine's `CatalogModel`. */
export interface FoundModel {
  readonly servedName: string;
  readonly modelDirectory: string;
  readonly config: ModelConfig;
  /** Versions to serve, ascending; empty if the version policy selects no version on disk. */
  readonly versions: readonly { readonly version: number; readonly directory: string }[];
  /** Names of directories, such as `v1`, that are ignored because they are not version numbers. */
  readonly misnamedVersions: readonly string[];
}

export interface ModelLocation {
  readonly modelDirectory: string;
  /** Name of the directory, which the configuration's name must equal; null when the model is served under another name. */
  readonly directoryName: string | null;
  readonly servedName: string;
}

export interface ReadOptions {
  /** Value of `--model-config-name`; "" for none. The file `configs/<name>.pbtxt` is tried before config.pbtxt. */
  readonly configName: string;
  /** False if models without a configuration file are rejected (`--disable-auto-complete-config`). */
  readonly autoComplete: boolean;
  readonly gpuCount: number;
  /** Returns the backends that do not support GPUs, for `CompletionContext.cpuBackends`. */
  readonly cpuBackends?: () => Promise<ReadonlySet<string>>;
}

/** Reads one model directory. `overrideJson` replaces the configuration file. */
export async function readModel(
  location: ModelLocation,
  options: ReadOptions,
  overrideJson: string | null,
): Promise<FoundModel> {
  const message =
    overrideJson === null ? await readMessage(location.modelDirectory, options) : parseConfigOverride(overrideJson);
  const { present, misnamed } = await listVersions(location.modelDirectory);
  const { gpuCount } = options;
  const cpuBackends = gpuCount === 0 ? undefined : await options.cpuBackends?.();
  return completeModel(location, {
    message,
    present,
    misnamed,
    gpuCount,
    ...(cpuBackends === undefined ? {} : { cpuBackends }),
  });
}

/** Reads the file of `--model-config-name` if it exists, otherwise config.pbtxt; `text` is null if that does not exist either. */
export async function readModelConfigFile(
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
  const { path, text } = await readModelConfigFile(modelDirectory, options.configName);
  if (text === null && !options.autoComplete) {
    throw new InferenceError("INVALID_ARG", `failed to open text file for read ${path}: No such file or directory`);
  }
  return parseConfigText(text ?? "", path);
}

/** Completes a parsed configuration from the files next to it and applies its version policy. */
export async function completeModel(
  location: ModelLocation,
  parsed: Pick<CompletionContext, "gpuCount" | "cpuBackends"> & {
    readonly message: ModelConfigMessage;
    readonly present: readonly number[];
    readonly misnamed: readonly string[];
  },
): Promise<FoundModel> {
  const directoryOf = (version: number) => join(location.modelDirectory, String(version));
  const newest = parsed.present.at(-1);
  const complete = async (version: number | undefined) =>
    completeConfig(parsed.message, {
      directoryName: location.directoryName,
      servedName: location.servedName,
      versionEntries: version === undefined ? [] : await listEntries(directoryOf(version)),
      gpuCount: parsed.gpuCount,
      ...(parsed.cpuBackends === undefined ? {} : { cpuBackends: parsed.cpuBackends }),
    });
  let config = await complete(newest);
  const versions = chooseVersions(config.versionPolicy, parsed.present);
  // The configuration is completed from the highest served version, not from a higher one that is not served.
  if (versions.length > 0 && versions.at(-1) !== newest) config = await complete(versions.at(-1));
  return {
    servedName: location.servedName,
    modelDirectory: location.modelDirectory,
    config,
    versions: versions.map((version) => ({ version, directory: directoryOf(version) })),
    misnamedVersions: parsed.misnamed,
  };
}

/** Returns the distinct models of an ensemble's steps; [] for every other model. */
export function composingModels(config: ModelConfig): readonly string[] {
  if (config.scheduling.kind !== "ensemble") return [];
  return [...new Set(config.scheduling.steps.map((step) => step.modelName))];
}
