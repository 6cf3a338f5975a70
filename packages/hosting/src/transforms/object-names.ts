import type { S3Location } from "./transform-request.ts";

/**
 * Returns the output key of an input: the path below the input prefix, appended to the output prefix, with the suffix
 * `.out`.
 */
export function outputKey(inputKey: string, prefix: string, target: S3Location): string {
  const folder = target.key === "" || target.key.endsWith("/") ? target.key : `${target.key}/`;
  return `${folder}${relativeName(inputKey, prefix)}.out`;
}

/**
 * Returns the path of a key relative to the folder of a prefix. The prefix is a folder, or the beginning of names in a
 * folder.
 */
function relativeName(key: string, prefix: string): string {
  if (!key.startsWith(prefix)) return key;
  if (key.startsWith(`${prefix}/`)) return key.slice(prefix.length + 1);
  return key.slice(prefix.lastIndexOf("/") + 1);
}

/**
 * Returns the other key that has the same output key; null if there is none. A prefix that does not end with a slash
 * matches keys in the folder with its name and keys next to that folder. Keys in the folder keep their relative path.
 */
export function siblingKey(key: string, prefix: string): string | null {
  if (prefix === "" || prefix.endsWith("/") || !key.startsWith(prefix) || key.startsWith(`${prefix}/`)) return null;
  return `${prefix}/${relativeName(key, prefix)}`;
}
