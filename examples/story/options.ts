import { parseFlags, portMax, UsageError, type Flag } from "../../server/src/cli/flags.ts";

export interface StoryOptions {
  /** Tell the story and exit, instead of staying up. */
  readonly once: boolean;
  readonly port: number;
  readonly data: string;
}

const flags = (data: string): readonly Flag[] => [
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
  if (argv.includes("--help") || argv.includes("-h")) return null;
  const { values, positionals } = parseFlags(argv, flags(defaultData));
  const [extra] = positionals;
  if (extra !== undefined) throw new UsageError(`unexpected argument '${extra}'`);
  return { once: values.has("once"), port: values.get("port") as number, data: values.get("data") as string };
}

export function storyHelp(defaultData: string): string {
  const rows = flags(defaultData).map(({ name, kind, about, default: fallback }) => {
    const value = kind === "switch" ? "" : kind === "integer" ? "=N" : "=DIR";
    return `  ${`--${name}${value}`.padEnd(12)} ${about}${fallback === undefined ? "" : ` (${fallback})`}`;
  });
  return [
    "Sets itself up, starts the platform, hosts 24 tenants' sentence-embedding ensembles and sends real sentences.",
    "",
    "Usage: npm start -- [options]",
    "",
    ...rows,
    "",
  ].join("\n");
}
