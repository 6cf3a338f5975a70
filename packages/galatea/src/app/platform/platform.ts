import { randomBytes } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { setImmediate as nextTurn } from "node:timers/promises";
import {
  attachConnectProxy,
  createGateway,
  isLoopbackName,
  isOpenAiUrl,
  rejectionOf,
  stsHostNames,
  createTopicActions,
  type HostAndOriginRules,
} from "@galatea/aws";
import { systemClock, type ByteBudget, type Clock, type Logger } from "@galatea/base";
import {
  Hosting,
  hostingLimits,
  instanceLimits,
  invocationLimits,
  type HostingOptions,
  type LogStreams,
} from "@galatea/hosting";
import { printSeries, type MetricStore } from "@galatea/base/metrics";
import { openCountedSeries, createPlatformMetrics, EndpointCounters } from "@galatea/hosting/exposition";
import { recordLeader } from "@galatea/hosting/records";
import { InstanceKeys, type AccessContext } from "@galatea/hosting/instance-keys";
import {
  isolationGaps,
  isolationKinds,
  readIsolationCapabilities,
  logIsolationGaps,
} from "@galatea/hosting/process-host";
import { createLogLinks, publicPages, type LogLinks } from "@galatea/aws/public-pages";
import { instancePermissions, type InstancePermissions } from "@galatea/aws/instance-permissions";
import type { CredentialLookup } from "@galatea/aws/signing";
import { clientCertificate } from "../client-certificate.ts";
import { AcceptedKeys, hasOwnerKey, type RootKey } from "@galatea/aws/owner-keys";
import type { DataDirectories } from "../../data-directory/index.ts";
import type { UpOptions } from "../../options/index.ts";
import { openTopics, resultOutbox } from "./platform-topics.ts";
import {
  createPlatformServer,
  queueRequests,
  duplicateListeningSocket,
  listenOn,
  type PlatformServerLimits,
} from "@galatea/aws/http-server";
import { serverVersion } from "../version.ts";
import { openAlarms } from "./platform-scaling.ts";
import { openRemoteAgents } from "./remote-agents.ts";
import { openLogs } from "./platform-logs.ts";
import { openStorage } from "./platform-storage.ts";
import { platformServices } from "./platform-services.ts";
import { openPlatformInstances } from "./platform-instances.ts";

const tunnelsMax = 100;
/** Maximum number of series in /metrics, which are about 10 MB of text. */
const seriesMax = 20_000;
const countedEndpointsMax = 10_000;

export interface PlatformOptions extends UpOptions {
  /** An inherited listening socket; null or absent: a new socket is opened. */
  readonly listeningFd?: number | null;
  readonly directories: DataDirectories;
  /**
   * The owner's keys, which allow everything. Keys of instances and sessions are accepted in addition. Null: requests
   * are not authenticated.
   */
  readonly keys: readonly RootKey[] | null;
  /** The secret of proxy URLs from `galatea env --proxy`, which authorise tunnels to other hosts. */
  readonly proxySecret: string;
  readonly log: Logger;
  /** The environment of containers, to which each container's own variables are added. */
  readonly environment: Readonly<Record<string, string>>;
  readonly serverLimits: PlatformServerLimits;
  /** Memory budget for requests and responses in flight in this process. */
  readonly requestMemory: ByteBudget;
  /**
   * The clock of callers, alarms, policies and recorded values; by default the machine's. Instances always use the
   * machine's clock.
   */
  readonly clock?: Clock;
}

export interface Platform extends AsyncDisposable {
  readonly url: string;
  /** Resolves when the platform must stop because another platform has acquired its records. */
  readonly recordsLost: Promise<Error>;
  /**
   * Prepares disposal for a restart: instances keep running, and requests in flight get `restartGraceMs` to complete.
   * Returns a descriptor of the listening socket for the next process.
   */
  detach(): number;
  /**
   * Replaces the accepted keys of the owner. Ends sessions that a removed key has opened, and invalidates URLs of logs
   * and of the proxy that the previous first key has signed. Requests that were already verified continue.
   */
  replaceKeys(keys: readonly [RootKey, ...RootKey[]]): void;
}

/** Opens the hosting platform on one port. Disposal closes everything in reverse order. */
export async function openPlatform(options: PlatformOptions): Promise<Platform> {
  const { directories, log, account: accountId, region, clock = systemClock, snapshotDays, records } = options;
  const keys = new AcceptedKeys(options.keys, options.proxySecret);
  await using opening = new AsyncDisposableStack();
  const objects = options.objects === null ? null : { endpoint: options.objects, region };
  const storage = await openStorage(opening, directories, { log, clock, snapshotDays, records, objects });
  const { documents, recordsLost, leadership, series, store } = storage;
  const runtime = await openPlatformInstances(opening, { ...options, store, leadership, callUrl: () => platformUrl });
  const port = await openPort(opening, options, keys);
  const platformUrl = runtime.platformUrl ?? options.platformUrl ?? callableUrl(port.url);
  const logs = await openLogs(opening, { directories, storage, logger: log });
  const links = createLogLinks({ url: platformUrl, secret: () => keys.secret, clock });
  const instanceKeys = await InstanceKeys.open({ documents, platformUrl, randomBytes, logger: log });
  const host = await runtime.openHost(instanceKeys);
  const facts = accessFacts(options, () => hosting);
  const instances = instancePermissions(instanceKeys, facts);
  const parts = { documents, series, clock, logger: log };
  const { topics, pages: topicPages } = await openTopics(opening, {
    ...parts,
    ...messageOptions(options, platformUrl),
    openLog: logs.writer.bind(logs),
  });
  const counters = new EndpointCounters({ exists: (name) => hosting.hasEndpoint(name), rowsMax: countedEndpointsMax });
  const { alarms, openScaling } = await openAlarms(opening, { ...parts, otherActions: createTopicActions(topics) });
  const hosting: Hosting = opening.use(
    await Hosting.open({
      documents,
      limits: hostingLimits,
      ...((await openRemoteAgents(opening, { ...options, leadership })) ?? { nodes: [runtime.node] }),
      random: Math.random,
      alarmState: (name) => alarms.get(name)?.status.state ?? null,
      outbox: resultOutbox(topics),
      seriesClock: clock,
      fleet: fleetOptions(options, { host, store, series, counters, logs, links, credentials: instanceKeys }),
    }),
  );
  const scaled = await openScaling(hosting, { accountId, region });
  await hosting.resume();
  const stopping = new AbortController();
  const aws = await platformServices(opening, {
    ...parts,
    hosting,
    store,
    logs,
    scaled,
    topics,
    ...callersOf(options, instances),
    stopping: stopping.signal,
    streamAbort: port.streamAbort,
  });
  const door = openDoor(options, { ...aws, instances, keys });
  if (records !== null) await recordLeader(documents, options.advertiseUrl ?? callableUrl(port.url));
  const pages = { ...ownersPages(options, { keys, series, counters }), ...hostingsPages(hosting, log) };
  port.openTo(publicPages({ ...door, ...pages, links, logs, topics: topicPages, logger: log }));
  // This runs first at disposal, so that requests in flight complete while everything else is still open.
  opening.defer(() => {
    hosting.watch.stop();
    stopping.abort();
    return port.close(options.serverLimits.stopGraceMs);
  });
  const detach = () => {
    runtime.detach();
    return port.handOver();
  };
  const replaceKeys = (next: readonly [RootKey, ...RootKey[]]) => aws.sessions.endSessionsOpenedBy(keys.replace(next));
  return Object.assign(opening.move(), { url: port.url, recordsLost, replaceKeys, detach });
}

/** Opens the platform's port. Calls wait until `openTo` is called, while endpoints are started again. */
async function openPort(opening: AsyncDisposableStack, options: PlatformOptions, keys: AcceptedKeys) {
  const { server, close, handOver, streamAbort } = createPlatformServer(options.serverLimits);
  // The SageMaker SDK calls AWS's own STS hosts. Its calls reach this platform through the CONNECT proxy.
  const certificate = await clientCertificate(options.directories.clients, options.log);
  const secret = () => keys.secret;
  const tunnels = attachConnectProxy(server, { certificate, hosts: stsHostNames(), tunnelsMax, secret });
  const openTo = queueRequests(server);
  const { listeningFd = null } = options;
  const url = await listenOn(server, { ...options, listeningFd });
  let isHandedOver = false;
  const end = (graceMs: number) => {
    tunnels[Symbol.dispose]();
    return isHandedOver ? handOver() : close(graceMs);
  };
  opening.defer(() => end(0));
  return {
    url,
    openTo,
    streamAbort,
    close: end,
    /** Makes `close` leave the port open for the next process. Returns a descriptor of the listening socket. */
    handOver: () => {
      isHandedOver = true;
      return duplicateListeningSocket(server);
    },
  };
}

const messageOptions = (
  { directories, topicsToThisMachine, topicsToPrivateNetworks }: PlatformOptions,
  url: string,
) => ({
  url,
  directory: directories.clients,
  toThisMachine: topicsToThisMachine,
  toPrivateNetworks: topicsToPrivateNetworks,
});

/** Returns functions that look up hosting at each call, because hosting is opened after the keys. */
function accessFacts(
  { invokableEndpoint: invokableEndpoints }: PlatformOptions,
  hosting: () => Hosting,
): AccessContext {
  return {
    invokableEndpoints,
    isModelData: (object) => hosting().isModelData(object),
    outputLocation: (object) => hosting().outputOwners(object),
  };
}

/** Returns the options that the instances of all endpoints have in common. */
function fleetOptions(
  options: PlatformOptions,
  parts: Pick<HostingOptions["fleet"], "host" | "store" | "credentials"> & {
    readonly series: MetricStore;
    readonly counters: EndpointCounters;
    readonly logs: LogStreams;
    readonly links: LogLinks;
  },
): HostingOptions["fleet"] {
  const { host, store, series, counters, logs, links, credentials } = parts;
  return {
    host,
    store,
    openSeries: openCountedSeries(counters, (key, resolutionMs) => series.recorder(key, resolutionMs)),
    openLog: (group, stream) => logs.writer(group, stream),
    logsLink: (group) => links.linkTo(group),
    credentials,
    requestMemory: options.requestMemory,
    instanceLimits: { ...instanceLimits, idleMsMax: options.serverlessIdleSecs * 1000 },
    invocationLimits,
    clock: systemClock,
    logger: options.log,
  };
}

interface PageSources {
  readonly keys: AcceptedKeys;
  readonly series: MetricStore;
  readonly counters: EndpointCounters;
}

function ownersPages({ clock = systemClock }: PlatformOptions, { keys, series, counters }: PageSources) {
  const limits = { seriesMax, yieldToEventLoop: nextTurn };
  return {
    series: async () => counters.prometheusText() + (await printSeries(series, { ...limits, nowMs: clock.epochMs() })),
    hasOwnerKey: (request: IncomingMessage) => hasOwnerKey(request, keys.all),
    isOpen: !keys.verifiesSignatures,
  };
}

function hostingsPages(hosting: Hosting, log: Logger) {
  const gaps = isolationGaps(readIsolationCapabilities());
  logIsolationGaps(gaps, log);
  // Each container also reports the isolation that its operator's flags disable.
  const unconfined = () => ({ ...gaps, ...hosting.statistics().unconfined });
  return {
    hosting,
    version: serverVersion,
    metrics: createPlatformMetrics(hosting, {
      startedMs: systemClock.epochMs(),
      confinementKinds: isolationKinds,
      unconfined,
    }),
    unconfined,
  };
}

/** Returns the settings with which services identify their callers. */
const callersOf = (options: PlatformOptions, instances: InstancePermissions) => ({
  accountId: options.account,
  allowedOrigins: new Set(options.allowedOrigin),
  writerOf: (accessKeyId: string) => instances.findWriter(accessKeyId),
  lists: instances.isObjectListed,
  listsGroup: instances.isGroupListed,
  writerBytesMax: options.endpointObjectsBytes,
});

function openDoor(
  options: PlatformOptions,
  parts: Awaited<ReturnType<typeof platformServices>> & {
    readonly instances: InstancePermissions;
    readonly keys: AcceptedKeys;
  },
) {
  const { services, sessions, instances, keys } = parts;
  const { account: accountId, region } = options;
  const rules = hostAndOriginRules(options);
  const rejectionText = ({ url = "/", headers }: IncomingMessage) => rejectionOf({ url, headers }, rules);
  const lent: CredentialLookup = (id) => instances.credential(id) ?? sessions.credential(id);
  const gateway = createGateway({
    services,
    credentials: keys.verifiesSignatures ? credentialLookup(keys, accountId, lent) : null,
    isAllowed: instances.isAllowed,
    regionDefault: region,
    accountIdDefault: accountId,
    rejectionText,
    requestMemory: options.requestMemory,
    ...(options.clock && { clock: options.clock }),
    logger: options.log,
  });
  return { rejectionText, gateway };
}

/** Returns a lookup that searches the owner's keys first, then temporary credentials. */
function credentialLookup(keys: AcceptedKeys, accountId: string, lent: CredentialLookup): CredentialLookup {
  return (accessKeyId) => {
    const own = keys.find(accessKeyId);
    return own === undefined ? lent(accessKeyId) : { ...own, sessionToken: null, accountId, expiresMs: null };
  };
}

/**
 * Returns the URL for instances and clients: the platform's URL, with a wildcard address replaced by the loopback
 * address.
 */
export function callableUrl(url: string): string {
  return url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:");
}

/** Returns the accepted hosts and origins. The STS hosts are included, because the CONNECT proxy serves them. */
function hostAndOriginRules({ host, allowedHost, allowedOrigin, keys }: PlatformOptions): HostAndOriginRules {
  const origins = new Set(allowedOrigin);
  const name = host.toLowerCase().replace(/\.$/, "");
  return {
    hosts: new Set([name, ...allowedHost, ...stsHostNames()]),
    anyAddress: !isLoopbackName(name),
    allowsPage: (origin, url) => origins.has(origin) && isOpenAiUrl(url),
    verified: keys !== null,
  };
}
