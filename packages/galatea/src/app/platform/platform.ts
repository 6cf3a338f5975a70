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
import { systemClock, TaskGroup, type ByteBudget, type Clock, type Logger } from "@galatea/base";
import {
  createDirectoryLogStreams,
  pruneLogsPeriodically,
  Hosting,
  hostingLimits,
  instanceLimits,
  invocationLimits,
  type HostingOptions,
  type LogStreams,
} from "@galatea/hosting";
import { printSeries, type MetricStore } from "@galatea/base/metrics";
import { openCountedSeries, createPlatformMetrics, EndpointCounters } from "@galatea/hosting/exposition";
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
import { openStorage } from "./platform-storage.ts";
import { platformServices } from "./platform-services.ts";
import { openPlatformInstances } from "./platform-instances.ts";

const tunnelsMax = 100;
/** Maximum number of series in /metrics: some 10 MB of text. */
const seriesMax = 20_000;
const countedEndpointsMax = 10_000;
const logLimits = { streamBytesMax: 64 * 2 ** 20, streamsMax: 10_000, groupsMax: 10_000 };

export interface PlatformOptions extends UpOptions {
  /** An existing listening socket; a new one is opened by default. */
  readonly listeningFd?: number | null;
  readonly directories: DataDirectories;
  /** Keys that allow everything, in addition to those of instances and sessions; null: no authentication. */
  readonly keys: readonly RootKey[] | null;
  /** The secret key of `galatea env --proxy`, which authorises tunnels to other hosts. */
  readonly proxySecret: string;
  readonly log: Logger;
  /** The environment to which containers' own variables are added. */
  readonly environment: Readonly<Record<string, string>>;
  readonly serverLimits: PlatformServerLimits;
  /** Memory for requests and responses in flight in this process. */
  readonly requestMemory: ByteBudget;
  /**
   * The clock of callers, alarms, policies and recorded values, the machine's by default; instances use the machine's.
   */
  readonly clock?: Clock;
}

export interface Platform extends AsyncDisposable {
  readonly url: string;
  /** Resolves when the platform has to stop, because another one holds its records. */
  readonly recordsLost: Promise<Error>;
  /**
   * Prepares disposal for a restart: instances continue, and requests in flight get `restartGraceMs`. Returns a
   * descriptor of the listening socket for the next platform.
   */
  detach(): number;
  /**
   * Accepts only these keys of the owner from now on. Ends sessions that were opened with a removed key, and URLs of
   * logs and of the proxy that the former first key signed. Verified requests continue.
   */
  replaceKeys(keys: readonly [RootKey, ...RootKey[]]): void;
}

/** Opens the hosting platform on one port. Everything is closed in the reverse order. */
export async function openPlatform(options: PlatformOptions): Promise<Platform> {
  const { directories, log, account: accountId, region, clock = systemClock, snapshotDays, records } = options;
  const keys = new AcceptedKeys(options.keys, options.proxySecret);
  await using opening = new AsyncDisposableStack();
  const objects = options.objects === null ? null : { endpoint: options.objects, region };
  const storage = await openStorage(opening, directories, { log, clock, snapshotDays, records, objects });
  const { documents, recordsLost, series, store } = storage;
  const runtime = await openPlatformInstances(opening, { ...options, store, callUrl: () => platformUrl });
  const port = await openPort(opening, options, keys);
  const platformUrl = runtime.platformUrl ?? options.platformUrl ?? callableUrl(port.url);
  const logs = openLogs(opening, directories, log);
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
      ...((await openRemoteAgents(opening, options)) ?? { nodes: [runtime.node] }),
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
  const pages = { ...ownersPages(options, { keys, series, counters }), ...hostingsPages(hosting, log) };
  port.openTo(publicPages({ ...door, ...pages, links, logs, topics: topicPages, logger: log }));
  // Runs first: requests in flight are answered while everything is still open.
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

/** Opens the platform's port: calls wait until `openTo`, while endpoints are started again. */
async function openPort(opening: AsyncDisposableStack, options: PlatformOptions, keys: AcceptedKeys) {
  const { server, close, handOver, streamAbort } = createPlatformServer(options.serverLimits);
  // The SageMaker SDK requires the managed service's own STS hosts, and reaches this platform for them as a proxy.
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
    /** Makes `close` hand the port over; returns the listening socket for the next process. */
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

/** Looks hosting up at each access, because it is opened after the keys. */
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

/** Returns the options that the instances of all endpoints share. */
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
  // A container also knows the settings that its operator's flags disable.
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

/** Opens the logs of containers' output. */
function openLogs(opening: AsyncDisposableStack, directories: DataDirectories, log: Logger): LogStreams {
  const logs = opening.use(
    createDirectoryLogStreams({ directory: directories.logs, clock: systemClock, logger: log, ...logLimits }),
  );
  const upkeep = opening.use(new TaskGroup((error) => log.error("upkeep failed", { error: String(error) })));
  upkeep.run((closing) => pruneLogsPeriodically(logs, { clock: systemClock, logger: log }, closing));
  return logs;
}

/** Returns the settings by which services identify their callers. */
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

/** Returns a lookup of the owner's keys, then of temporary ones. */
function credentialLookup(keys: AcceptedKeys, accountId: string, lent: CredentialLookup): CredentialLookup {
  return (accessKeyId) => {
    const own = keys.find(accessKeyId);
    return own === undefined ? lent(accessKeyId) : { ...own, sessionToken: null, accountId, expiresMs: null };
  };
}

/** Returns the URL for instances and clients: the platform's own, with the loopback address in place of a wildcard. */
export function callableUrl(url: string): string {
  return url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:");
}

/** Returns the accepted hosts and origins; behind CONNECT, the STS hosts are this platform's own. */
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
