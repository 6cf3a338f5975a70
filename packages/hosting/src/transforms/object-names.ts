import type { S3Location } from "./transform-request.ts";

/**
 * Returns the key of an input's output: its path below the input's prefix, appended to the output's prefix, with the
 * suffix `.out`.
 */
export function outputKey(inputKey: string, prefix: string, target: S3Location): string {
  const folder = target.key === "" || target.key.endsWith("/") ? target.key : `${target.key}/`;
  return `${folder}${relativeName(inputKey, prefix)}.out`;
}

/** Returns the name below the folder of a prefix, which is a folder or the beginning of names in one. */
function relativeName(key: string, prefix: string): string {
  if (!key.startsWith(prefix)) return key;
  if (key.startsWith(`${prefix}/`)) return key.slice(prefix.length + 1);
  return key.slice(prefix.lastIndexOf("/") + 1);
}

/**
 * Returns the other key with the same output key; null where none is possible. A prefix that is no folder matches keys
 * below the folder with its name and keys beside it, and those below keep their relative name.
 */
export function siblingKey(key: string, prefix: string): string | null {
  if (prefix === "" || prefix.endsWith("/") || !key.startsWith(prefix) || key.startsWith(`${prefix}/`)) return null;
  return `${prefix}/${relativeName(key, prefix)}`;
}
