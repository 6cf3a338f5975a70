import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../../base/index.ts";
import type {
  HostedInstance,
  InstanceAddress,
  InstanceEnd,
  InstanceSpec,
  InstanceUsage,
  ModelHost,
} from "../../hosting/index.ts";
import { adoptOrphans, endRemains, spawnProcess, type SpawnedProcess } from "../../processes/index.ts";
import { processorNs, processTreeUsage } from "./process-usage.ts";

export interface ContainerCommand {
  readonly command: string;
  readonly args: readonly string[];
  /** The whole environment; the instance's own variables are to be part of it. */
  readonly env: Readonly<Record<string, string>>;
}

export interface ProcessHostOptions {
  /** What to start so that the container contract is answered on `socketPath`. */
  readonly commandFor: (spec: InstanceSpec, socketPath: string) => ContainerCommand;
  /** Made when absent; its path has to be short: a Unix socket's name has 107 bytes. */
  readonly socketsDirectory: string;
  readonly clock: Clock;
}

const socketPathBytesMax = 107;

/** Instances as child processes of this one, each with a Unix socket. They die with this process, however it dies. */
export class ProcessHost implements ModelHost {
  readonly #options: ProcessHostOptions;
  readonly #running = new Set<ProcessInstance>();

  constructor(options: ProcessHostOptions) {
    this.#options = options;
    adoptOrphans();
  }

  async start(spec: InstanceSpec, signal: AbortSignal): Promise<HostedInstance> {
    const { socketsDirectory, clock, commandFor } = this.#options;
    const socketPath = join(socketsDirectory, `${spec.instanceId}.sock`);
    if (Buffer.byteLength(socketPath) > socketPathBytesMax) {
      throw new Error(
        `the socket path ${socketPath} is longer than ${socketPathBytesMax} bytes; choose a shorter directory`,
      );
    }
    await mkdir(socketsDirectory, { recursive: true, mode: 0o700 });
    // A socket file outlives its process, and a bind to an existing name fails.
    await rm(socketPath, { force: true });
    signal.throwIfAborted();
    const { command, args, env } = commandFor(spec, socketPath);
    const child = await spawnProcess({
      command,
      args,
      env,
      cwd: spec.mlRoot,
      extraFds: [],
      onLine: (line) => spec.output(line),
      onExit: () => {},
      clock,
    });
    const instance = new ProcessInstance(child, socketPath);
    this.#running.add(instance);
    void instance.ended.then(() => this.#running.delete(instance));
    return instance;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#running].map((instance) => instance.stop(0)));
  }
}

class ProcessInstance implements HostedInstance {
  readonly address: InstanceAddress;
  readonly ended: Promise<InstanceEnd>;
  readonly #child: SpawnedProcess;
  #isEnded = false;

  constructor(child: SpawnedProcess, socketPath: string) {
    this.#child = child;
    this.address = { kind: "socket", path: socketPath };
    this.ended = child.ended.then(async (end) => {
      this.#isEnded = true;
      await rm(socketPath, { force: true });
      // What its models had started in sessions of their own is this process's now; what a living one's have started is its own.
      await endRemains(({ family }) => family !== null);
      return { ...end, lastLines: child.outputTail() };
    });
  }

  lastLines(): readonly string[] {
    return this.#child.outputTail();
  }

  async usage(): Promise<InstanceUsage | null> {
    return this.#isEnded ? null : await processTreeUsage(this.#child.pid);
  }

  async workedNs(): Promise<number | null> {
    return this.#isEnded ? null : await processorNs(this.#child.pid);
  }

  async stop(graceMs: number): Promise<void> {
    if (!this.#isEnded) await this.#child.stop(graceMs);
    await this.ended;
  }
}
