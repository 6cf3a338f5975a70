import { posix } from "node:path";
import type { ModelConfigMessage } from "./message.ts";
import { throwInvalidConfig } from "./invalid-config.ts";

/**
 * Checks that a configuration names only files inside its repository (for a hosted archive: inside the archive). The server opens these
 * files with permissions that the author of a configuration does not have.
 */
export function checkFileNames({ name, defaultModelFilename, output }: ModelConfigMessage): void {
  const inside = (file: string, foldersAbove: number, what: string): void => {
    if (leaves(file, foldersAbove))
      throwInvalidConfig(`${what} '${file}' of model '${name}' leads out of the model repository`);
  };
  // The default model file is in the version's folder, two levels below the repository.
  inside(defaultModelFilename, 2, "'default_model_filename'");
  for (const tensor of output) inside(tensor.labelFilename, 1, `'label_filename' of output '${tensor.name}':`);
}

/** Returns whether a relative name leads above the top folder, `foldersAbove` levels up. A leading slash is ignored. */
function leaves(file: string, foldersAbove: number): boolean {
  const steps = posix.normalize(`./${file}`).split("/");
  const stepsUp = steps.findIndex((step) => step !== "..");
  return (stepsUp === -1 ? steps.length : stepsUp) > foldersAbove || file.includes("\0");
}
