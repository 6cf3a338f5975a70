import { delay, openDeadline, type Clock, type Logger } from "@galatea/base";
import type { ContainerEnd, HostedContainer, InstanceAddress, InstanceUsage } from "../instances/index.ts";
import { readDiskUsage, type ImageSlot } from "../process-host/index.ts";
import { EngineError, EngineUnavailable, type EngineClient } from "./engine-client.ts";
import type { ContainerLog } from "./container-log.ts";

/** The state of a container as the engine's inspect request returns it. */
export interface EngineState {
  readonly Running: boolean;
  readonly ExitCode: number;
  readonly OOMKilled: boolean;
}

export interface EngineContainerOptions {
  readonly client: EngineClient;
  readonly id: string;
  readonly address: InstanceAddress;
  readonly slot: ImageSlot;
  readonly log: ContainerLog;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * Delay in milliseconds between retries while the engine does not respond, for example because it restarts. With
 * Docker's `live-restore`, containers keep running meanwhile.
 */
const againMs = 1000;
/** Time limit in milliseconds for reading the last log messages of a container that has exited. */
const lastMessagesMsMax = 5000;
/**
 * Time limit in milliseconds for retries of `stop` while the engine does not respond. The next run of the platform then
 * removes the container.
 */
const unavailableMsMax = 10_000;

/** A container that the engine runs. It is removed from the engine after it has exited. */
export class EngineContainer implements HostedContainer {
  readonly id: string;
  readonly address: InstanceAddress;
  readonly ended: Promise<ContainerEnd>;
  readonly #options: EngineContainerOptions;
  readonly #released = new AbortController();
  #isEnded = false;

  constructor(options: EngineContainerOptions) {
    this.#options = options;
    this.id = options.id;
    this.address = options.address;
    this.ended = this.#watch();
  }

  lastLines(): readonly string[] {
    return this.#options.log.tail;
  }

  async usage(): Promise<InstanceUsage | null> {
    const stats = await this.#stats();
    if (stats === null) return null;
    return { ...stats, diskShare: await readDiskUsage(this.#options.slot.directory), gpus: null };
  }

  async workedNs(): Promise<number | null> {
    return (await this.#stats())?.cpuNs ?? null;
  }

  /**
   * Stops the container. On a detached host, only stops watching it: the container keeps running, and `ended` stays
   * pending.
   */
  async stop(graceMs: number): Promise<void> {
    const { slot, logger, clock } = this.#options;
    if (slot.isDetached()) return this.#released.abort();
    try {
      await this.#kill("SIGTERM");
      using grace = openDeadline({ clock, afterMs: graceMs, signal: null });
      const late = new Promise((resolve) => grace.signal.addEventListener("abort", resolve, { once: true }));
      await Promise.race([this.ended, late]);
      if (!this.#isEnded) await this.#kill("SIGKILL");
    } catch (error) {
      const text = "a container may still run: the next start of the platform removes it";
      logger.error(text, { container: this.id, title: slot.spec.title, error: String(error) });
      return this.#released.abort();
    }
    await this.ended;
  }

  async #watch(): Promise<ContainerEnd> {
    const { log, clock } = this.#options;
    const { signal } = this.#released;
    try {
      using reading = openReading(signal);
      const read = this.#readLog(reading.signal);
      const state = await this.#exited(signal);
      using _limit = clock.timer(lastMessagesMsMax, () => reading.abort());
      await read;
      log.end();
      await this.#remove(signal);
      this.#isEnded = true;
      return { ...endOf(state), lastLines: log.tail };
    } catch (error) {
      if (!signal.aborted) throw error;
      return await new Promise(() => {});
    }
  }

  /** Resolves when the container has exited and its log has been read, or when the signal aborts. */
  async #readLog(signal: AbortSignal): Promise<void> {
    const { client, log, clock, logger } = this.#options;
    let isWarned = false;
    while (!signal.aborted) {
      try {
        await log.follow(signal);
        const { State } = await client.call<{ State: EngineState }>({
          method: "GET",
          path: `${this.#path}/json`,
          signal,
        });
        if (!State.Running) return;
      } catch (error) {
        if (signal.aborted || isAbsent(error)) return;
        if (!isWarned)
          logger.warning("the log of a container cannot be read", { container: this.id, error: String(error) });
        isWarned = true;
      }
      await delay(clock, againMs, signal).catch(() => {});
    }
  }

  /**
   * Resolves with the container's state after it has exited, or with null if another program has removed it. Rejects
   * when the signal aborts.
   */
  async #exited(signal: AbortSignal): Promise<EngineState | null> {
    const { client, clock, logger } = this.#options;
    let isWarned = false;
    for (;;) {
      try {
        await client.call({ method: "POST", path: `${this.#path}/wait`, signal, answerMsMax: null });
        const { State } = await client.call<{ State: EngineState }>({
          method: "GET",
          path: `${this.#path}/json`,
          signal,
        });
        if (!State.Running) return State;
      } catch (error) {
        signal.throwIfAborted();
        if (isAbsent(error)) return null;
        const text = "the end of a container cannot be awaited";
        if (!isWarned) logger.warning(text, { container: this.id, error: String(error) });
        isWarned = true;
      }
      await delay(clock, againMs, signal);
    }
  }

  async #remove(signal: AbortSignal): Promise<void> {
    try {
      await this.#options.client.call({ method: "DELETE", path: `${this.#path}?force=true&v=true`, signal });
    } catch (error) {
      signal.throwIfAborted();
      if (!isAbsent(error)) {
        const text = "a container that has ended is not removed: the next start of it, or of the platform, removes it";
        this.#options.logger.warning(text, { container: this.id, error: String(error) });
      }
    }
  }

  /**
   * Sends a signal to the container; does nothing if the container has exited. Rejects with EngineUnavailable if the
   * engine does not respond within `unavailableMsMax`.
   */
  async #kill(name: "SIGTERM" | "SIGKILL"): Promise<void> {
    const { client, clock } = this.#options;
    const sinceMs = clock.epochMs();
    while (!this.#isEnded) {
      try {
        await client.call({ method: "POST", path: `${this.#path}/kill?signal=${name}` });
        return;
      } catch (error) {
        if (error instanceof EngineError && hasEndedStatuses.has(error.status)) return;
        if (!(error instanceof EngineUnavailable) || clock.epochMs() - sinceMs > unavailableMsMax) throw error;
        await delay(clock, againMs, null);
      }
    }
  }

  /** Resolves with null if the container has exited or the engine does not respond. */
  async #stats(): Promise<Pick<InstanceUsage, "cpuNs" | "memoryBytes"> | null> {
    if (this.#isEnded) return null;
    try {
      const path = `${this.#path}/stats?stream=false&one-shot=true`;
      return usageOf(await this.#options.client.call<EngineStats>({ method: "GET", path, answerMsMax: statsMsMax }));
    } catch (error) {
      if (error instanceof EngineError || error instanceof EngineUnavailable) return null;
      throw error;
    }
  }

  get #path(): string {
    return `/containers/${this.id}`;
  }
}

const statsMsMax = 5000;
/** Statuses of a kill request for a container that was removed (404) or is not running (409). */
const hasEndedStatuses: ReadonlySet<number> = new Set([404, 409]);

const isAbsent = (error: unknown) => error instanceof EngineError && error.status === 404;

/**
 * Returns an abort controller that also aborts when the outer signal does. Disposal removes the listener from the outer
 * signal.
 */
function openReading(outer: AbortSignal) {
  const controller = new AbortController();
  const disconnect = () => controller.abort();
  if (outer.aborted) disconnect();
  else outer.addEventListener("abort", disconnect, { once: true });
  return {
    signal: controller.signal,
    abort: disconnect,
    [Symbol.dispose]: () => outer.removeEventListener("abort", disconnect),
  };
}

const signalNames: Readonly<Record<number, string>> = {
  134: "SIGABRT",
  137: "SIGKILL",
  139: "SIGSEGV",
  143: "SIGTERM",
};

/**
 * Returns how a container ended. If a signal killed it, the engine's exit code is 128 plus the signal number, as in
 * shells.
 */
export function endOf(state: EngineState | null): Omit<ContainerEnd, "lastLines"> {
  if (state === null) return { exitCode: null, signal: null, isOutOfMemory: false };
  const signal = signalNames[state.ExitCode] ?? null;
  return { exitCode: signal === null ? state.ExitCode : null, signal, isOutOfMemory: state.OOMKilled };
}

/**
 * The fields of the engine's statistics that the platform reads. They are missing or zero if the container has exited.
 */
export interface EngineStats {
  readonly cpu_stats?: { readonly cpu_usage?: { readonly total_usage?: number } };
  readonly memory_stats?: { readonly usage?: number; readonly stats?: Readonly<Record<string, number>> };
}

/**
 * Returns the CPU time and the memory of a container, or null if it has exited. The memory excludes file cache that the
 * kernel can reclaim.
 */
export function usageOf({ cpu_stats: cpu = {}, memory_stats: memory = {} }: EngineStats) {
  const cpuNs = cpu.cpu_usage?.total_usage ?? 0;
  const { usage = 0, stats = {} } = memory;
  if (cpuNs === 0 && usage === 0) return null;
  // The first field is from cgroup v1, the second from cgroup v2.
  const droppable = stats["total_inactive_file"] ?? stats["inactive_file"] ?? 0;
  return { cpuNs, memoryBytes: Math.max(0, usage - droppable) };
}
