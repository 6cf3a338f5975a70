import { integerFlag, numberFlag, switchFlag } from "../../packages/galatea/src/options/flag.ts";
import { parseOptions, type OptionsOf } from "../../packages/galatea/src/options/parse-flags.ts";
import { flagRow } from "../../packages/galatea/src/cli/help.ts";

const flags = {
  minutes: numberFlag({ default: 10, min: 0.1, max: 100_000, about: "time during which new rounds start" }),
  seed: integerFlag({ min: 0, max: 2 ** 31 - 1, about: "seed of the random choices; random by default" }),
  record: switchFlag("write the figures to bench/results"),
};

export interface SoakOptions extends OptionsOf<typeof flags> {
  readonly seed: number;
}

/** Returns the options of the command line; null for --help. Throws a UsageError with one sentence. */
export function soakOptions(argv: readonly string[], newSeed: () => number): SoakOptions | null {
  const options = parseOptions(argv, flags);
  return options && { ...options, seed: options.seed ?? newSeed() };
}

export function soakHelp(): string {
  const title =
    "Kills processes and loads and unloads models under load, and checks that nothing is lost or left behind.";
  return [title, "", "Usage: npm run soak -- [options]", "", ...Object.entries(flags).map(flagRow), ""].join("\n");
}
