import type { IncomingMessage, ServerResponse } from "node:http";
import { createGateway, isLoopbackName, rejectionOf, runtimeService, type HostAndOriginRules } from "@galatea/aws";
import { createLogLinks } from "@galatea/aws/public-pages";
import { bearerScope, credentialScope, pathOf } from "@galatea/aws/signing";
import type { AcceptedKeys } from "@galatea/aws/owner-keys";
import { AwsError, type Clock, type Logger } from "@galatea/base";
import type { MetricStore } from "@galatea/base/metrics";
import { invocationLimits } from "@galatea/hosting";
import { FollowedEndpoints } from "@galatea/hosting/followed-endpoints";
import type { FollowedDocuments } from "@galatea/hosting/records";
import type { GatewayCommandOptions } from "../../options/index.ts";
import { openAgentClients } from "../platform/remote-agents.ts";
import { requestBytesMax } from "../platform/platform-services.ts";
import { requestMemory } from "../request-memory.ts";

export interface OwnInvocationsOptions {
  readonly flags: GatewayCommandOptions;
  readonly keys: AcceptedKeys;
  readonly documents: FollowedDocuments;
  readonly series: Pick<MetricStore, "recorder">;
  /** Aborts when streams must end because the gateway stops. */
  readonly streamAbort: AbortSignal;
  /** Returns the URL of the gateway, for links in errors. */
  readonly url: () => string;
  readonly clock: Clock;
  readonly log: Logger;
}

/** The invocations that a gateway sends to instances on agents itself. */
export interface OwnInvocations {
  /** Returns whether the gateway can serve a request; otherwise the leader has to. */
  accepts(request: IncomingMessage): boolean;
  handle(request: IncomingMessage, response: ServerResponse): void;
}

const operations: ReadonlySet<string> = new Set(["invocations", "invocations-response-stream"]);
/** Headers of requests that need state of the leader: sessions, and copies of inference components. */
const leaderHeaders = ["x-amzn-sagemaker-session-id", "x-amzn-sagemaker-inference-component"] as const;

/** Follows the endpoints, and the instances on the agents of `--agent`. */
export async function openOwnInvocations(
  opening: AsyncDisposableStack,
  options: OwnInvocationsOptions,
): Promise<OwnInvocations> {
  const { flags, keys, documents, series, streamAbort, clock, log } = options;
  const agents = await openAgentClients(opening, { ...flags, leadership: null, log });
  const linkTo = (group: string) =>
    createLogLinks({ url: options.url(), secret: () => keys.secret, clock }).linkTo(group);
  const endpoints = opening.use(
    new FollowedEndpoints({
      documents,
      agents: [...agents.values()],
      openSeries: (key, resolutionMs) => series.recorder(key, resolutionMs),
      logsLink: linkTo,
      limits: invocationLimits,
      random: Math.random,
      clock,
      logger: log,
    }),
  );
  const hosting = { invoke: endpoints.invoke.bind(endpoints), asyncInferences: { accept: rejectAsync } };
  const rules = hostRules(flags, keys);
  const gateway = createGateway({
    services: [runtimeService({ hosting, requestBytesMax, streamAbort, clock })],
    credentials: keys.verifiesSignatures ? credentialLookup(keys, flags.account) : null,
    regionDefault: flags.region,
    accountIdDefault: flags.account,
    rejectionText: ({ url = "/", headers }) => rejectionOf({ url, headers }, rules),
    requestMemory: requestMemory(flags.requestMemoryBytes),
    clock,
    logger: log,
  });
  return {
    accepts(request) {
      const name = invokedEndpoint(request);
      return name !== null && isOwners(request, keys) && endpoints.find(name) !== null;
    },
    handle: gateway.handle,
  };
}

/** Returns the endpoint of an invocation that needs no state of the leader; null for any other request. */
export function invokedEndpoint({ method, url = "/", headers }: Pick<IncomingMessage, "method" | "url" | "headers">) {
  if (method !== "POST" || !url.startsWith("/endpoints/")) return null;
  const [, , name = "", operation = "", ...more] = pathOf(url).split("/");
  if (more.length > 0 || !operations.has(operation)) return null;
  return leaderHeaders.some((each) => headers[each] !== undefined) ? null : name;
}

/** Returns whether a request has a key of the owner. Only the leader knows all other keys. */
function isOwners({ method = "GET", url = "/", headers }: IncomingMessage, keys: AcceptedKeys): boolean {
  if (!keys.verifiesSignatures) return true;
  const scope = credentialScope({ method, url, headers }) ?? bearerScope(headers.authorization);
  return scope !== null && keys.find(scope.accessKeyId) !== undefined;
}

function credentialLookup(keys: AcceptedKeys, accountId: string) {
  return (accessKeyId: string) => {
    const key = keys.find(accessKeyId);
    return key && { ...key, sessionToken: null, accountId, expiresMs: null };
  };
}

function hostRules({ host, allowedHost }: GatewayCommandOptions, keys: AcceptedKeys): HostAndOriginRules {
  const name = host.toLowerCase().replace(/\.$/, "");
  return {
    hosts: new Set([name, ...allowedHost]),
    anyAddress: !isLoopbackName(name),
    allowsPage: () => false,
    verified: keys.verifiesSignatures,
  };
}

const rejectAsync = () =>
  Promise.reject(new AwsError("InternalFailure", "Asynchronous invocations are served by the leader."));
