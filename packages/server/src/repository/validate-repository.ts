import { join } from "node:path";
import { InferenceError } from "@galatea/base";
import {
  checkEnsembleModels,
  checkFoundConfig,
  configProblems,
  parseConfigText,
  readConfigText,
  rejectUnsupported,
  unsupportedFields,
  type CompletionContext,
  type ModelConfig,
} from "../modelconfig/index.ts";
import { dependencyOrder } from "./dependency-order.ts";
import { listDirectories, readConfigFile, listVersions } from "./directories.ts";
import {
  pollErrorText,
  noVersionErrorText,
  missingVersionText,
  stepNotLoadedText,
  unavailableStepsText,
  versionFailedText,
} from "./failure-texts.ts";
import { completeModel, composingModels, type FoundModel, type ReadOptions } from "./model-files.ts";
import { ignoredDirectoryWarning } from "./version-policy.ts";

/** A problem in a repository. Line and column count from 1, and are the first position in the file that matches the problem. */
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
  /** True if ensembles that use the model can be checked against its configuration. */
  readonly isComparable: boolean;
  /** True if no error was found but only a load can complete the configuration. */
  readonly isOpen: boolean;
  /**
   * The first error that a load would report; null if none was found. `poll`: the load fails before it reads the versions. `load`: the load
   * of a version fails.
   */
  readonly failure: { readonly at: "poll" | "load"; readonly why: string } | null;
}

/** A version and the error with which its load would fail. */
export interface VersionProblem {
  readonly version: number;
  readonly error: InferenceError;
}

/** The result of a backend's check of a model. */
export interface CheckedByBackend {
  readonly problems: readonly VersionProblem[];
  /** The configuration as a load would complete it; null when it cannot be completed without a load. */
  readonly completion: ModelConfig | null;
}

/** Checks a model as a load does, without running its code. */
export type BackendCheck = (found: FoundModel) => Promise<CheckedByBackend>;

export interface RepositoryReport {
  readonly modelCount: number;
  readonly problems: readonly RepositoryProblem[];
}

/**
 * Returns the errors and warnings of a repository that can be found without running a model's code. `machine` describes the machine for
 * which configurations are completed.
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
  for (const name of await listDirectories(directory)) {
    checked.set(name, await validateModel(join(directory, name), { name, problems, backendCheck, gpus }));
  }
  if (checked.size === 0) say("this model repository contains no model directory");
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
  const { present, misnamed } = await listVersions(modelDirectory);
  for (const entry of misnamed) say("warning", ignoredDirectoryWarning(entry), "");
  let text = "";
  try {
    text = (await readConfigFile(file)) ?? "";
    const read = readConfigText(text);
    for (const problem of read.problems) problems.push({ file, severity: "error", ...problem });
    const failed = { file, text, isComparable: false, isOpen: false };
    if (read.message === null) {
      const unread = errorOf(() => void parseConfigText(text, file));
      return { ...failed, found: null, failure: { at: "poll", why: unread?.message ?? "" } };
    }
    const location = { modelDirectory, directoryName: name, servedName: name };
    const found = await completeModel(location, { message: read.message, present, misnamed, ...gpus });
    const sayRefusals = (config: ModelConfig) => {
      for (const message of configProblems(config)) say("error", message, text);
      for (const field of unsupportedFields(config.message))
        say("error", `'${field}' is not supported by this server yet; the model would not be loaded`, text);
    };
    if (found.versions.length === 0) say("error", noVersionErrorText(name, []), text);
    const refusal = refusalOf(found.config);
    sayRefusals(found.config);
    const unpolled = errorOf(() => checkFoundConfig(found.config));
    if (unpolled !== null) return { ...failed, found, failure: { at: "poll", why: unpolled.message } };
    if (found.versions.length === 0) {
      const failure = { at: "load", why: noVersionErrorText(name, misnamed) } as const;
      return { ...failed, found, isComparable: refusal === null, failure };
    }
    // The backend's check runs only on accepted configurations, because it opens the model, with files and libraries that the configuration
    // names.
    if (refusal !== null) return { ...failed, found, failure: versionsFailed(found, () => refusal) };
    const { problems: wrong, completion } = await backendCheck(found);
    for (const message of new Set(wrong.map(({ error }) => error.message))) say("error", message, text);
    const late = completion === null || completion === found.config ? null : refusalOf(completion);
    if (completion !== null && late !== null) sayRefusals(completion);
    const firstOf = (version: number) => wrong.find((each) => each.version === version)?.error ?? late;
    const failure = versionsFailed(found, firstOf);
    const config = completion ?? found.config;
    const isOpen = completion === null && failure === null;
    return { file, text, found: { ...found, config }, isComparable: late === null, isOpen, failure };
  } catch (error) {
    if (!(error instanceof InferenceError)) throw error;
    say("error", error.message, text);
    const failure = { at: "poll", why: error.message } as const;
    return { file, text, found: null, isComparable: false, isOpen: false, failure };
  }
}

/** Returns the error with which a load rejects a configuration; null for an accepted one. */
function refusalOf(config: ModelConfig): InferenceError | null {
  const [first] = configProblems(config);
  return (
    errorOf(() => rejectUnsupported(config)) ?? (first === undefined ? null : new InferenceError("INVALID_ARG", first))
  );
}

function errorOf(check: () => void): InferenceError | null {
  try {
    check();
    return null;
  } catch (error) {
    return InferenceError.from(error);
  }
}

/** Returns the failure of a load with the errors of its versions; null when no version has an error. */
function versionsFailed(
  { versions }: FoundModel,
  errorOfVersion: (version: number) => InferenceError | null,
): Checked["failure"] {
  const texts = versions.flatMap(({ version }) => {
    const error = errorOfVersion(version);
    return error === null ? [] : [versionFailedText(version, error)];
  });
  return texts.length === 0 ? null : { at: "load", why: texts.join("") };
}

function validateEnsembles(checked: ReadonlyMap<string, Checked>, problems: RepositoryProblem[]): void {
  const configs = new Map<string, ModelConfig>();
  const steps = new Map<string, readonly string[]>();
  const failed = new Map<string, NonNullable<Checked["failure"]>>();
  for (const [name, { found, isComparable, failure }] of checked) {
    if (found !== null && isComparable) configs.set(name, found.config);
    if (failure !== null) failed.set(name, failure);
    // Errors of a model's own configuration were reported already; its dependents are checked as if it were present.
    steps.set(name, found === null ? [] : composingModels(found.config));
  }
  const say = (name: string, message: string, severity: RepositoryProblem["severity"] = "error") => {
    const { file, text } = checked.get(name)!;
    problems.push({ file, ...placeOf(message, text), severity, message });
  };
  const refuse = (name: string, why: string) => {
    say(name, why);
    if (!failed.has(name)) failed.set(name, { at: "load", why });
  };
  const { rounds, failures } = dependencyOrder(steps);
  for (const [name, message] of failures) refuse(name, message);
  for (const name of rounds.flat()) {
    const config = configs.get(name);
    const composing = steps.get(name)!;
    if (config === undefined || composing.length === 0) continue;
    const broken = composing.find((step) => failed.has(step));
    if (broken !== undefined) refuse(name, stepFailureText(name, broken, failed.get(broken)!));
    for (const text of absentVersions(config, checked)) refuse(name, text);
    for (const step of composing)
      if (checked.get(step)!.isOpen)
        say(
          name,
          `step '${step}' completes its configuration in its own code when it is loaded: only a load can check that the step fits`,
          "warning",
        );
    // Models without inputs or outputs are completed when they are loaded; until then ensembles cannot be checked against them.
    const isKnown = ({ inputs, outputs }: ModelConfig) => inputs.length > 0 && outputs.length > 0;
    if (!composing.every((step) => configs.has(step) && isKnown(configs.get(step)!))) continue;
    try {
      // Stores the configuration with the properties derived from its steps, because other ensembles may use this one as a step.
      configs.set(name, checkEnsembleModels(config, configs));
    } catch (error) {
      if (!(error instanceof InferenceError)) throw error;
      refuse(name, error.message);
    }
  }
}

function stepFailureText(ensemble: string, step: string, { at, why }: NonNullable<Checked["failure"]>): string {
  if (at === "load") return stepNotLoadedText(ensemble, step, why);
  return `${unavailableStepsText(ensemble, [step])}\n${pollErrorText(step, why)}`;
}

/** Returns an error for each step that requires a version which is not served, with the text of a load. */
function absentVersions({ name, scheduling }: ModelConfig, checked: ReadonlyMap<string, Checked>): readonly string[] {
  if (scheduling.kind !== "ensemble") return [];
  return scheduling.steps.flatMap(({ modelName, modelVersion }) => {
    const found = checked.get(modelName)?.found ?? null;
    if (modelVersion === -1 || found === null) return [];
    return found.versions.some(({ version }) => version === modelVersion)
      ? []
      : [missingVersionText(name, modelName, modelVersion)];
  });
}

/** Returns the first position in the file of a name that the message quotes, or the beginning of the file if it contains no such name. */
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
