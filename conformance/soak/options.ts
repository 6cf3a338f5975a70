import { parseOptions, type Flag } from "../../packages/galatea/src/cli/flags.ts";
import { flagRow } from "../../packages/galatea/src/cli/help.ts";

export interface SoakOptions {
  readonly minutes: number;
  readonly seed: number;
  /** Keep the figures in bench/results. */
  readonly record: boolean;
}

const flags: readonly Flag[] = [
  { name: "minutes", kind: "number", default: 10, min: 0.1, max: 100_000, about: "how long new rounds begin" },
  { name: "seed", kind: "integer", min: 0, max: 2 ** 31 - 1, about: "of all choices; a new one otherwise" },
  { name: "record", kind: "switch", about: "write the figures to bench/results" },
  { name: "help", kind: "switch", about: "this" },
];

/** What the command line asks for; null for the help. Throws a UsageError with one sentence. */
export function soakOptions(argv: readonly string[], newSeed: () => number): SoakOptions | null {
  const values = parseOptions(argv, flags);
  if (values === null) return null;
  return {
    minutes: values.get("minutes") as number,
    seed: (values.get("seed") as number | undefined) ?? newSeed(),
    record: values.has("record"),
  };
}

export function soakHelp(): string {
  const title = "Kills, loads and unloads under load, and looks whether anything is lost or left.";
  return [title, "", "Usage: npm run soak -- [options]", "", ...flags.map(flagRow), ""].join("\n");
}
