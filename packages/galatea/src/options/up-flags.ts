import { dataDefault, pythonArguments, sharedFlags } from "./shared-flags.ts";
import {
  integerFlag,
  listFlag,
  parsedFlag,
  parsedListFlag,
  portFlag,
  switchFlag,
  textFlag,
  UsageError,
} from "./flag.ts";
import type { OptionsOf, Parsed } from "./parse-flags.ts";
import { parsedDatabaseUrl, parsedName, parsedObjectsUrl, parsedRegion, platformDefaults } from "./platform-flags.ts";
import { parsedEngineAddress } from "./engine-address.ts";
import { workerArguments, workerFlags } from "./worker-flags.ts";

/** The flags of `galatea up`. */
export const upFlags = {
  host: parsedFlag({ default: platformDefaults.host, about: "address to listen on" }, parsedName),
  port: portFlag({ default: platformDefaults.port, about: "the one port of every service; 0 takes any free one" }),
  "allowed-host": parsedListFlag(
    { about: "another host name of the platform (such as a proxy's); requests with other Host headers get 403" },
    (names, flag) => names.map((name) => parsedName(name, flag).toLowerCase().replace(/\.$/, "")),
  ),
  "allowed-origin": parsedListFlag(
    { about: "an origin whose web pages may use OpenAI's API here, such as https://chat.example; other pages get 403" },
    (origins) => origins.map(parsedOrigin),
  ),
  credentials: textFlag({
    about:
      "file of accepted keys, in the format of ~/.aws/credentials (default: $GALATEA_ACCESS_KEY_ID and " +
      "$GALATEA_SECRET_ACCESS_KEY, else a generated key in the data directory)",
  }),
  region: parsedFlag(
    {
      default: platformDefaults.region,
      about: "region of requests without one, and of the variables that `galatea env` prints",
    },
    parsedRegion,
  ),
  account: parsedFlag(
    { default: "000000000000", about: "the account's twelve digits, as ARNs and the SDKs' default buckets have them" },
    parsedAccount,
  ),
  open: switchFlag("disable authentication: any local process has full access"),
  insecure: switchFlag("like --open, on an address that other machines reach too"),
  data: textFlag({ about: `directory of records, objects and caches (default: ${dataDefault})` }),
  records: parsedFlag(
    {
      unit: "url",
      about:
        "keep the records and metrics in PostgreSQL 14 or newer, such as postgres://user@host/database?sslmode=verify-full; the password " +
        "may come from PGPASSWORD or ~/.pgpass (default: SQLite in the data directory)",
    },
    parsedDatabaseUrl,
  ),
  objects: parsedFlag(
    {
      unit: "url",
      about:
        "keep the objects in the buckets of this S3 service, such as https://s3.eu-central-1.amazonaws.com or http://minio:9000, " +
        "with the keys of the environment (AWS_ACCESS_KEY_ID...) or of ~/.aws/credentials, and the region of --region " +
        "(default: the data directory)",
    },
    parsedObjectsUrl,
  ),
  standby: switchFlag(
    "wait while another platform has the records, and take over when it ends; needs --records, --objects, and the same keys",
  ),
  "advertise-url": parsedFlag(
    {
      unit: "url",
      about:
        "where `galatea gateway` reaches this platform itself, such as http://10.0.0.7:8770; recorded with --records " +
        "(default: from --host and --port)",
    },
    parsedPlatformUrl,
  ),
  pods: textFlag({
    unit: "file",
    about:
      "run each instance in a pod of the Kubernetes cluster that this platform runs in, as this file says, which the chart writes; " +
      "needs the package @kubernetes/client-node, which the image and the wheel contain " +
      "(default: as processes of this machine)",
  }),
  "container-engine": parsedFlag(
    {
      unit: "url",
      about:
        "run images, in addition to the built-in containers, through the container engine at this address, such as unix:///var/run/docker.sock " +
        "(Docker) or unix:///run/podman/podman.sock",
    },
    parsedEngineAddress,
  ),
  "container-network": textFlag({
    about:
      "network of the container engine that containers of images join, such as bridge (default: one of the platform's own, in which they reach " +
      "this machine alone)",
  }),
  "request-memory-bytes": sharedFlags["request-memory-bytes"],
  "serverless-idle-secs": integerFlag({
    unit: "seconds",
    default: 300,
    min: 1,
    max: 86_400,
    about: "how long an instance of a serverless variant runs without requests before it stops",
  }),
  "instance-grace-secs": integerFlag({
    unit: "seconds",
    default: 60,
    min: 20,
    max: 86_400,
    about:
      "how long instances run without their platform after it was killed or while it restarts; its next start adopts them",
  }),
  "snapshot-days": integerFlag({
    unit: "days",
    default: 7,
    min: 0,
    max: 3650,
    about:
      "days of which a snapshot of the records is kept, below `snapshots` in the data directory; a damaged database " +
      "continues from the newest. 0 makes none",
  }),
  "endpoint-objects-bytes": integerFlag({
    unit: "bytes",
    default: 10 * 2 ** 30,
    min: 0,
    max: Number.MAX_SAFE_INTEGER,
    about:
      "bytes of objects that the code of one endpoint may keep in the object store; further writes get 507. " +
      "Not with --objects: set a quota in the S3 service",
  }),
  agent: parsedListFlag(
    {
      unit: "name=url",
      about:
        "an instance agent (`galatea agent`) and its name, such as gpu-1=https://gpu-1.example:8780; may be repeated. Instances then run " +
        "on agents only, and not on this machine",
    },
    parsedAgents,
  ),
  "agent-tls-cert": textFlag({ about: "PEM file of the certificate that the platform shows to agents" }),
  "agent-tls-key": textFlag({ about: "PEM file of that certificate's key" }),
  "agent-tls-ca": textFlag({ about: "PEM file of the authorities of the agents' certificates" }),
  "platform-url": parsedFlag(
    {
      unit: "url",
      about:
        "where model code on agents reaches this platform, such as http://platform.example:8770 (default: from --host and --port)",
    },
    parsedPlatformUrl,
  ),
  "invokable-endpoint": listFlag({
    about:
      "an endpoint that the code of every model may invoke, or * for all; a model's own is named by " +
      "GALATEA_INVOKABLE_ENDPOINTS of its Environment",
  }),
  "topics-to-this-machine": switchFlag(
    "lets SNS subscriptions name endpoints on this machine's own addresses (127.0.0.0/8, ::1)",
  ),
  "topics-to-private-networks": switchFlag(
    "lets SNS subscriptions name endpoints on link-local and private addresses of other machines",
  ),
  python: sharedFlags.python,
  ...workerFlags,
};

type UpFlagOptions = OptionsOf<typeof upFlags>;

/** The options of `galatea up`, checked against each other. */
export interface UpOptions extends UpFlagOptions {
  /** Arguments of `serve` for containers: the Python interpreter, and the isolation of models. */
  readonly workerArguments: readonly string[];
}

export function upOptions(parsed: Parsed<UpFlagOptions>): UpOptions {
  const { options, given } = parsed;
  if (options.objects !== null && given.has("endpoint-objects-bytes")) {
    throw new UsageError(
      "--endpoint-objects-bytes and --objects cannot be used together: set a quota in the S3 service instead",
    );
  }
  if (options.standby && (options.records === null || options.objects === null)) {
    throw new UsageError("--standby needs --records and --objects: both platforms have to reach the same data");
  }
  if (options.standby && options.agent.length > 0 && options.platformUrl === null) {
    throw new UsageError(
      "--standby and --agent need --platform-url: an address of all platforms, at which model code reaches the one that leads",
    );
  }
  const remote = options.pods !== null ? "--pods" : options.agent.length > 0 ? "--agent" : null;
  if (options.pods !== null && options.agent.length > 0) {
    throw new UsageError("--pods and --agent cannot be used together");
  }
  if (remote !== null && options.containerEngine !== null) {
    throw new UsageError(
      `${remote} and --container-engine cannot be used together: the engine runs containers on this machine only`,
    );
  }
  if (options.containerNetwork !== null && options.containerEngine === null) {
    throw new UsageError("--container-network needs --container-engine");
  }
  checkAgentOptions(options);
  return {
    ...options,
    open: options.open || options.insecure,
    workerArguments: [...pythonArguments(options), ...workerArguments(parsed)],
  };
}

/** Checks the flags of keys and agents, which `galatea gateway` has, too. Throws UsageError. */
export function checkAgentOptions(
  options: Pick<
    UpFlagOptions,
    "credentials" | "open" | "insecure" | "agent" | "agentTlsCert" | "agentTlsKey" | "agentTlsCa"
  >,
): void {
  for (const name of ["open", "insecure"] as const) {
    if (options.credentials !== null && options[name]) {
      throw new UsageError(`--credentials and --${name} cannot be used together`);
    }
  }
  for (const name of ["agentTlsCert", "agentTlsKey", "agentTlsCa"] as const) {
    if (options.agent.length > 0 && options[name] === null)
      throw new UsageError("--agent needs --agent-tls-cert, --agent-tls-key and --agent-tls-ca");
  }
}

/** An agent that a value of `--agent` names. */
export interface AgentReference {
  readonly name: string;
  readonly host: string;
  readonly port: number;
}

function parsedAgents(texts: readonly string[]): readonly AgentReference[] {
  const agents = texts.map((text) => {
    const [, name = "", address = ""] = /^([a-z0-9](?:[a-z0-9.-]*[a-z0-9])?)=(https:\/\/.+)$/.exec(text) ?? [];
    const url = URL.canParse(address) ? new URL(address) : null;
    if (url === null || url.pathname !== "/" || `${url.search}${url.hash}${url.username}${url.password}` !== "") {
      throw new UsageError(
        `invalid value for --agent: '${text}' is not like NAME=https://host:8780, with lower-case letters, digits, dots and dashes in NAME`,
      );
    }
    return { name, host: url.hostname.replace(/^\[(.*)\]$/, "$1"), port: Number(url.port || 443) };
  });
  const twice = agents.find(({ name }, index) => agents.findIndex((each) => each.name === name) !== index);
  if (twice !== undefined) throw new UsageError(`invalid value for --agent: the name '${twice.name}' is given twice`);
  return agents;
}

function parsedPlatformUrl(text: string, flag: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url !== null && /^https?:$/.test(url.protocol) && url.origin === text.replace(/\/$/, "")) return url.origin;
  throw new UsageError(`invalid value for --${flag}: '${text}' is not like http://platform.example:8770`);
}

function parsedAccount(text: string): string {
  if (/^\d{12}$/.test(text)) return text;
  throw new UsageError(`invalid value for --account: '${text}' is not twelve digits`);
}

/** Returns an origin in the format of the Origin header. Throws UsageError. */
function parsedOrigin(text: string): string {
  if (/^https?:\/\//.test(text) && URL.canParse(text) && new URL(text).origin === text) return text;
  throw new UsageError(`invalid value for --allowed-origin: '${text}' is not like https://chat.example`);
}
