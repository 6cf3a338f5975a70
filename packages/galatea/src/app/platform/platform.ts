import { randomBytes } from "node:crypto";
import { mkdir, rmdir, statfs } from "node:fs/promises";
import type { IncomingMessage } from "node:http";
import { setImmediate as nextTurn } from "node:timers/promises";
import { availableParallelism, totalmem } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import {
  answerHttpsHosts,
  createGateway,
  isLoopbackName,
  isOpenAiUrl,
  refusedRequest,
  stsHosts,
  topicActions,
  type HostAndOriginRules,
} from "@galatea/aws";
import { systemClock, TaskGroup, type ByteBudget, type Clock, type Logger } from "@galatea/base";
import { ArchiveUnpacker, archiveLimits, unpackerDefaults, type BucketStore } from "@galatea/hosting/objects";
import {
  createDirectoryLogStreams,
  keepPruned,
  Hosting,
  hostingLimits,
  instanceLimits,
  invocationLimits,
  type FleetOptions,
  type HostingOptions,
  type LogStreams,
} from "@galatea/hosting";
import { printSeries, type MetricStore } from "@galatea/base/metrics";
import { localNode, usableMemoryBytes, type NodeDescription } from "@galatea/hosting/nodes";
import { visibleGpuCount } from "@galatea/server/gpus";
import { watchGpus } from "../gpus.ts";
import { countedSeries, createPlatformMetrics, EndpointCounters } from "@galatea/hosting/exposition";
import { InstanceKeys, type AccessFacts } from "@galatea/hosting/instance-keys";
import {
  confinementGaps,
  confinementKinds,
  confinementMeans,
  ProcessHost,
  warnOfGaps,
  type ContainerCommand,
  type ContainerStart,
} from "@galatea/hosting/process-host";
import { createLogLinks, publicPages, type LogLinks } from "@galatea/aws/public-pages";
import { instancePermissions, type InstancePermissions } from "@galatea/aws/instance-permissions";
import type { CredentialLookup } from "@galatea/aws/signing";
import { clientCertificate } from "../client-certificate.ts";
import { AcceptedKeys, bringsKey, type RootKey } from "@galatea/aws/owner-keys";
import type { DataDirectories } from "../../data-directory/index.ts";
import type { ServedContainerKind, UpOptions } from "../../options/index.ts";
import { platformContainerEnvironment } from "../passed-environment.ts";
import { openTopics, resultOutbox } from "./platform-topics.ts";
import {
  createPlatformServer,
  queueRequests,
  inheritableSocket,
  listen,
  type PlatformServerLimits,
} from "@galatea/aws/http-server";
import { containerRequestBytes } from "../request-memory.ts";
import { serverVersion } from "../version.ts";
import { openAlarms } from "./platform-scaling.ts";
import { openStorage } from "./platform-storage.ts";
import { platformServices } from "./platform-services.ts";
import { openSocketsDirectory } from "./sockets-directory.ts";

const tunnelsMax = 100;
/** Of /metrics: some 10 MB of text. */
const toldSeriesMax = 20_000;
const countedEndpointsMax = 10_000;
const logLimits = { streamBytesMax: 64 * 2 ** 20, streamsMax: 10_000, groupsMax: 10_000 };

export interface PlatformOptions extends UpOptions {
  /** A socket that listens there already; one is opened unless given. */
  readonly listeningFd?: number | null;
  readonly directories: DataDirectories;
  /** Keys that may do everything, besides those of instances and sessions; null: open, everybody may do everything. */
  readonly keys: readonly RootKey[] | null;
  /** The secret key that `galatea env --proxy` has, which says who is passed on to other hosts. */
  readonly proxySecret: string;
  readonly log: Logger;
  /** The environment that containers get their own variables on top of. */
  readonly environment: Readonly<Record<string, string>>;
  readonly serverLimits: PlatformServerLimits;
  /** What requests and answers in flight take in this process. */
  readonly requestMemory: ByteBudget;
  /** What callers, alarms, policies and recorded values go by, the machine's unless given; instances go by the machine's. */
  readonly clock?: Clock;
}

export interface Platform extends AsyncDisposable {
  readonly url: string;
  /**
   * Prepares its disposal for a restart: instances go on, and requests under way have `restartGraceMs`. Gives a descriptor of the listening
   * socket for the next platform.
   */
  detach(): number;
  /**
   * Accepts these keys and no others of the owner from now on. Sessions that a key opened which is not among them end, and so do addresses
   * of logs and of the proxy that the former first key signed. Requests that have been verified go on.
   */
  replaceKeys(keys: readonly [RootKey, ...RootKey[]]): void;
}

/** The hosting platform on one port. What is opened here is closed in the reverse order. */
export async function openPlatform(options: PlatformOptions): Promise<Platform> {
  const { directories, log, account: accountId, region, clock = systemClock, snapshotDays } = options;
  const keys = new AcceptedKeys(options.keys, options.proxySecret);
  await using opening = new AsyncDisposableStack();
  const { documents, series, store } = await openStorage(opening, directories, { log, clock, snapshotDays });
  const host = await openHost(opening, store, { ...options, platformUrl: () => platformUrl });
  const port = await openPort(opening, options, keys);
  const platformUrl = callableUrl(port.url);
  const logs = openLogs(opening, directories, log);
  const links = createLogLinks({ url: platformUrl, secret: () => keys.secret, clock });
  const instanceKeys = await InstanceKeys.open({ documents, platformUrl, randomBytes, logger: log });
  const facts = accessFacts(options, () => hosting);
  const instances = instancePermissions(instanceKeys, facts);
  const parts = { documents, series, clock, logger: log };
  const { topics, pages: topicPages } = await openTopics(opening, {
    ...parts,
    ...messageOptions(options, platformUrl),
    openLog: logs.writer.bind(logs),
  });
  const counters = new EndpointCounters({ exists: (name) => hosting.hasEndpoint(name), rowsMax: countedEndpointsMax });
  const { alarms, openScaling } = await openAlarms(opening, { ...parts, otherActions: topicActions(topics) });
  const hosting: Hosting = opening.use(
    await Hosting.open({
      documents,
      limits: hostingLimits,
      nodes: [await thisNode(options)],
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
    cutting: port.cutting,
  });
  const door = openDoor(options, { ...aws, instances, keys });
  const pages = { ...ownersPages(options, { keys, series, counters }), ...hostingsPages(hosting, log) };
  port.openTo(publicPages({ ...door, ...pages, links, logs, topics: topicPages, logger: log }));
  // First of all: the requests under way are answered while everything is still there.
  opening.defer(() => {
    hosting.watch.stop();
    stopping.abort();
    return port.close(options.serverLimits.stopGraceMs);
  });
  const detach = () => {
    host.detach();
    return port.handOver();
  };
  const replaceKeys = (next: readonly [RootKey, ...RootKey[]]) => aws.sessions.endThoseOf(keys.replace(next));
  return Object.assign(opening.move(), { url: port.url, replaceKeys, detach });
}

/** The platform's port, which is listened on from now on: whoever calls while the endpoints are being brought back waits until `openTo`. */
async function openPort(opening: AsyncDisposableStack, options: PlatformOptions, keys: AcceptedKeys) {
  const { server, close, handOver, cutting } = createPlatformServer(options.serverLimits);
  // The SageMaker SDK insists on the managed service's own STS hosts: it is sent here as to a proxy.
  const certificate = await clientCertificate(options.directories.clients, options.log);
  const secret = () => keys.secret;
  const tunnels = answerHttpsHosts(server, { certificate, hosts: stsHosts(), tunnelsMax, secret });
  const openTo = queueRequests(server);
  const { listeningFd = null } = options;
  const url = await listen(server, { ...options, listeningFd });
  let isHandedOver = false;
  const end = (graceMs: number) => {
    tunnels[Symbol.dispose]();
    return isHandedOver ? handOver() : close(graceMs);
  };
  opening.defer(() => end(0));
  return {
    url,
    openTo,
    cutting,
    close: end,
    /** `close` hands the port over from now on; gives the listening socket for whoever takes it. */
    handOver: () => {
      isHandedOver = true;
      return inheritableSocket(server);
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

/** Hosting is looked up at each access: it is opened after the keys. */
function accessFacts({ invokableEndpoint: invokableEndpoints }: PlatformOptions, hosting: () => Hosting): AccessFacts {
  return {
    invokableEndpoints,
    isModelData: (object) => hosting().isModelData(object),
    outputPlace: (object) => hosting().outputPlace(object),
  };
}

/** What the instances of all endpoints share. */
function fleetOptions(
  options: PlatformOptions,
  parts: Pick<FleetOptions, "host" | "store" | "credentials"> & {
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
    openSeries: countedSeries(counters, (key, resolutionMs) => series.recorder(key, resolutionMs)),
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
  const limits = { seriesMax: toldSeriesMax, turn: nextTurn };
  return {
    series: async () => counters.print() + (await printSeries(series, { ...limits, nowMs: clock.epochMs() })),
    bringsKey: (request: IncomingMessage) => bringsKey(request, keys.all),
    isOpen: !keys.verifies,
  };
}

function hostingsPages(hosting: Hosting, log: Logger) {
  const gaps = confinementGaps(confinementMeans());
  warnOfGaps(gaps, log);
  // A container knows more than the platform: what its operator's flags leave out, too.
  const unconfined = () => ({ ...gaps, ...hosting.figures().unconfined });
  return {
    hosting,
    version: serverVersion,
    metrics: createPlatformMetrics(hosting, { startedMs: systemClock.epochMs(), confinementKinds, unconfined }),
    unconfined,
  };
}

/** The machine of this process, as the node that instances run on. */
async function thisNode({ directories, environment }: PlatformOptions): Promise<NodeDescription> {
  await mkdir(directories.instances, { recursive: true });
  const { blocks, bsize } = await statfs(directories.instances);
  return localNode({
    memoryBytes: usableMemoryBytes(totalmem()),
    vcpuCount: availableParallelism(),
    gpuCount: visibleGpuCount(environment["CUDA_VISIBLE_DEVICES"] ?? null),
    diskBytes: blocks * bsize,
  });
}

/** Often enough for metrics of a minute. */
const gpuIntervalMs = 5000;

/** Where instances run: child processes of this one. */
async function openHost(
  opening: AsyncDisposableStack,
  store: BucketStore,
  options: PlatformOptions & { readonly platformUrl: () => string },
): Promise<ProcessHost> {
  const { directories, log } = options;
  const unpacker = opening.use(
    new ArchiveUnpacker({
      ...unpackerDefaults,
      contentDirectory: join(directories.instances, "content"),
      limits: archiveLimits,
    }),
  );
  const gpus = watchGpus(gpuIntervalMs, log);
  if (gpus !== null) opening.use(gpus);
  const sockets = await openSocketsDirectory(directories.records);
  // Instances that go on alone keep it.
  opening.defer(() => rmdir(sockets).catch(() => {}));
  return opening.use(
    new ProcessHost({
      commandFor: (start) => containerCommand(start, { ...options, platformUrl: options.platformUrl() }),
      socketsDirectory: sockets,
      instancesDirectory: directories.instances,
      store,
      unpacker,
      gpus: () => gpus?.readings() ?? [],
      clock: systemClock,
      logger: log,
    }),
  );
}

/** What containers print. */
function openLogs(opening: AsyncDisposableStack, directories: DataDirectories, log: Logger): LogStreams {
  const logs = opening.use(
    createDirectoryLogStreams({ directory: directories.logs, clock: systemClock, logger: log, ...logLimits }),
  );
  const upkeep = opening.use(new TaskGroup((error) => log.error("upkeep failed", { error: String(error) })));
  upkeep.run((closing) => keepPruned(logs, { clock: systemClock, logger: log }, closing));
  return logs;
}

/** What services ask about whoever calls them. */
const callersOf = (options: PlatformOptions, instances: InstancePermissions) => ({
  accountId: options.account,
  allowedOrigins: new Set(options.allowedOrigin),
  writerOf: (accessKeyId: string) => instances.writerOf(accessKeyId),
  lists: instances.lists,
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
  const rules = doorRules(options);
  const refuses = ({ url = "/", headers }: IncomingMessage) => refusedRequest({ url, headers }, rules);
  const lent: CredentialLookup = (id) => instances.credential(id) ?? sessions.credential(id);
  const gateway = createGateway({
    services,
    credentials: keys.verifies ? credentialLookup(keys, accountId, lent) : null,
    permits: instances.permits,
    regionDefault: region,
    accountIdDefault: accountId,
    refuses,
    requestMemory: options.requestMemory,
    ...(options.clock && { clock: options.clock }),
    logger: options.log,
  });
  return { refuses, gateway };
}

/** The keys of the platform's owner, then those that were lent. */
function credentialLookup(keys: AcceptedKeys, accountId: string, lent: CredentialLookup): CredentialLookup {
  return (accessKeyId) => {
    const own = keys.find(accessKeyId);
    return own === undefined ? lent(accessKeyId) : { ...own, sessionToken: null, accountId, expiresMs: null };
  };
}

/** Returns the address that the platform gives to its instances and clients: its own, with the loopback address in place of one that stands for all. */
export function callableUrl(url: string): string {
  return url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:");
}

/** Behind CONNECT the hosts of STS are this platform's own. */
function doorRules({ host, allowedHost, allowedOrigin, keys }: PlatformOptions): HostAndOriginRules {
  const origins = new Set(allowedOrigin);
  const name = host.toLowerCase().replace(/\.$/, "");
  return {
    hosts: new Set([name, ...allowedHost, ...stsHosts()]),
    anyAddress: !isLoopbackName(name),
    allowsPage: (origin, url) => origins.has(origin) && isOpenAiUrl(url),
    verified: keys !== null,
  };
}

/**
 * How much a container's collector lets lie before it looks, in half of what it would take on a large machine: beyond this it is
 * hardly faster, and the memory is better used for models.
 */
const containerSemiSpaceMebibytes = 16;

/** An instance is our own server in container mode, with the platform's Python environment. */
function containerCommand(
  { spec, mlRoot, socketPath }: ContainerStart,
  options: PlatformOptions & { readonly platformUrl: string },
): ContainerCommand {
  // With keys of their own, which may do what models do; without keys the port would take anything from anybody.
  const own = options.keys === null ? [] : [`--worker-connect=${new URL(options.platformUrl).port || 80}`];

  return {
    command: process.execPath,
    args: [
      ...process.execArgv,
      `--max-semi-space-size=${containerSemiSpaceMebibytes}`,
      fileURLToPath(new URL(import.meta.url.endsWith(".ts") ? "../../main.ts" : "../../main.js", import.meta.url)),
      "serve",
      // What clients of the container never see, and `ps` shows.
      `--id=${spec.title}`,
      `--end-without-pings-secs=${options.instanceGraceSecs}`,
      `--sagemaker-socket=${socketPath}`,
      `--ml-root=${mlRoot}`,
      `--container-kind=${spec.runtime satisfies ServedContainerKind}`,
      `--memory-budget-bytes=${spec.modelMemoryBytes}`,
      `--python-instances-on-demand=${spec.concurrencyMax ?? 0}`,
      `--request-memory-bytes=${containerRequestBytes(spec.modelMemoryBytes, options.requestMemory.bytesMax)}`,
      `--data=${options.directories.root}`,
      ...options.workerArguments,
      ...own,
    ],
    env: platformContainerEnvironment(options.environment, spec.environment),
  };
}
