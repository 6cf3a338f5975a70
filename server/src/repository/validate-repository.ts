import { join } from "node:path";
import { InferenceError } from "../base/index.ts";
import {
  checkEnsembleModels,
  configProblems,
  readConfigText,
  unbuiltFields,
  type ModelConfig,
} from "../modelconfig/index.ts";
import { dependencyOrder } from "./dependency-order.ts";
import { directoriesIn, entryNames, readConfigFile, versionsIn } from "./directories.ts";
import { completeModel, composingModels, type FoundModel } from "./model-files.ts";
import { ignoredVersion } from "./version-policy.ts";

/** Something to mend in a repository. Line and column count from 1; they are where the file first names what is wrong. */
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
}

/** What of a model only its backend can tell without loading it; each sentence is an error. */
export type BackendCheck = (found: FoundModel) => Promise<readonly string[]>;

export interface RepositoryReport {
  readonly modelCount: number;
  readonly problems: readonly RepositoryProblem[];
}

/** Everything that is wrong with a repository, as far as it can be known without loading a model. */
export async function validateRepository(directory: string, backendCheck: BackendCheck): Promise<RepositoryReport> {
  const problems: RepositoryProblem[] = [];
  const say = (message: string) => problems.push({ file: directory, line: 1, column: 1, severity: "error", message });
  const checked = new Map<string, Checked>();
  for (const name of await directoriesIn(directory)) {
    checked.set(name, await validateModel(join(directory, name), { name, problems, backendCheck }));
  }
  if (checked.size === 0) say("this model repository holds no model directory");
  validateEnsembles(checked, problems);
  return { modelCount: checked.size, problems };
}

async function validateModel(
  modelDirectory: string,
  { name, problems, backendCheck }: { name: string; problems: RepositoryProblem[]; backendCheck: BackendCheck },
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
    if (read.message === null) return { file, text, found: null };
    const place = { modelDirectory, directoryName: name, servedName: name };
    const found = await completeModel(place, { message: read.message, present, misnamed, gpuCount: 0 });
    const refusals = configProblems(found.config);
    for (const message of refusals) say("error", message, text);
    if (found.versions.length === 0)
      say("error", `at least one version must be available under the version policy of model '${name}'`, text);
    const unbuilt = unbuiltFields(found.config.message);
    for (const field of unbuilt) {
      say("error", `'${field}' is not supported by this server yet; the model would not be loaded`, text);
    }
    // A backend acts on what it looks at: it opens models, with the files and libraries that they name.
    if (refusals.length > 0 || unbuilt.length > 0) return { file, text, found };
    const missing = await missingFiles(found);
    for (const message of missing) say("error", message, text);
    if (missing.length === 0) for (const message of await backendCheck(found)) say("error", message, text);
    return { file, text, found };
  } catch (error) {
    if (!(error instanceof InferenceError)) throw error;
    say("error", error.message, text);
    return { file, text, found: null };
  }
}

async function missingFiles(found: FoundModel): Promise<readonly string[]> {
  const missing: string[] = [];
  const { config } = found;
  if (config.backend === "python" || config.backend === "onnxruntime") {
    for (const { directory } of found.versions) {
      if (!(await entryNames(directory)).includes(config.defaultModelFilename)) {
        missing.push(`unable to find '${join(directory, config.defaultModelFilename)}' for model '${config.name}'`);
      }
    }
  }
  const labels = new Set(config.outputs.map((output) => output.labelFilename).filter((label) => label !== ""));
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
    // A model whose own configuration is broken was told of already; it is there as far as the others are concerned.
    steps.set(name, found === null ? [] : composingModels(found.config));
  }
  const say = (name: string, message: string) => {
    const { file, text } = checked.get(name)!;
    problems.push({ file, ...placeOf(message, text), severity: "error", message });
  };
  const { rounds, failures } = dependencyOrder(steps);
  for (const [name, message] of failures) say(name, message);
  for (const name of rounds.flat()) {
    const config = configs.get(name);
    // Steps without tensors get them when they are loaded; until then there is nothing to compare.
    const composing = steps.get(name)!.map((step) => configs.get(step));
    const known = composing.every((step) => step !== undefined && step.inputs.length > 0 && step.outputs.length > 0);
    if (config === undefined || composing.length === 0 || !known) continue;
    try {
      // With what its steps make of it, for the ensembles above.
      configs.set(name, checkEnsembleModels(config, configs));
    } catch (error) {
      if (!(error instanceof InferenceError)) throw error;
      say(name, error.message);
    }
  }
}

/** Where a file first writes one of the names a message quotes; its beginning otherwise. */
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
