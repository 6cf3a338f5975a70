import {
  targetPlatformFlags,
  integerFlag,
  parsedFlag,
  switchFlag,
  UsageError,
  type OptionsOf,
  type Parsed,
  type PlatformAddressOptions,
} from "../../options/index.ts";

const json = switchFlag("print JSON, for scripts");

export const statusFlags = {
  json,
  url: parsedFlag(
    { about: "the HTTP address of a `galatea serve`, which is queried instead of a platform" },
    parsedUrl,
  ),
  ...targetPlatformFlags,
};

export type StatusOptions = OptionsOf<typeof statusFlags>;

export const listFlags = {
  models: switchFlag("list models instead of endpoints"),
  json,
  ...targetPlatformFlags,
};

export type ListingOptions = OptionsOf<typeof listFlags>;

export const logsFlags = {
  follow: { ...switchFlag("also print new lines, until the command is stopped"), short: "f" },
  lines: integerFlag({
    unit: "lines",
    default: 100,
    min: 1,
    max: 10_000,
    about: "number of last lines to print first",
  }),
  ...targetPlatformFlags,
};

export type LogsOptions = OptionsOf<typeof logsFlags>;

export const deleteFlags = targetPlatformFlags;

/** Options with the name that is a command's only positional argument. */
export type Named<Options extends PlatformAddressOptions> = Options & { readonly name: string };

export function named<Options extends PlatformAddressOptions>(
  command: string,
  { options, positionals: [name = ""] }: Parsed<Options>,
): Named<Options> {
  if (name === "") throw new UsageError(`galatea ${command} needs a name; \`galatea list\` prints the names`);
  return { ...options, name };
}

function parsedUrl(text: string): string {
  const url = /^https?:\/\//.test(text) ? text : `http://${text}`;
  if (URL.canParse(url)) return new URL(url).origin;
  throw new UsageError(`invalid value for --url: '${text}' is not an HTTP address such as http://127.0.0.1:8000`);
}
