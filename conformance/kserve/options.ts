import { choiceFlag, switchFlag, textFlag } from "../../packages/galatea/src/options/flag.ts";
import { parseOptions, type OptionsOf } from "../../packages/galatea/src/options/parse-flags.ts";
import { flagRow } from "../../packages/galatea/src/cli/help.ts";

export const partNames = ["cases", "tritonclient", "command-line"] as const;
export type PartName = (typeof partNames)[number];

const flags = (cache: string) => ({
  target: choiceFlag(["oracle", "galatea", "both"], {
    default: "both",
    about: "the server to test",
  }),
  record: switchFlag("record Triton's responses again"),
  only: textFlag({ default: "", about: "run only cases with this text in their names" }),
  part: choiceFlag(partNames, { about: "run only this part" }),
  cache: textFlag({ default: cache, about: "directory of the suite's environments" }),
  quiet: switchFlag("do not print progress"),
});

export interface SuiteOptions extends OptionsOf<ReturnType<typeof flags>> {
  readonly parts: readonly PartName[];
}

/** Returns the options of the command line; null for --help. Throws a UsageError with one sentence. */
export function suiteOptions(argv: readonly string[], cache: string): SuiteOptions | null {
  const options = parseOptions(argv, flags(cache));
  if (options === null) return null;
  const { part, only } = options;
  return { ...options, parts: part !== null ? [part] : only === "" ? partNames : ["cases"] };
}

export function suiteHelp(cache: string): string {
  const title =
    "Sends equal requests to the real tritonserver and to Galatea, and compares the responses with the recorded ones.";
  return [
    title,
    "",
    "Usage: npm run conformance -- [options]",
    "",
    ...Object.entries(flags(cache)).map(flagRow),
    "",
  ].join("\n");
}
