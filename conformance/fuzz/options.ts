import { integerFlag, parsedFlag, switchFlag, textFlag, UsageError } from "../../packages/galatea/src/options/flag.ts";
import { parseOptions, type OptionsOf } from "../../packages/galatea/src/options/parse-flags.ts";
import { flagRow } from "../../packages/galatea/src/cli/help.ts";

const flags = {
  target: parsedFlag({ about: "these targets, with commas between them" }, (text) => new Set(text.split(","))),
  count: integerFlag({ default: 100_000, min: 1, max: 1e9, about: "inputs over all targets" }),
  seed: integerFlag({ min: 0, max: 2 ** 31 - 1, about: "of the inputs; a new one otherwise" }),
  path: textFlag({ about: "the one input that a failure named, of one target and with its seed" }),
  record: switchFlag("write the figures to bench/results"),
  list: switchFlag("the targets' names"),
};

export interface FuzzOptions extends OptionsOf<typeof flags> {
  readonly seed: number;
}

export interface FuzzSurroundings {
  readonly targetNames: readonly string[];
  readonly newSeed: () => number;
}

/** Returns the options of the command line; null for --help. Throws a UsageError with one sentence. */
export function fuzzOptions(argv: readonly string[], { targetNames, newSeed }: FuzzSurroundings): FuzzOptions | null {
  const options = parseOptions(argv, flags);
  if (options === null) return null;
  const { target: targets, path, seed } = options;
  const [unknown] = [...(targets ?? [])].filter((name) => !targetNames.includes(name));
  if (unknown !== undefined) throw new UsageError(`unknown target '${unknown}'; there are ${targetNames.join(", ")}`);
  if (path !== null && (targets?.size !== 1 || seed === null))
    throw new UsageError("--path names an input of one --target with its --seed");
  return { ...options, seed: seed ?? newSeed() };
}

export function fuzzHelp(): string {
  const title = "Sends malformed inputs to every interface of the server.";
  return [title, "", "Usage: npm run fuzz -- [options]", "", ...Object.entries(flags).map(flagRow), ""].join("\n");
}
