import { parseOptions, UsageError, type Flag } from "../../packages/galatea/src/cli/flags.ts";
import { flagRow } from "../../packages/galatea/src/cli/help.ts";

export interface FuzzOptions {
  /** Names of targets; null for all. */
  readonly targets: ReadonlySet<string> | null;
  /** Over all targets that were asked for. */
  readonly count: number;
  readonly seed: number;
  /** Of one input, as a failure printed it; null for `count` new ones. */
  readonly path: string | null;
  /** Keep the figures in bench/results. */
  readonly record: boolean;
  readonly list: boolean;
}

const flags: readonly Flag[] = [
  { name: "target", kind: "string", about: "these targets, with commas between them" },
  { name: "count", kind: "integer", default: 100_000, min: 1, max: 1e9, about: "inputs over all targets" },
  { name: "seed", kind: "integer", min: 0, max: 2 ** 31 - 1, about: "of the inputs; a new one otherwise" },
  { name: "path", kind: "string", about: "the one input that a failure named, of one target and with its seed" },
  { name: "record", kind: "switch", about: "write the figures to bench/results" },
  { name: "list", kind: "switch", about: "the targets' names" },
  { name: "help", kind: "switch", about: "this" },
];

export interface FuzzSurroundings {
  readonly targetNames: readonly string[];
  readonly newSeed: () => number;
}

/** What the command line asks for; null for the help. Throws a UsageError with one sentence. */
export function fuzzOptions(argv: readonly string[], { targetNames, newSeed }: FuzzSurroundings): FuzzOptions | null {
  const values = parseOptions(argv, flags);
  if (values === null) return null;
  const targets = (values.get("target") as string | undefined)?.split(",") ?? null;
  const unknown = targets?.find((name) => !targetNames.includes(name));
  if (unknown !== undefined) throw new UsageError(`unknown target '${unknown}'; there are ${targetNames.join(", ")}`);
  const path = (values.get("path") as string | undefined) ?? null;
  if (path !== null && (targets?.length !== 1 || !values.has("seed")))
    throw new UsageError("--path names an input of one --target with its --seed");
  return {
    targets: targets && new Set(targets),
    count: values.get("count") as number,
    seed: (values.get("seed") as number | undefined) ?? newSeed(),
    path,
    record: values.has("record"),
    list: values.has("list"),
  };
}

export function fuzzHelp(): string {
  const title = "Sends what no honest client sends to every door of the server.";
  return [title, "", "Usage: npm run fuzz -- [options]", "", ...flags.map(flagRow), ""].join("\n");
}
