import type { VersionPolicy } from "../modelconfig/index.ts";

/** A version directory's number: decimal without leading zeros. Null for every other name, which Triton ignores with a warning. */
export function versionOfDirectory(name: string): number | null {
  if (!/^(?:0|[1-9][0-9]*)$/.test(name)) return null;
  const version = Number(name);
  return Number.isSafeInteger(version) ? version : null;
}

/** The versions of those present that the policy wants, ascending. A specific version that is absent is just not served. */
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
