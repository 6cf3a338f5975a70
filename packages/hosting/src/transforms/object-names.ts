import type { S3Place } from "./transform-request.ts";

/** The key of the output of an input: its path below the input's prefix, below the output's, with `.out` behind it. */
export function outputKey(inputKey: string, prefix: string, target: S3Place): string {
  const folder = target.key === "" || target.key.endsWith("/") ? target.key : `${target.key}/`;
  return `${folder}${relativeName(inputKey, prefix)}.out`;
}

/** A prefix that is a folder or a name in one: what lies below the folder. */
function relativeName(key: string, prefix: string): string {
  if (!key.startsWith(prefix)) return key;
  if (key.startsWith(`${prefix}/`)) return key.slice(prefix.length + 1);
  return key.slice(prefix.lastIndexOf("/") + 1);
}

/**
 * The key whose output has the name of this one's, where there may be such a key: a prefix that is no folder holds keys below the folder of its name
 * and keys beside it, and what is below keeps its name.
 */
export function twinKey(key: string, prefix: string): string | null {
  if (prefix === "" || prefix.endsWith("/") || !key.startsWith(prefix) || key.startsWith(`${prefix}/`)) return null;
  return `${prefix}/${relativeName(key, prefix)}`;
}
