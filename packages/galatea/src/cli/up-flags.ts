import { isIP } from "node:net";
import { platformDefaults, type EnvOptions, type PlatformPlace, type UpOptions } from "../app/index.ts";
import { dataDefault, portMax, requestMemoryFlag, UsageError, type Flag, type ParsedFlags } from "./flags.ts";
import { pythonArguments, pythonFlag } from "./python-flags.ts";
import { workerArguments, workerFlags } from "./worker-flags.ts";

const host = { name: "host", kind: "string", default: platformDefaults.host } as const;
const port = { name: "port", kind: "integer", default: platformDefaults.port, max: portMax } as const;
const data = { name: "data", kind: "string" } as const;

const region = { name: "region", kind: "string", default: platformDefaults.region } as const;
const credentials = { name: "credentials", kind: "string" } as const;

export const upFlags: readonly Flag[] = [
  { ...host, about: "address to listen on" },
  { ...port, min: 0, about: "the one port of every service; 0 takes any free one" },
  {
    name: "allowed-host",
    kind: "string",
    repeatable: true,
    about: "another name that clients reach the platform by (a proxy's, this machine's); other Hosts get 403",
  },
  {
    name: "allowed-origin",
    kind: "string",
    repeatable: true,
    about: "an origin whose web pages may use OpenAI's API here, such as https://chat.example; other pages get 403",
  },
  {
    ...credentials,
    about:
      "file of the keys that are let in, as ~/.aws/credentials (default: $GALATEA_ACCESS_KEY_ID and " +
      "$GALATEA_SECRET_ACCESS_KEY, else a key that is made once and kept in the data directory)",
  },
  { ...region, about: "region of requests that name none, and of what `galatea env` prints" },
  {
    name: "account",
    kind: "string",
    default: "000000000000",
    about: "the account's twelve digits, as ARNs and the SDKs' default buckets have them",
  },
  { name: "open", kind: "switch", about: "verify no signature: every program of this machine may do everything" },
  { name: "insecure", kind: "switch", about: "like --open, on an address that other machines reach too" },
  { ...data, about: `where records, objects and caches live (default: ${dataDefault})` },
  requestMemoryFlag,
  {
    name: "serverless-idle-secs",
    kind: "integer",
    min: 1,
    max: 86_400,
    default: 300,
    about: "how long the instance of a serverless variant is kept without requests",
  },
  {
    name: "snapshot-days",
    kind: "integer",
    min: 0,
    max: 3650,
    default: 7,
    about:
      "days of which a snapshot of the records is kept, below `snapshots` in the data directory; a damaged database " +
      "continues from the newest. 0 makes none",
  },
  {
    name: "endpoint-objects-bytes",
    kind: "integer",
    min: 0,
    max: Number.MAX_SAFE_INTEGER,
    default: 10 * 2 ** 30,
    about: "objects that the code of one endpoint may write and keep in the object store; more is refused (507)",
  },
  {
    name: "invokable-endpoint",
    kind: "string",
    repeatable: true,
    about:
      "an endpoint that the code of every model may invoke, or * for all; a model's own is named by " +
      "GALATEA_INVOKABLE_ENDPOINTS of its Environment",
  },
  {
    name: "topics-to-this-machine",
    kind: "switch",
    about: "lets SNS subscriptions name endpoints on this machine's own addresses (127.0.0.0/8, ::1)",
  },
  {
    name: "topics-to-private-networks",
    kind: "switch",
    about: "lets SNS subscriptions name endpoints on link-local and private addresses of other machines",
  },
  pythonFlag,
  ...workerFlags,
];

/** `about` of a flag of `env` whose default is what the running platform was started with. */
const ofPlatform = (about: string, otherwise: string | number): string =>
  `${about} (default: the running platform's, else ${otherwise})`;

/** The flags of `env` name the platform to call. */
export const envFlags: readonly Flag[] = [
  {
    name: "host",
    kind: "string",
    about: ofPlatform("name or address that clients reach the platform by", host.default),
  },
  { name: "port", kind: "integer", min: 1, max: portMax, about: ofPlatform("the platform's port", port.default) },
  { name: "region", kind: "string", about: ofPlatform("region that clients use", region.default) },
  {
    name: "proxy",
    kind: "switch",
    about:
      "also sets HTTPS_PROXY and AWS_CA_BUNDLE, which the sagemaker SDK's default_bucket() and get_execution_role() need: " +
      "the platform answers STS and passes everything else on, through the proxy that the shell had",
  },
  { name: "unset", kind: "switch", about: "gives the shell back what it had before" },
  {
    ...credentials,
    about: "file of the platform's keys (default: the one that the running platform was started with)",
  },
  {
    ...data,
    about:
      "the platform's data directory, where the clients' files are written (default: that of the only platform that runs, " +
      `else ${dataDefault})`,
  },
];

export function upOptions(parsed: ParsedFlags): UpOptions {
  for (const name of ["open", "insecure"]) {
    if (parsed.given.has("credentials") && parsed.given.has(name)) {
      throw new UsageError(`--credentials and --${name} exclude each other`);
    }
  }
  return {
    host: parsedHost(parsed.values.get("host") as string),
    port: parsed.values.get("port") as number,
    allowedHosts: (parsed.lists.get("allowed-host") ?? []).map(parsedName),
    allowedOrigins: (parsed.lists.get("allowed-origin") ?? []).map(parsedOrigin),
    invokableEndpoints: parsed.lists.get("invokable-endpoint") ?? [],
    owner: parsedOwner(parsed),
    credentials: (parsed.values.get("credentials") as string | undefined) ?? null,
    open: parsed.values.get("open") === true || parsed.values.get("insecure") === true,
    insecure: parsed.values.get("insecure") === true,
    dataDirectory: (parsed.values.get("data") as string | undefined) ?? null,
    requestMemoryBytes: (parsed.values.get("request-memory-bytes") as number | undefined) ?? null,
    topicsToThisMachine: parsed.values.get("topics-to-this-machine") === true,
    topicsToPrivateNetworks: parsed.values.get("topics-to-private-networks") === true,
    endpointObjectsBytes: (parsed.values.get("endpoint-objects-bytes") as number | undefined) ?? 10 * 2 ** 30,
    snapshotDays: parsed.values.get("snapshot-days") as number,
    serverlessIdleSecs: (parsed.values.get("serverless-idle-secs") as number | undefined) ?? 300,
    workerArguments: [...pythonArguments(parsed), ...workerArguments(parsed)],
  };
}

export function platformPlace({ values }: ParsedFlags): PlatformPlace {
  const text = (name: string) => (values.get(name) as string | undefined) ?? null;
  const [name, regionName] = [text("host"), text("region")];
  return {
    host: name === null ? null : parsedHost(name),
    port: (values.get("port") as number | undefined) ?? null,
    region: regionName === null ? null : parsedRegion(regionName),
    credentials: text("credentials"),
    dataDirectory: text("data"),
  };
}

function parsedRegion(text: string): string {
  if (/^[a-z]{2,}(-[a-z]+)+-\d{1,2}$/.test(text)) return text;
  throw new UsageError(`invalid value for --region: '${text}' is not like us-east-1`);
}

function parsedOwner({ values }: ParsedFlags): UpOptions["owner"] {
  const accountId = (values.get("account") as string | undefined) ?? "";
  if (accountId !== "" && !/^\d{12}$/.test(accountId)) {
    throw new UsageError(`invalid value for --account: '${accountId}' is not twelve digits`);
  }
  return { accountId, region: parsedRegion(values.get("region") as string) };
}

export function envOptions(parsed: ParsedFlags): EnvOptions {
  const [proxy, unset] = ["proxy", "unset"].map((name) => parsed.values.get(name) === true);
  if (proxy === true && unset === true) throw new UsageError("--proxy and --unset exclude each other");
  return { ...platformPlace(parsed), proxy: proxy === true, unset: unset === true };
}

/** As browsers write it. */
function parsedOrigin(text: string): string {
  if (/^https?:\/\//.test(text) && URL.canParse(text) && new URL(text).origin === text) return text;
  throw new UsageError(`invalid value for --allowed-origin: '${text}' is not like https://chat.example`);
}

/** An address as it is, without the brackets it has in URLs, or a name. */
function parsedHost(text: string): string {
  return checkedName(text, "host");
}

function parsedName(text: string): string {
  return checkedName(text, "allowed-host").toLowerCase().replace(/\.$/, "");
}

function checkedName(text: string, flag: string): string {
  const address = /^\[(.*)\]$/.exec(text)?.[1] ?? text;
  // A zone (fe80::1%eth0) has no place in a URL.
  if (isIP(address) !== 0 && !address.includes("%")) return address;
  if (/^[\w-]+(\.[\w-]+)*\.?$/.test(text)) return text;
  throw new UsageError(`invalid value for --${flag}: '${text}' is neither a name nor an address`);
}
