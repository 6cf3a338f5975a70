import { isIP } from "node:net";
import { dataDefault } from "./shared-flags.ts";
import { integerFlag, parsedFlag, portFlag, switchFlag, textFlag, UsageError } from "./flag.ts";
import type { OptionsOf, Parsed } from "./parse-flags.ts";

/** The default address and region of `galatea up`. The region applies to requests that name none. */
export const platformDefaults = { host: "127.0.0.1", port: 8770, region: "us-east-1" } as const;

/** Returns the help text of a flag whose default is the running platform's value. */
const ofPlatform = (about: string, otherwise: string | number): string =>
  `${about} (default: the running platform's, else ${otherwise})`;

/** Flags that select the platform to call, and the region and credentials of calls. */
export const targetPlatformFlags = {
  host: parsedFlag(
    { about: ofPlatform("name or address that clients reach the platform by", platformDefaults.host) },
    parsedName,
  ),
  port: portFlag({ min: 1, about: ofPlatform("the platform's port", platformDefaults.port) }),
  region: parsedFlag({ about: ofPlatform("region that clients use", platformDefaults.region) }, parsedRegion),
  credentials: textFlag({
    about: "file of the platform's keys (default: the one that the running platform was started with)",
  }),
  data: textFlag({
    about:
      "the platform's data directory, where the clients' files are written (default: that of the only platform that runs, " +
      `else ${dataDefault})`,
  }),
};

/** The platform that a command calls. The running platform supplies the values of null fields. */
export type PlatformAddressOptions = OptionsOf<typeof targetPlatformFlags>;

export const envFlags = {
  ...targetPlatformFlags,
  proxy: switchFlag(
    "also sets HTTPS_PROXY and AWS_CA_BUNDLE, which the sagemaker SDK's default_bucket() and get_execution_role() need: " +
      "the platform serves STS and forwards other connections, through the proxy that the shell had",
  ),
  unset: switchFlag("restores the variables that the shell had before"),
};

export type EnvOptions = OptionsOf<typeof envFlags>;

export function envOptions({ options }: Parsed<EnvOptions>): EnvOptions {
  if (options.proxy && options.unset) throw new UsageError("--proxy and --unset cannot be used together");
  return options;
}

export const eventsFlags = {
  follow: { ...switchFlag("also print new events, until the command is stopped"), short: "f" },
  after: integerFlag({ min: 0, default: 0, about: "only events after this cursor, which each event has" }),
  ...targetPlatformFlags,
};

export type EventsOptions = OptionsOf<typeof eventsFlags>;

const endpointVerbs = ["stop", "start"] as const;

/** The options of `galatea endpoint`. */
export interface EndpointOptions extends PlatformAddressOptions {
  readonly verb: (typeof endpointVerbs)[number];
  readonly name: string;
}

export function endpointOptions({ options, positionals }: Parsed<PlatformAddressOptions>): EndpointOptions {
  const [word = "", name = ""] = positionals;
  const verb = endpointVerbs.find((each) => each === word);
  if (verb === undefined) throw new UsageError(`galatea endpoint takes ${endpointVerbs.join(", ")}, not '${word}'`);
  if (name === "") throw new UsageError(`galatea endpoint ${verb} takes the name of an endpoint`);
  return { ...options, verb, name };
}

/** Flags that select one of several running platforms. */
export const restartFlags = { data: targetPlatformFlags.data, port: targetPlatformFlags.port };

export type RestartOptions = OptionsOf<typeof restartFlags>;

export const backupFlags = {
  data: textFlag({ about: `the platform's data directory (default: ${dataDefault})` }),
};

/** The options of `galatea backup` and `galatea restore`. */
export interface BackupOptions extends OptionsOf<typeof backupFlags> {
  /** The path of the backup file. */
  readonly file: string;
}

export function backupOptions(
  command: string,
  { options, positionals: [file = ""] }: Parsed<OptionsOf<typeof backupFlags>>,
): BackupOptions {
  if (file === "") throw new UsageError(`galatea ${command} takes a file`);
  return { ...options, file };
}

const recordsEnd = (end: string) =>
  textFlag({ about: `${end}: a data directory, or a PostgreSQL database such as postgres://user@host/database` });

export const recordsFlags = {
  from: recordsEnd("the records and metrics to copy, of one moment; a platform may use them meanwhile"),
  to: recordsEnd("where the copy goes, which must have no records, no metrics and no running platform"),
};

/** The options of `galatea records copy`. */
export interface RecordsCopyOptions {
  readonly from: string;
  readonly to: string;
}

export function recordsOptions({
  options,
  positionals: [verb = ""],
}: Parsed<OptionsOf<typeof recordsFlags>>): RecordsCopyOptions {
  const { from, to } = options;
  if (verb !== "copy") throw new UsageError(`galatea records takes copy, not '${verb}'`);
  if (from === null || to === null) throw new UsageError("galatea records copy takes --from and --to");
  return { from, to };
}

export function parsedRegion(text: string): string {
  if (/^[a-z]{2,}(-[a-z]+)+-\d{1,2}$/.test(text)) return text;
  throw new UsageError(`invalid value for --region: '${text}' is not like us-east-1`);
}

/** Returns a host name or an IP address. Removes the brackets that an IPv6 address has in URLs. Throws UsageError. */
export function parsedName(text: string, flag: string): string {
  const address = /^\[(.*)\]$/.exec(text)?.[1] ?? text;
  // Addresses with a zone (fe80::1%eth0) are rejected, because a URL cannot contain a zone.
  if (isIP(address) !== 0 && !address.includes("%")) return address;
  if (/^[\w-]+(\.[\w-]+)*\.?$/.test(text)) return text;
  throw new UsageError(`invalid value for --${flag}: '${text}' is neither a name nor an address`);
}

/** Returns the URL of an S3 service. Throws UsageError; its message omits the value, which may contain a password. */
export function parsedObjectsUrl(text: string, flag: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !/^https?:$/.test(url.protocol) || url.search !== "" || url.hash !== "" || url.pathname !== "/") {
    throw new UsageError(`invalid value for --${flag}: it has to be like https://s3.example.com, without a path`);
  }
  if (url.username !== "" || url.password !== "") {
    throw new UsageError(
      `invalid value for --${flag}: the URL must not have a user name or password; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or use ~/.aws/credentials`,
    );
  }
  return url.origin;
}

/** Returns the URL of a database. Throws UsageError; its message omits the value, which may contain a password. */
export function parsedDatabaseUrl(text: string, flag: string): string {
  if (/^postgres(?:ql)?:\/\//.test(text)) return text;
  throw new UsageError(`invalid value for --${flag}: it has to begin with postgres://`);
}
