import { basename, dirname, join } from "node:path";
import { InferenceError } from "@galatea/base";
import { readConfigText } from "../modelconfig/index.ts";
import { listDirectories, readConfigFile } from "./directories.ts";
import { parseVersionDirectory } from "./version-policy.ts";

/**
 * The model of an unpacked archive: its repository directory, and its model directory within it. It is loaded through the container API.
 */
export interface ArchiveModel {
  readonly repositoryDirectory: string;
  readonly modelDirectoryName: string;
}

/** A directory of an archive. `steps` are the models that its ensemble needs; null if the directory is not an ensemble. */
export interface ArchiveCandidate {
  readonly directoryName: string;
  readonly steps: readonly string[] | null;
}

/**
 * Finds the model of an archive. The archive itself is the model if it directly contains config.pbtxt or, without that file, a version
 * directory. Otherwise the model is the ensemble among the archive's directories, or the only directory. Throws INVALID_ARG with the names
 * of the models if there are several without an ensemble; Triton serves the one that the file system lists last.
 */
export async function findArchiveModel(directory: string): Promise<ArchiveModel> {
  const itself = { repositoryDirectory: dirname(directory), modelDirectoryName: basename(directory) };
  if ((await readConfigFile(join(directory, "config.pbtxt"))) !== null) return itself;
  const names = (await listDirectories(directory)).filter((name) => !name.startsWith(".") && name !== "__MACOSX");
  const candidates = await Promise.all(
    names.map(async (directoryName): Promise<ArchiveCandidate & { configured: boolean }> => {
      const text = await readConfigFile(join(directory, directoryName, "config.pbtxt"));
      return { directoryName, steps: text === null ? null : stepsIn(text), configured: text !== null };
    }),
  );
  const onlyVersions = names.length > 0 && names.every((name) => parseVersionDirectory(name) !== null);
  if (onlyVersions && !candidates.some((candidate) => candidate.configured)) return itself;
  return { repositoryDirectory: directory, modelDirectoryName: chooseArchiveModel(candidates) };
}

/** Returns the directory to serve: the only directory, or the one ensemble that no other ensemble uses. */
export function chooseArchiveModel(candidates: readonly ArchiveCandidate[]): string {
  const [only] = candidates;
  if (only === undefined) throw refusal("the archive contains no model directory");
  if (candidates.length === 1) return only.directoryName;
  const list = (models: readonly ArchiveCandidate[]) =>
    models
      .map((model) => model.directoryName)
      .sort()
      .join(", ");
  const ensembles = candidates.filter((candidate) => candidate.steps !== null);
  const used = new Set(ensembles.flatMap((ensemble) => ensemble.steps ?? []));
  const outermost = ensembles.filter((ensemble) => !used.has(ensemble.directoryName));
  const [chosen] = outermost;
  if (ensembles.length === 0) {
    throw refusal(
      `the archive contains several models and no ensemble that determines which one is served: ${list(candidates)}`,
    );
  }
  if (chosen === undefined || outermost.length > 1) {
    throw refusal(
      `the archive contains several ensembles, none of which uses the others: ${list(outermost.length > 0 ? outermost : ensembles)}`,
    );
  }
  return chosen.directoryName;
}

/**
 * Returns the steps of an ensemble's configuration; null for any other model. In a configuration that does not parse, searches only for the
 * `platform` line.
 */
function stepsIn(text: string): readonly string[] | null {
  const { message } = readConfigText(text);
  if (message === null) return /platform\s*:\s*["']ensemble["']/.test(text) ? [] : null;
  if (message.platform !== "ensemble") return null;
  const choice = message.schedulingChoice;
  return choice.case === "ensembleScheduling" ? choice.value.step.map((step) => step.modelName) : [];
}

function refusal(message: string): InferenceError {
  return new InferenceError("INVALID_ARG", message);
}
