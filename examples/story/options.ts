import { choiceFlag, portFlag, switchFlag, textFlag } from "../../packages/galatea/src/options/flag.ts";
import { platformDefaults } from "../../packages/galatea/src/options/platform-flags.ts";
import { parseOptions, type OptionsOf } from "../../packages/galatea/src/options/parse-flags.ts";
import { flagRow } from "../../packages/galatea/src/cli/help.ts";

export const storyNames = ["sentences", "images"] as const;
export type StoryName = (typeof storyNames)[number];

const flags = (data: string) => ({
  story: choiceFlag(storyNames, {
    default: "sentences",
    about: "the story: sentences of 24 tenants, or images with DALI and TensorFlow (another 2.5 GB)",
  }),
  once: switchFlag("exit after the story instead of leaving the platform up"),
  port: portFlag({ default: platformDefaults.port, about: "port of the platform; 0 for any free one" }),
  data: textFlag({ default: data, about: "directory of all files, about 0.5 GB" }),
});

export type StoryOptions = OptionsOf<ReturnType<typeof flags>>;

/** Returns the options of the command line; null for --help. Throws a UsageError with one sentence. */
export const storyOptions = (argv: readonly string[], defaultData: string): StoryOptions | null =>
  parseOptions(argv, flags(defaultData));

export function storyHelp(defaultData: string): string {
  return [
    "Installs what it needs, starts the platform, deploys ensembles for sentences (and pictures), and sends requests.",
    "",
    "Usage: npm start -- [options]",
    "",
    ...Object.entries(flags(defaultData)).map(flagRow),
    "",
  ].join("\n");
}
