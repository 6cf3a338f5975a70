import { mkdir, rm } from "node:fs/promises";
import { availableParallelism, totalmem } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { answerHttpsHosts, createGateway, createS3Service, stsHosts } from "../aws/index.ts";
import { delay, systemClock, TaskGroup, type Logger } from "../base/index.ts";
import { ArchiveUnpacker, archiveLimits, openDirectoryStore, unpackerDefaults } from "../blobs/index.ts";
import {
  createDirectoryLogStreams,
  Hosting,
  hostingLimits,
  hostingMigrations,
  instanceLimits,
  invocationLimits,
  metricMigrations,
  MetricRecords,
  metricRecordsLimits,
  type InstanceSpec,
} from "../hosting/index.ts";
import { ProcessHost, type ContainerCommand } from "../hosts/index.ts";
import { MinuteSeries } from "../metrics/index.ts";
import { lockDirectory } from "../processes/index.ts";
import { openRecords, recordsDefaults } from "../records/index.ts";
import { clientCertificate } from "./client-certificate.ts";
import type { DataDirectories } from "./directories.ts";
import { createPlatformServer, holdRequests, listen, type PlatformServerLimits } from "./platform-server.ts";
import { platformServices } from "./platform-services.ts";
import { makeSocketsDirectory } from "./sockets-directory.ts";

export const platformAccount = "000000000000";
export const platformRegion = "us-east-1";

const tunnelsMax = 100;
const logPruneIntervalMs = 3_600_000;
const logLimits = { streamBytesMax: 64 * 2 ** 20, streamsMax: 10_000 };
const seriesLimits = { seriesMax: 100_000, bytesMax: 512 * 2 ** 20 };

export interface PlatformOptions {
  readonly host: string;
  readonly port: number;
  readonly directories: DataDirectories;
  readonly log: Logger;
  /** The environment that containers get their own variables on top of. */
  readonly environment: Readonly<Record<string, string>>;
  readonly serverLimits: PlatformServerLimits;
}

export interface Platform extends AsyncDisposable {
  readonly url: string;
}

/** The hosting platform on one port. What is opened here is closed in the reverse order. */
export async function openPlatform(options: PlatformOptions): Promise<Platform> {
  const { directories, log } = options;
  await using opening = new AsyncDisposableStack();
  for (const directory of Object.values(directories)) await mkdir(directory, { recursive: true });
  const lock = lockDirectory(directories.records);
  if (lock === null) {
    throw new Error(`another platform runs over ${directories.root}; stop it, or choose another directory with --data`);
  }
  opening.use(lock);
  const { server, close } = createPlatformServer(options.serverLimits);
  // The SageMaker SDK insists on the managed service's own STS hosts: it is sent here as to a proxy.
  const certificate = await clientCertificate(directories.clients);
  const tunnels = answerHttpsHosts(server, { certificate, hosts: stsHosts(), tunnelsMax });

  const records = opening.use(
    await openRecords({
      ...recordsDefaults,
      path: join(directories.records, "galatea.db"),
      migrations: [...hostingMigrations, ...metricMigrations],
    }),
  );
  const store = opening.use(await openDirectoryStore({ folder: directories.objects, logger: log }));
  const series = new MinuteSeries({ clock: systemClock, ...seriesLimits });
  // Closed after everything that records, before the records.
  opening.use(new MetricRecords({ records, series, limits: metricRecordsLimits, clock: systemClock, logger: log }));
  const unpacker = opening.use(
    new ArchiveUnpacker({
      ...unpackerDefaults,
      contentDirectory: join(directories.instances, "content"),
      limits: archiveLimits,
    }),
  );
  const sockets = await makeSocketsDirectory(directories.records);
  opening.defer(() => rm(sockets, { recursive: true, force: true }));
  const host = opening.use(
    new ProcessHost({
      commandFor: (spec, socketPath) => containerCommand(spec, socketPath, options),
      socketsDirectory: sockets,
      clock: systemClock,
    }),
  );
  // Whoever calls while the endpoints are being brought back waits for that.
  const openTo = holdRequests(server);
  const url = await listen(server, options);
  const closeWithin = (graceMs: number) => {
    tunnels[Symbol.dispose]();
    return close(graceMs);
  };
  opening.defer(() => closeWithin(0));
  const logs = opening.use(
    createDirectoryLogStreams({ directory: directories.logs, clock: systemClock, logger: log, ...logLimits }),
  );
  const upkeep = opening.use(new TaskGroup((error) => log.error("upkeep failed", { error: String(error) })));
  upkeep.run(async (closing) => {
    for (;;) {
      await delay(systemClock, logPruneIntervalMs, closing);
      await logs.prune();
    }
  });
  const hosting = opening.use(
    new Hosting({
      records,
      limits: hostingLimits,
      random: Math.random,
      fleet: {
        host,
        store,
        unpacker,
        openSeries: (key) => series.recorder(key),
        openLog: (group, stream) => logs.writer(group, stream),
        instancesDirectory: directories.instances,
        machine: { vcpuCount: availableParallelism(), memoryBytes: totalmem() },
        consoleUrl: url,
        instanceLimits,
        invocationLimits,
        clock: systemClock,
        logger: log,
      },
    }),
  );
  await hosting.resume();
  const services = await platformServices({ hosting, logs, records, series, accountId: platformAccount });
  const gateway = createGateway({
    services: { ...services, s3: createS3Service({ store, domain: null, logger: log }) },
    credentials: null,
    regionDefault: platformRegion,
    accountIdDefault: platformAccount,
    logger: log,
  });
  openTo(gateway);
  // First of all: the requests under way are answered while everything is still there.
  opening.defer(() => {
    hosting.stopHolding();
    return closeWithin(options.serverLimits.stopGraceMs);
  });
  const closing = opening.move();
  return { url, [Symbol.asyncDispose]: () => closing.disposeAsync() };
}

/**
 * How much a container's collector lets lie before it looks, in half of what it would take on a large machine: beyond this it is
 * hardly faster, and the memory is better used for models.
 */
const containerSemiSpaceMebibytes = 16;

/** An instance is our own server in container mode, with the platform's Python environment. */
function containerCommand(spec: InstanceSpec, socketPath: string, options: PlatformOptions): ContainerCommand {
  return {
    command: process.execPath,
    args: [
      ...process.execArgv,
      `--max-semi-space-size=${containerSemiSpaceMebibytes}`,
      fileURLToPath(new URL(import.meta.url.endsWith(".ts") ? "../main.ts" : "../main.js", import.meta.url)),
      "serve",
      `--sagemaker-socket=${socketPath}`,
      `--ml-root=${spec.mlRoot}`,
      `--memory-budget-bytes=${spec.modelMemoryBytes}`,
      `--data=${options.directories.root}`,
    ],
    env: { ...options.environment, ...spec.environment },
  };
}
