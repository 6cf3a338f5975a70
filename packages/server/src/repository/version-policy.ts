import type { VersionPolicy } from "../modelconfig/index.ts";

/**
 * Returns the number of a version directory: decimal without leading zeros. Returns null for every other name, which Triton ignores with a
 * warning.
 */
export function parseVersionDirectory(name: string): number | null {
  if (!/^(?:0|[1-9][0-9]*)$/.test(name)) return null;
  const version = Number(name);
  return Number.isSafeInteger(version) ? version : null;
}

/**
 * Returns whether a directory name resembles a version number without being one: `v1`, `01`. Directories with other names may be files of
 * the model.
 */
export function isMisnamedVersion(name: string): boolean {
  return /^v?[0-9]/i.test(name) && parseVersionDirectory(name) === null;
}

/** Returns the warning about a directory that resembles a version but is ignored. */
export function ignoredDirectoryWarning(name: string): string {
  return `directory '${name}' is ignored: its name is not a version number (digits without leading zeros)`;
}

/** Returns the versions on disk that the policy selects, ascending. Specific versions that are not on disk are omitted. */
export function chooseVersions(policy: VersionPolicy, present: readonly number[]): readonly number[] {
  const ascending = present.toSorted((a, b) => a - b);
  switch (policy.kind) {
    case "all":
      return ascending;
    case "latest":
      return policy.versionCount === 0 ? [] : ascending.slice(-policy.versionCount);
    default:
      return ascending.filter((version) => policy.versions.includes(version));
  }
}
