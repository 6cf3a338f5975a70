import { fileURLToPath } from "node:url";
import type { Clock, Logger } from "@galatea/base";
import type { GpuReading } from "../native/index.ts";
import { readNowSignal } from "./read-gpus.ts";
import {
  backoffMs,
  defaultOutputLimits,
  describeProcessEnd,
  spawnProcess,
  type SpawnedProcess,
} from "@galatea/base/processes";
import type { GpuWorkerArguments } from "./gpu-worker.ts";
import { gpuLineBytesMax, parseGpuLine } from "./gpu-lines.ts";

export interface GpuWatchOptions {
  readonly intervalMs: number;
  readonly clock: Clock;
  readonly log: Logger;
  readonly random: () => number;
  /** Environment of the process that reads the GPUs. */
  readonly env: Readonly<Record<string, string>>;
  /** The program and its arguments, to which the interval is appended. Tests pass a program with a simulated driver. */
  readonly program?: readonly [path: string, ...args: string[]];
  readonly restart?: { readonly firstMs: number; readonly maxMs: number };
  /** Time without output after which the process is killed and restarted. */
  readonly silentMsMax?: number;
}

/** Long, because the driver initializes the GPUs before its first response. */
const silentMsDefault = 30_000;
const restartDefault = { firstMs: 1000, maxMs: 60_000 };
/** Readings older than this number of intervals are stale. */
const staleIntervals = 3;
const staleMsMin = 2000;
/**
 * Maximum wait in milliseconds until a killed process ends. A process that is blocked in the driver ends only when the driver's call
 * returns.
 */
const endMsMax = 500;

/**
 * Runs a process that reads the GPUs, and keeps its last readings. A process that dies, or is silent for too long, is killed and restarted
 * with increasing pauses; two processes never run at once. A failure and the recovery from it are each logged once.
 */
export class GpuWatch implements AsyncDisposable {
  readonly #options: GpuWatchOptions;
  #readings: readonly GpuReading[] = [];
  #readAtNs = 0;
  /** Energy in joules at the first reading, by GPU. */
  readonly #energyAtStart = new Map<string, number>();
  #child: SpawnedProcess | null = null;
  #timer: Disposable | null = null;
  #failureCount = 0;
  #reportedMessage: string | null = null;
  #isClosed = false;
  #started: Promise<void> = Promise.resolve();
  /** Callbacks that wait for the next reading; null means that the GPUs cannot be read. */
  readonly #waiting = new Set<(readings: readonly GpuReading[] | null) => void>();

  constructor(options: GpuWatchOptions) {
    this.#options = options;
    this.#begin();
  }

  /** Returns the last readings; an empty list when they are stale or there are none. */
  readings(): readonly GpuReading[] {
    const { clock, intervalMs } = this.#options;
    const staleMs = Math.max(staleMsMin, staleIntervals * intervalMs);
    return this.#readAtNs === 0 || clock.monotonicNs() - this.#readAtNs > staleMs * 1e6 ? [] : this.#readings;
  }

  /**
   * Returns readings that were taken after this call. Returns the last readings when the GPUs do not respond within `msMax`, or cannot be
   * read.
   */
  async readNow(msMax: number): Promise<readonly GpuReading[]> {
    const late = Promise.withResolvers<null>();
    using _late = this.#options.clock.timer(msMax, () => late.resolve(null));
    // The first line that arrives may have been read before this call; the second one was not.
    for (let said = 0; said < 2; said += 1) {
      if (this.#readAtNs > 0) this.#child?.signal(readNowSignal);
      if ((await Promise.race([this.#next(), late.promise])) === null) break;
    }
    return this.readings();
  }

  /** Waits for the first reading. Returns an empty list after `msMax`, or when the GPUs cannot be read. */
  async firstReading(msMax: number): Promise<readonly GpuReading[]> {
    const late = Promise.withResolvers<null>();
    using _late = this.#options.clock.timer(msMax, () => late.resolve(null));
    if (this.#readings.length > 0) return this.#readings;
    return (await Promise.race([this.#next(), late.promise])) ?? [];
  }

  async #next(): Promise<readonly GpuReading[] | null> {
    const { promise, resolve } = Promise.withResolvers<readonly GpuReading[] | null>();
    if (this.#isClosed || this.#reportedMessage !== null) return null;
    this.#waiting.add(resolve);
    return await promise.finally(() => this.#waiting.delete(resolve));
  }

  #report(readings: readonly GpuReading[] | null): void {
    for (const resolve of this.#waiting) resolve(readings);
  }

  /** Returns the joules that the GPU has used since its first reading. */
  energySinceStart({ uuid, energyJoules }: GpuReading): number | null {
    const first = this.#energyAtStart.get(uuid);
    return energyJoules === null || first === undefined ? null : Math.max(0, energyJoules - first);
  }

  /** The pid of the process that reads the GPUs; null when none runs. */
  get pid(): number | null {
    return this.#child?.pid ?? null;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    await this.#started;
    this.#timer?.[Symbol.dispose]();
    const child = this.#child;
    if (child === null) return;
    const late = Promise.withResolvers<void>();
    using _late = this.#options.clock.timer(endMsMax, late.resolve);
    await Promise.race([child[Symbol.asyncDispose](), late.promise]);
  }

  #begin(): void {
    this.#started = this.#start().catch((error: unknown) => this.#ended((error as Error).message));
  }

  async #start(): Promise<void> {
    const { clock, env, intervalMs, program: [path, ...args] = [ownProgram()] } = this.#options;
    let failure: string | null = null;
    const child = await spawnProcess({
      command: process.execPath,
      args: ["--max-semi-space-size=1", path, ...([String(intervalMs)] satisfies GpuWorkerArguments), ...args],
      env,
      cwd: null,
      extraFds: [],
      outputLimits: { ...defaultOutputLimits, lineBytesMax: gpuLineBytesMax, tailLines: 1 },
      onLine: (line, stream) => {
        const said = stream === "stdout" ? parseGpuLine(line) : null;
        if (said?.kind === "reading") this.#read(said.readings);
        if (said?.kind === "failed") failure = said.message;
      },
      onExit: (end) => this.#ended(failure ?? `its process has ended: ${describeProcessEnd(end)}`),
      clock,
    });
    this.#child = child;
    this.#restartTimeout();
  }

  #read(readings: readonly GpuReading[]): void {
    this.#readings = readings;
    this.#readAtNs = this.#options.clock.monotonicNs();
    for (const { uuid, energyJoules } of readings)
      if (energyJoules !== null && !this.#energyAtStart.has(uuid)) this.#energyAtStart.set(uuid, energyJoules);
    this.#failureCount = 0;
    if (this.#reportedMessage !== null) this.#options.log.info("GPU metrics are available again");
    this.#reportedMessage = null;
    this.#restartTimeout();
    this.#report(readings);
  }

  /** Restarts the timer that limits the process's silence. */
  #restartTimeout(): void {
    if (this.#isClosed || this.#child === null) return;
    this.#timer?.[Symbol.dispose]();
    const silentMs = (this.#options.silentMsMax ?? silentMsDefault) + this.#options.intervalMs;
    this.#timer = this.#options.clock.timer(silentMs, () => {
      this.#reportFailure(`the driver has not responded for ${silentMs} ms`);
      this.#child?.signal("SIGKILL");
    });
  }

  #ended(message: string): void {
    this.#child = null;
    this.#readings = [];
    this.#readAtNs = 0;
    this.#report(null);
    this.#timer?.[Symbol.dispose]();
    if (this.#isClosed) return;
    this.#reportFailure(message);
    this.#failureCount += 1;
    const { clock, random, restart = restartDefault } = this.#options;
    this.#timer = clock.timer(backoffMs(this.#failureCount, { ...restart, factor: 2, random }), () => this.#begin());
  }

  #reportFailure(message: string): void {
    this.#report(null);
    if (this.#reportedMessage !== null) return;
    this.#reportedMessage = message;
    this.#options.log.warning(`GPU metrics are unavailable: ${message}`);
  }
}

function ownProgram(): string {
  const extension = import.meta.url.endsWith(".ts") ? "ts" : "js";
  return fileURLToPath(new URL(`./gpu-worker.${extension}`, import.meta.url));
}
