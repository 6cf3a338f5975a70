import { integerFlag, parsedFlag, switchFlag, textFlag, UsageError } from "../packages/galatea/src/options/flag.ts";
import { parseOptions, type OptionsOf } from "../packages/galatea/src/options/parse-flags.ts";
import { flagRow } from "../packages/galatea/src/cli/help.ts";

const flags = (cache: string) => ({
  only: parsedFlag({ about: "these rows, with commas between them" }, (text) => new Set(text.split(","))),
  rounds: integerFlag({ default: 5, min: 1, max: 1000, about: "alternating rounds per figure" }),
  quick: switchFlag("one short round of every row, as a test"),
  "zipf-models": integerFlag({ default: 5000, min: 1, max: 1e6, about: "number of models of the row zipf" }),
  "zipf-seconds": integerFlag({ default: 300, min: 1, max: 1e6, about: "duration of the row zipf, in seconds" }),
  cache: textFlag({ default: cache, about: "directory of Triton's environment" }),
  list: switchFlag("the rows' names"),
});

export type BenchOptions = OptionsOf<ReturnType<typeof flags>>;

/** Returns the options of the command line; null for --help. Throws a UsageError with one sentence. */
export function benchOptions(argv: readonly string[], cache: string, rowNames: readonly string[]): BenchOptions | null {
  const options = parseOptions(argv, flags(cache));
  if (options === null) return null;
  const [unknown] = [...(options.only ?? [])].filter((name) => !rowNames.includes(name));
  if (unknown !== undefined) throw new UsageError(`unknown row '${unknown}'; there are ${rowNames.join(", ")}`);
  return options.quick ? { ...options, rounds: 1, zipfModels: 300, zipfSeconds: 10 } : options;
}

export function benchHelp(cache: string): string {
  const title = "Measures our server beside the real tritonserver in alternating rounds.";
  return [title, "", "Usage: npm run bench -- [options]", "", ...Object.entries(flags(cache)).map(flagRow), ""].join(
    "\n",
  );
}
