import { realpath } from "node:fs/promises";
import { join } from "node:path";
import { InferenceError } from "@galatea/base";

/** The parsed `url` of a load call: the hash of the archive, and at most one folder inside the archive's `model` folder. */
export interface ModelPath {
  readonly hash: string;
  readonly subdirectory: string;
}

/** Paths that are never models; a load of them is rejected with status 400 and an empty body. */
const forbiddenPrefixes = ["/dev", "/proc", "/sys"] as const;

export function isForbiddenPath(url: string): boolean {
  return forbiddenPrefixes.some((prefix) => url === prefix || url.startsWith(`${prefix}/`));
}

const form = /^\/opt\/ml\/models\/([0-9A-Za-z._]+)\/model\/?([0-9A-Za-z._]+)?$/;

/**
 * Parses `/opt/ml/models/<hash>/model[/<subdir>]`. Clients send this form wherever the files really are. Names that consist only of dots
 * are invalid.
 */
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
 * Resolves the path and its symbolic links below `mlRoot`, which replaces /opt/ml. A link that leaves the archive's own folder is treated
 * like a missing folder, so that an archive cannot open another tenant's files.
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
