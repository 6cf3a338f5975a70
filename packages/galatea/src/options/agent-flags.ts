import { isIP } from "node:net";
import { integerFlag, parsedFlag, portFlag, portMax, textFlag, UsageError } from "./flag.ts";
import type { OptionsOf, Parsed } from "./parse-flags.ts";
import { parsedObjectsUrl, parsedRegion, platformDefaults } from "./platform-flags.ts";
import { dataDefault, pythonArguments, sharedFlags } from "./shared-flags.ts";
import { workerArguments, workerFlags } from "./worker-flags.ts";

/** An address and a port to listen on. */
export interface AgentListenAddress {
  readonly host: string;
  readonly port: number;
}

/** The flags of `galatea agent`. */
export const agentFlags = {
  listen: parsedFlag(
    {
      unit: "address:port",
      about: "where platforms reach the agent, such as 0.0.0.0:8780 or [::]:8780; port 0 takes any free one. Required",
    },
    parsedListen,
  ),
  "tls-cert": textFlag({ about: "PEM file of the agent's certificate, read again when it changes. Required" }),
  "tls-key": textFlag({ about: "PEM file of the certificate's key. Required" }),
  "tls-ca": textFlag({
    about:
      "PEM file of the authorities of platforms' certificates: a platform with such a certificate may run models on this machine. Required",
  }),
  "probe-port": portFlag({
    about:
      "port of GET /healthz, /readyz and /servingz over plain HTTP, at the address of --listen, for Kubernetes' probes (default: none)",
  }),
  objects: parsedFlag(
    {
      unit: "url",
      about:
        "S3 service that models are downloaded from: the platform's URL, or the service of its --objects; with the keys of the " +
        "environment (AWS_ACCESS_KEY_ID...) or of ~/.aws/credentials. Required",
    },
    parsedObjectsUrl,
  ),
  region: parsedFlag({ default: platformDefaults.region, about: "region of the requests to --objects" }, parsedRegion),
  data: textFlag({ about: `directory of models and caches, of this agent alone (default: ${dataDefault})` }),
  "instance-grace-secs": integerFlag({
    unit: "seconds",
    default: 600,
    min: 1,
    max: 86_400,
    about: "how long instances run without a platform that is connected, before the agent ends them",
  }),
  "drain-secs": integerFlag({
    unit: "seconds",
    default: 30,
    min: 0,
    max: 86_400,
    about: "how long platforms may take to replace its instances after SIGTERM, and requests in flight to complete",
  }),
  "request-memory-bytes": sharedFlags["request-memory-bytes"],
  python: sharedFlags.python,
  ...workerFlags,
};

type AgentFlagOptions = OptionsOf<typeof agentFlags>;

/** The options of `galatea agent`, checked against each other. */
export interface AgentOptions extends AgentFlagOptions {
  readonly listen: AgentListenAddress;
  readonly tlsCert: string;
  readonly tlsKey: string;
  readonly tlsCa: string;
  readonly objects: string;
  /** Arguments of `serve` for containers: the Python interpreter, and the isolation of models. */
  readonly workerArguments: readonly string[];
}

export function agentOptions(parsed: Parsed<AgentFlagOptions>): AgentOptions {
  const { options } = parsed;
  const { listen, tlsCert, tlsKey, tlsCa, objects } = options;
  return {
    ...options,
    listen: required(listen, "listen"),
    tlsCert: required(tlsCert, "tls-cert"),
    tlsKey: required(tlsKey, "tls-key"),
    tlsCa: required(tlsCa, "tls-ca"),
    objects: required(objects, "objects"),
    workerArguments: [...pythonArguments(options), ...workerArguments(parsed)],
  };
}

function required<Value>(value: Value | null, flag: keyof typeof agentFlags): Value {
  if (value === null) throw new UsageError(`galatea agent needs --${flag}: ${agentFlags[flag].about}`);
  return value;
}

function parsedListen(text: string, flag: string): AgentListenAddress {
  const [, bracketed, plain, port = ""] = /^(?:\[(.+)\]|([^:[\]]+)):(\d{1,5})$/.exec(text) ?? [];
  const host = bracketed ?? plain ?? "";
  const isAddress = isIP(host) !== 0 || host === "localhost";
  if (isAddress && Number(port) <= portMax) return { host, port: Number(port) };
  throw new UsageError(`invalid value for --${flag}: '${text}' is not an address and a port, like 0.0.0.0:8780`);
}
