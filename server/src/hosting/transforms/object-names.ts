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
