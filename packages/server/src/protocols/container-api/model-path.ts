import { realpath } from "node:fs/promises";
import { join } from "node:path";
import { InferenceError } from "@galatea/base";

/** What a load call's `url` names: the archive's hash and, below its `model` folder, at most one folder. */
export interface ModelPath {
  readonly hash: string;
  readonly subdirectory: string;
}

/** Folders that are never a model, answered with an empty 400. */
const forbiddenPrefixes = ["/dev", "/proc", "/sys"] as const;

export function isForbiddenPath(url: string): boolean {
  return forbiddenPrefixes.some((prefix) => url === prefix || url.startsWith(`${prefix}/`));
}

const form = /^\/opt\/ml\/models\/([0-9A-Za-z._]+)\/model\/?([0-9A-Za-z._]+)?$/;

/** The path stays `/opt/ml/models/<hash>/model[/<subdir>]` on the wire, wherever the files are. Dots alone are no name. */
export function parseModelPath(url: string): ModelPath {
  const match = form.exec(url);
  const hash = match?.[1] ?? "";
  const subdirectory = match?.[2] ?? "";
  if (match === null || isDots(hash) || isDots(subdirectory)) {
    throw new InferenceError(
      "INVALID_ARG",
      `Invalid "url" '${url}': expected a path of the form /opt/ml/models/<hash>/model[/<subdir>]`,
    );
  }
  return { hash, subdirectory };
}

function isDots(name: string): boolean {
  return name === "." || name === "..";
}

/**
 * Where the path lies below `mlRoot` (which stands for /opt/ml), links resolved. A link that leaves the archive's own folder
 * is refused like a missing folder: one tenant's archive must not open another's.
 */
export async function resolveModelPath(mlRoot: string, path: ModelPath, url: string): Promise<string> {
  const archive = join(mlRoot, "models", path.hash);
  try {
    const [root, directory] = await Promise.all([
      realpath(archive),
      realpath(join(archive, "model", path.subdirectory)),
    ]);
    if (directory.startsWith(`${root}/`)) return directory;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "ENOENT" && code !== "ENOTDIR" && code !== "ELOOP") throw error;
  }
  throw new InferenceError("NOT_FOUND", `failed to register '${url}', repository not found`);
}
