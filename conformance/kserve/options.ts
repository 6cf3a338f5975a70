import { parseOptions, UsageError, type Flag, type FlagValue } from "../../packages/galatea/src/cli/flags.ts";
import { flagRow } from "../../packages/galatea/src/cli/help.ts";

export const partNames = ["cases", "tritonclient", "command-line"] as const;
export type PartName = (typeof partNames)[number];

export interface SuiteOptions {
  readonly target: "oracle" | "galatea" | "both";
  /** Write Triton's answers down instead of comparing with them. */
  readonly record: boolean;
  /** Part of the names of the cases to ask; "" for all. */
  readonly only: string;
  readonly parts: readonly PartName[];
  /** Where Triton's and the clients' environments are kept. */
  readonly cache: string;
  readonly quiet: boolean;
}

const flags = (cache: string): readonly Flag[] => [
  { name: "target", kind: "string", default: "both", about: "whom to ask: oracle, galatea or both" },
  { name: "record", kind: "switch", about: "write Triton's answers down anew" },
  { name: "only", kind: "string", default: "", about: "only cases with this text in their names" },
  { name: "part", kind: "string", about: `only this part: ${partNames.join(", ")}` },
  { name: "cache", kind: "string", default: cache, about: "where the suite's environments are kept" },
  { name: "quiet", kind: "switch", about: "no progress" },
  { name: "help", kind: "switch", about: "this" },
];

/** What the command line asks for; null for the help. Throws a UsageError with one sentence. */
export function suiteOptions(argv: readonly string[], cache: string): SuiteOptions | null {
  const values = parseOptions(argv, flags(cache));
  if (values === null) return null;
  const only = values.get("only") as string;
  const part = oneOf(partNames, "part", values.get("part"));
  return {
    target: oneOf(["oracle", "galatea", "both"] as const, "target", values.get("target")) ?? "both",
    record: values.has("record"),
    only,
    parts: part !== null ? [part] : only === "" ? partNames : ["cases"],
    cache: values.get("cache") as string,
    quiet: values.has("quiet"),
  };
}

export function suiteHelp(cache: string): string {
  const title = "Asks the real tritonserver and ours the same, and compares.";
  return [title, "", "Usage: npm run conformance -- [options]", "", ...flags(cache).map(flagRow), ""].join("\n");
}

function oneOf<T extends string>(known: readonly T[], flag: string, value: FlagValue | undefined): T | null {
  if (value === undefined) return null;
  const found = known.find((each) => each === value);
  if (found === undefined) {
    throw new UsageError(`Invalid option value. Got ${String(value)} for --${flag}, expected ${known.join(", ")}`);
  }
  return found;
}
