import { mkdir, rmdir, statfs } from "node:fs/promises";
import { availableParallelism, homedir, totalmem } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { systemClock, type Logger } from "@galatea/base";
import type { EngineRunnerOptions } from "@galatea/hosting/container-host";
import { localNode, usableMemoryBytes, type NodeDescription } from "@galatea/hosting/nodes";
import { ArchiveUnpacker, archiveLimits, unpackerDefaults, type ObjectStore } from "@galatea/hosting/objects";
import {
  ProcessHost,
  type ContainerCommand,
  type ContainerStart,
  type ImageRunner,
} from "@galatea/hosting/process-host";
import { visibleGpuCount } from "@galatea/server/gpus";
import type { DataDirectories } from "../../data-directory/index.ts";
import type { ServedContainerKind } from "../../options/index.ts";
import { watchGpus } from "../gpus.ts";
import { platformContainerEnvironment } from "../passed-environment.ts";
import { containerRequestBytes, limitedMemoryBytes } from "../request-memory.ts";
import { openSocketsDirectory } from "./sockets-directory.ts";

export interface InstanceHostOptions {
  readonly directories: DataDirectories;
  /** The store from which model data is read. */
  readonly store: ObjectStore;
  /** The environment of containers, to which each container's own variables are added. */
  readonly environment: Readonly<Record<string, string>>;
  /** Arguments of `serve` for containers: the Python interpreter, and the isolation of models. */
  readonly workerArguments: readonly string[];
  /**
   * Returns a port that model code may connect to, in addition to the ports in `workerArguments`; null: no such port.
   */
  readonly connectPort: () => number | null;
  /**
   * The engine that runs users' images, and the network that their containers join; null: users' images are not
   * supported.
   */
  readonly containerEngine: Pick<EngineRunnerOptions, "address" | "network"> | null;
  /** Seconds without pings after which a container ends itself. */
  readonly instanceGraceSecs: number;
  /** Maximum bytes of requests and responses that one container may have in flight. */
  readonly requestBytesMax: number;
  readonly log: Logger;
}

/** Interval between GPU readings. Several readings per minute suffice for one-minute metrics. */
const gpuIntervalMs = 5000;

/** Opens the host that runs instances as child processes. */
export async function openInstanceHost(
  opening: AsyncDisposableStack,
  options: InstanceHostOptions,
): Promise<ProcessHost> {
  const { directories, store, log } = options;
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
  // Removes the directory only if it is empty: detached instances still use their sockets in it.
  opening.defer(() => rmdir(sockets).catch(() => {}));
  const images = await openImageRunner(opening, options);
  return opening.use(
    new ProcessHost({
      commandFor: (start) => containerCommand(start, options),
      socketsDirectory: sockets,
      instancesDirectory: directories.instances,
      store,
      unpacker,
      images,
      gpus: () => gpus?.readings() ?? [],
      clock: systemClock,
      logger: log,
    }),
  );
}

/**
 * Opens the runner of users' images; null without a container engine. Its code is loaded only if there is an engine.
 */
async function openImageRunner(
  opening: AsyncDisposableStack,
  { containerEngine: engine, directories, environment, log }: InstanceHostOptions,
): Promise<ImageRunner | null> {
  if (engine === null) return null;
  const { EngineRunner } = await import("@galatea/hosting/container-host");
  return opening.use(
    await EngineRunner.open({
      ...engine,
      platform: directories.instances,
      gpuCount: visibleGpuCount(environment["CUDA_VISIBLE_DEVICES"] ?? null),
      dockerConfigPath: join(environment["HOME"] ?? homedir(), ".docker", "config.json"),
      clock: systemClock,
      logger: log,
    }),
  );
}

/** Returns the description of this machine as a node for instances. */
export async function describeMachine({
  directories,
  environment,
}: Pick<InstanceHostOptions, "directories" | "environment">): Promise<NodeDescription> {
  await mkdir(directories.instances, { recursive: true });
  const { blocks, bsize } = await statfs(directories.instances);
  return localNode({
    memoryBytes: usableMemoryBytes(
      limitedMemoryBytes({ machineBytes: totalmem(), cgroupBytes: process.constrainedMemory() }),
    ),
    vcpuCount: availableParallelism(),
    gpuCount: visibleGpuCount(environment["CUDA_VISIBLE_DEVICES"] ?? null),
    diskBytes: blocks * bsize,
  });
}

/**
 * Size of a container's young generation in MiB, half of Node's default on a large machine. A larger one is hardly
 * faster and would take memory from models.
 */
const containerSemiSpaceMebibytes = 16;

/**
 * Returns the command that runs an instance: this program's server in container mode, with the Python environment of
 * this process.
 */
function containerCommand(
  { spec, runtime, mlRoot, socketPath }: ContainerStart,
  options: InstanceHostOptions,
): ContainerCommand {
  const port = options.connectPort();
  return {
    command: process.execPath,
    args: [
      ...process.execArgv,
      `--max-semi-space-size=${containerSemiSpaceMebibytes}`,
      fileURLToPath(new URL(import.meta.url.endsWith(".ts") ? "../../main.ts" : "../../main.js", import.meta.url)),
      "serve",
      // The title is visible in `ps`, but not to clients of the container.
      `--id=${spec.title}`,
      `--end-without-pings-secs=${options.instanceGraceSecs}`,
      `--sagemaker-socket=${socketPath}`,
      `--ml-root=${mlRoot}`,
      `--container-kind=${runtime satisfies ServedContainerKind}`,
      `--memory-budget-bytes=${spec.modelMemoryBytes}`,
      `--python-instances-on-demand=${spec.concurrencyMax ?? 0}`,
      `--request-memory-bytes=${containerRequestBytes(spec.modelMemoryBytes, options.requestBytesMax)}`,
      `--data=${options.directories.root}`,
      ...options.workerArguments,
      ...(port === null ? [] : [`--worker-connect=${port}`]),
    ],
    env: platformContainerEnvironment(options.environment, spec.environment),
  };
}
