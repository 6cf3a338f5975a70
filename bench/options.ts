import { parseOptions, UsageError, type Flag } from "../packages/galatea/src/cli/flags.ts";
import { flagRow } from "../packages/galatea/src/cli/help.ts";

export interface BenchOptions {
  /** Names of rows; null for all. */
  readonly only: ReadonlySet<string> | null;
  readonly rounds: number;
  readonly quick: boolean;
  /** Of the row `zipf`. */
  readonly zipfModels: number;
  readonly zipfSeconds: number;
  /** Where Triton's environment is kept. */
  readonly cache: string;
  /** Name the rows and do nothing else. */
  readonly list: boolean;
}

const flags = (cache: string): readonly Flag[] => [
  { name: "only", kind: "string", about: "these rows, with commas between them" },
  { name: "rounds", kind: "integer", default: 5, min: 1, max: 1000, about: "alternating rounds per figure" },
  { name: "quick", kind: "switch", about: "one short round of everything, to see that it works" },
  { name: "zipf-models", kind: "integer", default: 5000, min: 1, max: 1e6, about: "models of the row zipf" },
  { name: "zipf-seconds", kind: "integer", default: 300, min: 1, max: 1e6, about: "how long the row zipf takes" },
  { name: "cache", kind: "string", default: cache, about: "where Triton's environment is kept" },
  { name: "list", kind: "switch", about: "the rows' names" },
  { name: "help", kind: "switch", about: "this" },
];

/** What the command line asks for; null for the help. Throws a UsageError with one sentence. */
export function benchOptions(argv: readonly string[], cache: string, rowNames: readonly string[]): BenchOptions | null {
  const values = parseOptions(argv, flags(cache));
  if (values === null) return null;
  const only = (values.get("only") as string | undefined)?.split(",") ?? null;
  const unknown = only?.find((name) => !rowNames.includes(name));
  if (unknown !== undefined) throw new UsageError(`unknown row '${unknown}'; there are ${rowNames.join(", ")}`);
  const quick = values.has("quick");
  return {
    only: only && new Set(only),
    rounds: quick ? 1 : (values.get("rounds") as number),
    quick,
    zipfModels: quick ? 300 : (values.get("zipf-models") as number),
    zipfSeconds: quick ? 10 : (values.get("zipf-seconds") as number),
    cache: values.get("cache") as string,
    list: values.has("list"),
  };
}

export function benchHelp(cache: string): string {
  const title = "Measures our server beside the real tritonserver in alternating rounds.";
  return [title, "", "Usage: npm run bench -- [options]", "", ...flags(cache).map(flagRow), ""].join("\n");
}
