import { fileURLToPath } from "node:url";
import type { Clock, Logger } from "@galatea/base";
import type { GpuReading } from "../native/index.ts";
import { readNowSignal } from "./read-gpus.ts";
import {
  backoffMs,
  defaultOutputLimits,
  describeEnd,
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
  /** Of the process that asks the driver. */
  readonly env: Readonly<Record<string, string>>;
  /** Its program and what that is told behind the interval; a twin's in tests. */
  readonly program?: readonly [path: string, ...args: string[]];
  readonly restart?: { readonly firstMs: number; readonly maxMs: number };
  /** How long it may say nothing before it is ended. */
  readonly silentMsMax?: number;
}

/** A driver's first answer may take as long: it wakes the GPUs up. */
const silentMsDefault = 30_000;
const restartDefault = { firstMs: 1000, maxMs: 60_000 };
/** Readings that so many intervals have gone by since are of the past. */
const staleIntervals = 3;
const staleMsMin = 2000;
/** How long the end waits for a process that was killed: one that the driver holds ends when the driver lets it. */
const endMsMax = 500;

/**
 * Keeps a process that reads the GPUs, and what it said last. One that dies, or says nothing for too long, is ended and begun again, with
 * longer and longer waits; a second one never runs beside the first. What is wrong is logged once, and once more when it is over.
 */
export class GpuWatch implements AsyncDisposable {
  readonly #options: GpuWatchOptions;
  #readings: readonly GpuReading[] = [];
  #readAtNs = 0;
  /** Joules at the first reading of each GPU. */
  readonly #energyAtStart = new Map<string, number>();
  #child: SpawnedProcess | null = null;
  #timer: Disposable | null = null;
  #failureCount = 0;
  #saidMessage: string | null = null;
  #isClosed = false;
  #begun: Promise<void> = Promise.resolve();
  /** Told of the next reading; null: there is none, the GPUs cannot be read. */
  readonly #waiting = new Set<(readings: readonly GpuReading[] | null) => void>();

  constructor(options: GpuWatchOptions) {
    this.#options = options;
    this.#begin();
  }

  /** What the GPUs said last; nothing where that is too long ago, or nothing was said. */
  readings(): readonly GpuReading[] {
    const { clock, intervalMs } = this.#options;
    const staleMs = Math.max(staleMsMin, staleIntervals * intervalMs);
    return this.#readAtNs === 0 || clock.monotonicNs() - this.#readAtNs > staleMs * 1e6 ? [] : this.#readings;
  }

  /** What the GPUs say now, asked after this call; what they said last where they do not answer within `msMax`, or cannot be read. */
  async readNow(msMax: number): Promise<readonly GpuReading[]> {
    const late = Promise.withResolvers<null>();
    using _late = this.#options.clock.timer(msMax, () => late.resolve(null));
    // What is said first may have been read before.
    for (let said = 0; said < 2; said += 1) {
      if (this.#readAtNs > 0) this.#child?.signal(readNowSignal);
      if ((await Promise.race([this.#next(), late.promise])) === null) break;
    }
    return this.readings();
  }

  /** The first reading; none where `msMax` goes by or the GPUs cannot be read. */
  async firstReading(msMax: number): Promise<readonly GpuReading[]> {
    const late = Promise.withResolvers<null>();
    using _late = this.#options.clock.timer(msMax, () => late.resolve(null));
    if (this.#readings.length > 0) return this.#readings;
    return (await Promise.race([this.#next(), late.promise])) ?? [];
  }

  async #next(): Promise<readonly GpuReading[] | null> {
    const { promise, resolve } = Promise.withResolvers<readonly GpuReading[] | null>();
    if (this.#isClosed || this.#saidMessage !== null) return null;
    this.#waiting.add(resolve);
    return await promise.finally(() => this.#waiting.delete(resolve));
  }

  #tell(readings: readonly GpuReading[] | null): void {
    for (const resolve of this.#waiting) resolve(readings);
  }

  /** Joules that the GPU has used since its first reading. */
  energySinceStart({ uuid, energyJoules }: GpuReading): number | null {
    const first = this.#energyAtStart.get(uuid);
    return energyJoules === null || first === undefined ? null : Math.max(0, energyJoules - first);
  }

  /** The process that asks the driver; null where none runs. */
  get pid(): number | null {
    return this.#child?.pid ?? null;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    await this.#begun;
    this.#timer?.[Symbol.dispose]();
    const child = this.#child;
    if (child === null) return;
    const late = Promise.withResolvers<void>();
    using _late = this.#options.clock.timer(endMsMax, late.resolve);
    await Promise.race([child[Symbol.asyncDispose](), late.promise]);
  }

  #begin(): void {
    this.#begun = this.#start().catch((error: unknown) => this.#ended((error as Error).message));
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
      onExit: (end) => this.#ended(failure ?? `its process has ended: ${describeEnd(end)}`),
      clock,
    });
    this.#child = child;
    this.#await();
  }

  #read(readings: readonly GpuReading[]): void {
    this.#readings = readings;
    this.#readAtNs = this.#options.clock.monotonicNs();
    for (const { uuid, energyJoules } of readings)
      if (energyJoules !== null && !this.#energyAtStart.has(uuid)) this.#energyAtStart.set(uuid, energyJoules);
    this.#failureCount = 0;
    if (this.#saidMessage !== null) this.#options.log.info("the GPUs are read again");
    this.#saidMessage = null;
    this.#await();
    this.#tell(readings);
  }

  /** From now on the process may be silent for so long. */
  #await(): void {
    if (this.#isClosed || this.#child === null) return;
    this.#timer?.[Symbol.dispose]();
    const silentMs = (this.#options.silentMsMax ?? silentMsDefault) + this.#options.intervalMs;
    this.#timer = this.#options.clock.timer(silentMs, () => {
      this.#say(`the driver has not answered for ${silentMs} ms`);
      this.#child?.signal("SIGKILL");
    });
  }

  #ended(message: string): void {
    this.#child = null;
    this.#readings = [];
    this.#readAtNs = 0;
    this.#tell(null);
    this.#timer?.[Symbol.dispose]();
    if (this.#isClosed) return;
    this.#say(message);
    this.#failureCount += 1;
    const { clock, random, restart = restartDefault } = this.#options;
    this.#timer = clock.timer(backoffMs(this.#failureCount, { ...restart, factor: 2, random }), () => this.#begin());
  }

  #say(message: string): void {
    this.#tell(null);
    if (this.#saidMessage !== null) return;
    this.#saidMessage = message;
    this.#options.log.warning(`the GPUs cannot be read, and their metrics are absent until they can: ${message}`);
  }
}

function ownProgram(): string {
  const extension = import.meta.url.endsWith(".ts") ? "ts" : "js";
  return fileURLToPath(new URL(`./gpu-worker.${extension}`, import.meta.url));
}
