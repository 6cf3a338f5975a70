import { stat } from "node:fs/promises";
import { resolve } from "node:path";
import { isModelDirectory } from "./directories.ts";

/** Object stores from which tritonserver reads repositories, by URL prefix. They are not supported here. */
const remoteStores: readonly (readonly [string, string])[] = [
  ["s3://", "S3"],
  ["gs://", "Google Cloud Storage"],
  ["as://", "Azure Storage"],
];

/**
 * Returns the reason why a path or URL cannot be served as a model repository; null if it can be served. The reason has Triton's code and
 * text if Triton has one.
 */
export async function checkRepositoryPath(repository: string): Promise<string | null> {
  for (const [scheme, store] of remoteStores)
    if (repository.startsWith(scheme))
      return `Unsupported - model repositories in ${store} are not supported: copy '${repository}' to a local directory and give that`;
  const found = await stat(repository).catch(() => null);
  if (found === null) return `Internal - failed to stat file ${repository}: No such file or directory`;
  if (!found.isDirectory())
    return `Invalid argument - repository path is not a valid directory: '${repository}' is a file`;
  if (await isModelDirectory(repository))
    return `Invalid argument - '${repository}' is a model, not a model repository; give its parent directory '${resolve(repository, "..")}'`;
  return null;
}
