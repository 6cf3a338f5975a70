import { join } from "node:path";
import { InferenceError } from "@galatea/base";
import {
  checkEnsembleModels,
  configProblems,
  readConfigText,
  unbuiltFields,
  type CompletionContext,
  type ModelConfig,
} from "../modelconfig/index.ts";
import { dependencyOrder, requiredVersionText } from "./dependency-order.ts";
import { directoriesIn, readConfigFile, versionsIn } from "./directories.ts";
import { completeModel, composingModels, type FoundModel, type ReadOptions } from "./model-files.ts";
import { ignoredVersion } from "./version-policy.ts";

/** A problem in a repository. Line and column count from 1 and are the position at which the file first names the problem. */
export interface RepositoryProblem {
  readonly file: string;
  readonly line: number;
  readonly column: number;
  readonly severity: "error" | "warning";
  readonly message: string;
}

interface Checked {
  readonly file: string;
  readonly text: string;
  readonly found: FoundModel | null;
  /** True if its configuration has no errors and only a load can complete it. */
  readonly isOpen: boolean;
}

/** The outcome of a backend's check of a model. */
export interface CheckedByBackend {
  /** Errors, one sentence each. */
  readonly problems: readonly string[];
  /** The configuration as a load would complete it; null when only a load completes it. */
  readonly completion: ModelConfig | null;
}

/** Opens a model as a load does, without running its code. */
export type BackendCheck = (found: FoundModel) => Promise<CheckedByBackend>;

export interface RepositoryReport {
  readonly modelCount: number;
  readonly problems: readonly RepositoryProblem[];
}

/**
 * Returns the errors and warnings of a repository that can be found without running a model's code. Configurations are completed for
 * the machine that `machine` describes.
 */
export async function validateRepository(
  directory: string,
  backendCheck: BackendCheck,
  machine: Pick<ReadOptions, "gpuCount" | "cpuBackends">,
): Promise<RepositoryReport> {
  const problems: RepositoryProblem[] = [];
  const say = (message: string) => problems.push({ file: directory, line: 1, column: 1, severity: "error", message });
  const cpuBackends = machine.gpuCount === 0 ? undefined : await machine.cpuBackends?.();
  const gpus = { gpuCount: machine.gpuCount, ...(cpuBackends && { cpuBackends }) };
  const checked = new Map<string, Checked>();
  for (const name of await directoriesIn(directory)) {
    checked.set(name, await validateModel(join(directory, name), { name, problems, backendCheck, gpus }));
  }
  if (checked.size === 0) say("this model repository holds no model directory");
  validateEnsembles(checked, problems);
  return { modelCount: checked.size, problems };
}

interface ModelChecking {
  readonly name: string;
  readonly problems: RepositoryProblem[];
  readonly backendCheck: BackendCheck;
  readonly gpus: Pick<CompletionContext, "gpuCount" | "cpuBackends">;
}

async function validateModel(
  modelDirectory: string,
  { name, problems, backendCheck, gpus }: ModelChecking,
): Promise<Checked> {
  const file = join(modelDirectory, "config.pbtxt");
  const say = (severity: RepositoryProblem["severity"], message: string, text: string) =>
    problems.push({ file, ...placeOf(message, text), severity, message });
  const { present, misnamed } = await versionsIn(modelDirectory);
  for (const entry of misnamed) say("warning", ignoredVersion(entry), "");
  let text = "";
  try {
    text = (await readConfigFile(file)) ?? "";
    const read = readConfigText(text);
    for (const problem of read.problems) problems.push({ file, severity: "error", ...problem });
    const unread = { file, text, isOpen: false };
    if (read.message === null) return { ...unread, found: null };
    const place = { modelDirectory, directoryName: name, servedName: name };
    const found = await completeModel(place, { message: read.message, present, misnamed, ...gpus });
    const isRefused = (config: ModelConfig) => {
      const refusals = configProblems(config);
      for (const message of refusals) say("error", message, text);
      const unbuilt = unbuiltFields(config.message);
      for (const field of unbuilt)
        say("error", `'${field}' is not supported by this server yet; the model would not be loaded`, text);
      return refusals.length > 0 || unbuilt.length > 0;
    };
    if (found.versions.length === 0)
      say("error", `at least one version must be available under the version policy of model '${name}'`, text);
    // A backend opens the model, with the files and libraries that it names.
    if (isRefused(found.config)) return { ...unread, found };
    const missing = await missingLabels(found);
    for (const message of missing) say("error", message, text);
    if (missing.length > 0) return { ...unread, found };
    const { problems: wrong, completion } = await backendCheck(found);
    for (const message of wrong) say("error", message, text);
    if (completion === null) return { ...unread, found, isOpen: wrong.length === 0 };
    if (completion !== found.config) isRefused(completion);
    return { ...unread, found: { ...found, config: completion } };
  } catch (error) {
    if (!(error instanceof InferenceError)) throw error;
    say("error", error.message, text);
    return { file, text, found: null, isOpen: false };
  }
}

async function missingLabels(found: FoundModel): Promise<readonly string[]> {
  const missing: string[] = [];
  const labels = new Set(found.config.outputs.map((output) => output.labelFilename).filter((label) => label !== ""));
  for (const label of labels) {
    const path = join(found.modelDirectory, label);
    if ((await readConfigFile(path)) === null) {
      missing.push(`failed to open text file for read ${path}: No such file or directory`);
    }
  }
  return missing;
}

function validateEnsembles(checked: ReadonlyMap<string, Checked>, problems: RepositoryProblem[]): void {
  const configs = new Map<string, ModelConfig>();
  const steps = new Map<string, readonly string[]>();
  for (const [name, { found }] of checked) {
    if (found !== null) configs.set(name, found.config);
    // The errors of a model's own configuration were reported already; its dependents treat it as present.
    steps.set(name, found === null ? [] : composingModels(found.config));
  }
  const say = (name: string, message: string, severity: RepositoryProblem["severity"] = "error") => {
    const { file, text } = checked.get(name)!;
    problems.push({ file, ...placeOf(message, text), severity, message });
  };
  const { rounds, failures } = dependencyOrder(steps);
  for (const [name, message] of failures) say(name, message);
  for (const name of rounds.flat()) {
    const config = configs.get(name);
    const composing = steps.get(name)!;
    if (config === undefined || composing.length === 0) continue;
    for (const text of absentVersions(config, checked)) say(name, text);
    for (const step of composing)
      if (checked.get(step)!.isOpen)
        say(
          name,
          `step '${step}' is completed by its own program when it is loaded: only a load can check that it fits`,
          "warning",
        );
    // Steps without tensors are completed when they are loaded; until then they cannot be compared.
    const isKnown = ({ inputs, outputs }: ModelConfig) => inputs.length > 0 && outputs.length > 0;
    if (!composing.every((step) => configs.has(step) && isKnown(configs.get(step)!))) continue;
    try {
      // Completed from its steps, for ensembles that use it.
      configs.set(name, checkEnsembleModels(config, configs));
    } catch (error) {
      if (!(error instanceof InferenceError)) throw error;
      say(name, error.message);
    }
  }
}

/** Returns the errors of steps that name a version which would not be served, with the texts of a load. */
function absentVersions({ name, scheduling }: ModelConfig, checked: ReadonlyMap<string, Checked>): readonly string[] {
  if (scheduling.kind !== "ensemble") return [];
  return scheduling.steps.flatMap(({ modelName, modelVersion }) => {
    const found = checked.get(modelName)?.found ?? null;
    if (modelVersion === -1 || found === null) return [];
    return found.versions.some(({ version }) => version === modelVersion)
      ? []
      : [requiredVersionText(name, modelName, modelVersion)];
  });
}

/** Returns the position at which a file first contains one of the names that a message quotes; else its beginning. */
function placeOf(message: string, text: string): { line: number; column: number } {
  for (const [, quoted] of message.matchAll(/'([^']+)'/g)) {
    const word = quoted!.split(".").at(-1)!;
    for (const needle of [`"${word}"`, `'${word}'`, word]) {
      const at = text.indexOf(needle);
      if (at === -1) continue;
      const before = text.slice(0, at).split("\n");
      return { line: before.length, column: before.at(-1)!.length + 1 };
    }
  }
  return { line: 1, column: 1 };
}
