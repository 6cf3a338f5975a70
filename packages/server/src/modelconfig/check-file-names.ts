import { posix } from "node:path";
import type { ModelConfigMessage } from "./message.ts";
import { refuse } from "./refuse.ts";

/**
 * A configuration names files of its own repository, which for a hosted archive is the archive. The server itself opens them, with rights
 * that the author of a configuration does not have: a name that leads out of the repository is refused.
 */
export function checkFileNames({ name, defaultModelFilename, output }: ModelConfigMessage): void {
  const inside = (file: string, foldersAbove: number, what: string): void => {
    if (leaves(file, foldersAbove)) refuse(`${what} '${file}' of model '${name}' leads out of the model repository`);
  };
  // Below the version's folder, which lies in the model's, which lies in the repository.
  inside(defaultModelFilename, 2, "'default_model_filename'");
  for (const tensor of output) inside(tensor.labelFilename, 1, `'label_filename' of output '${tensor.name}':`);
}

/** Whether a name, seen from a folder that is so deep, leads above the top. A leading slash means that folder, too. */
function leaves(file: string, foldersAbove: number): boolean {
  const steps = posix.normalize(`./${file}`).split("/");
  const stepsUp = steps.findIndex((step) => step !== "..");
  return (stepsUp === -1 ? steps.length : stepsUp) > foldersAbove || file.includes("\0");
}
