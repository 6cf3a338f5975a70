import { parseOptions, portMax, UsageError, type Flag } from "../../packages/galatea/src/cli/flags.ts";
import { flagRow } from "../../packages/galatea/src/cli/help.ts";

export const storyNames = ["sentences", "images"] as const;
export type StoryName = (typeof storyNames)[number];

export interface StoryOptions {
  readonly story: StoryName;
  /** Tell the story and exit, instead of staying up. */
  readonly once: boolean;
  readonly port: number;
  readonly data: string;
}

const flags = (data: string): readonly Flag[] => [
  {
    name: "story",
    kind: "string",
    default: "sentences",
    about: "which one: sentences of 24 tenants, or images, with DALI and TensorFlow beside them (another 2.5 GB)",
  },
  { name: "once", kind: "switch", about: "tell the story and exit, instead of leaving the platform up" },
  {
    name: "port",
    kind: "integer",
    default: 8770,
    min: 0,
    max: portMax,
    about: "port of the platform; 0 takes any free",
  },
  { name: "data", kind: "string", default: data, about: "where everything is kept, about 2.5 GB" },
  { name: "help", kind: "switch", about: "this" },
];

/** What the command line asks for; null for the help. Throws a UsageError with one sentence. */
export function storyOptions(argv: readonly string[], defaultData: string): StoryOptions | null {
  const values = parseOptions(argv, flags(defaultData));
  if (values === null) return null;
  const asked = values.get("story") as string;
  const story = storyNames.find((name) => name === asked);
  if (story === undefined)
    throw new UsageError(`Invalid option value. Got ${asked} for --story, expected one of ${storyNames.join(", ")}`);
  return { story, once: values.has("once"), port: values.get("port") as number, data: values.get("data") as string };
}

export function storyHelp(defaultData: string): string {
  return [
    "Sets itself up, starts the platform, hosts ensembles of sentences (and pictures) and sends real ones.",
    "",
    "Usage: npm start -- [options]",
    "",
    ...flags(defaultData).map(flagRow),
    "",
  ].join("\n");
}
