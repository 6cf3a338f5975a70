import { type Clock, delay, ChangeNotifier, type Logger, rejectOnAbort, TaskGroup } from "@galatea/base";
import { ContainerClient, containerLimits, type ContainerClientLimits } from "./container-client.ts";
import { newProbeState, evaluateProbe, type ProbeResult } from "./health.ts";
import type { ContainerEnd, ContainerSlot, HostedContainer, InstanceUsage } from "./model-host.ts";

export interface InstanceLimits {
  /** Maximum milliseconds from the start of the container to its first status 200 on /ping. */
  readonly startMsMax: number;
  readonly pingIntervalMs: number;
  /** Number of consecutive pings that a container may miss while it uses no CPU time, before it is restarted. */
  readonly missedPingsMax: number;
  /** Maximum milliseconds without a response of a container that uses CPU time. */
  readonly busyMsMax: number;
  readonly restartDelayMsMin: number;
  readonly restartDelayMsMax: number;
  /** Milliseconds in service after which the restart delay starts from its minimum again. */
  readonly settledMs: number;
  readonly stopGraceMs: number;
  /** Idle time after which the instance of a serverless variant is stopped, in milliseconds. */
  readonly idleMsMax: number;
  readonly container: ContainerClientLimits;
}

export const instanceLimits: InstanceLimits = {
  startMsMax: 480_000,
  pingIntervalMs: 10_000,
  missedPingsMax: 3,
  busyMsMax: 600_000,
  restartDelayMsMin: 200,
  restartDelayMsMax: 30_000,
  settledMs: 60_000,
  stopGraceMs: 30_000,
  idleMsMax: 300_000,
  container: containerLimits,
};

/**
 * Intervals between pings of a starting container, in milliseconds. They are short because a small model loads within
 * milliseconds.
 */
const firstPingsIntervalMs = 10;
const laterPingsIntervalMs = 100;

/**
 * A ping that exceeds its time limit by this many milliseconds is attributed to a blocked event loop of the platform.
 */
const lateMsMin = 500;

/** Interval between pings after a connection broke, in milliseconds. */
const unhealthyPingIntervalMs = 20;

/** Number of consecutive failed starts after which requests no longer wait for the next one. */
const failedStartsMax = 3;

export type ContainerState =
  /** A container of a previous run of the platform is searched and adopted. */
  | { readonly at: "adopting" }
  | { readonly at: "starting" }
  | { readonly at: "in-service"; readonly container: HostedContainer; readonly client: ContainerClient }
  | { readonly at: "waiting"; readonly failure: string }
  | { readonly at: "stopped" };

/** The error of a container that failed to start, with the cause and the container's last lines of output. */
export class InstanceFailure extends Error {
  readonly containerName: string;
  readonly lastLines: readonly string[];

  constructor(message: string, of: { readonly containerName: string; readonly lastLines: readonly string[] }) {
    super(message);
    this.name = "InstanceFailure";
    this.containerName = of.containerName;
    this.lastLines = of.lastLines;
  }
}

export interface InstanceContainerOptions {
  /** Id of the container's instance. */
  readonly id: string;
  /** Name of the container in error messages. */
  readonly name: string;
  /** The slot in which the container runs. The caller owns it; it is not used after disposal of this object. */
  readonly slot: Pick<ContainerSlot, "adopt" | "start">;
  readonly limits: InstanceLimits;
  readonly clock: Clock;
  readonly logger: Logger;
  /**
   * Prepares the container's files before its first start; called again until it succeeds. Must leave no files when it
   * rejects.
   */
  readonly prepare: (signal: AbortSignal) => Promise<void>;
  /** Called instead of `prepare` for an adopted container. Reads the models that the container has loaded. */
  readonly takeOver: (client: ContainerClient, signal: AbortSignal) => Promise<void>;
  /** Called when a container in service has ended. The container is then restarted. */
  readonly onLost: () => void;
  /** Called when the state, or the health of the connections, has changed. */
  readonly onChanged: () => void;
}

/**
 * Keeps one container in service: starts it, waits for its health, monitors it, and restarts it with increasing delays.
 * Owns the container and the connections to it.
 */
export class InstanceContainer implements AsyncDisposable {
  readonly #options: InstanceContainerOptions;
  readonly #tasks: TaskGroup;
  readonly #changed = new ChangeNotifier();
  #state: ContainerState = { at: "adopting" };
  #failureCount = 0;
  #failedStartCount = 0;
  #lastFailure = "it has not been started yet";
  #lastLines: readonly string[] = [];
  #isPrepared = false;
  #wasLookedFor = false;

  constructor(options: InstanceContainerOptions) {
    this.#options = options;
    this.#tasks = new TaskGroup((error) => {
      options.logger.error("a container is no longer kept in service", { ...this.#who, error: String(error) });
    });
  }

  get name(): string {
    return this.#options.name;
  }

  get #who(): { readonly instance: string; readonly container: string } {
    return { instance: this.#options.id, container: this.#options.name };
  }

  get state(): ContainerState {
    return this.#state;
  }

  get lastFailure(): string {
    return this.#lastFailure;
  }

  /** Last lines of output of a container that failed to start; empty after other failures. */
  get lastLines(): readonly string[] {
    return this.#lastLines;
  }

  /** True while starts of the container keep failing. Requests then fail immediately instead of waiting for a start. */
  get isFailing(): boolean {
    return this.#failedStartCount >= failedStartsMax;
  }

  /** Client of the running container; null unless the container is in service. */
  get client(): ContainerClient | null {
    return this.#state.at === "in-service" ? this.#state.client : null;
  }

  /**
   * Starts the container. Resolves when it is in service; it is then kept in service until disposal. Rejects with
   * InstanceFailure if this first start fails, after the container has been removed.
   */
  async start(signal: AbortSignal): Promise<void> {
    const started = await this.#startOnce(AbortSignal.any([signal, this.#tasks.signal]));
    this.#tasks.run((closing) => this.#keep(started, closing));
  }

  /** Starts a container that was in service before the platform stopped. Failed starts are retried. */
  resume(): void {
    this.#tasks.run((closing) => this.#keep(null, closing));
  }

  /**
   * Resolves with the client when the container is in service. Rejects with InstanceFailure while starts keep failing.
   */
  async ready(signal: AbortSignal): Promise<ContainerClient> {
    for (;;) {
      if (this.#state.at === "in-service") return this.#state.client;
      if (this.#state.at === "stopped") throw this.#failure("the instance is stopped");
      if (this.isFailing) throw this.#failure(this.#lastFailure);
      await rejectOnAbort(this.#changed.nextChange(), signal);
    }
  }

  /**
   * Resolves with the client of the next container after `client`'s container has ended, for a caller whose connection
   * was refused.
   */
  async successor(client: ContainerClient, signal: AbortSignal): Promise<ContainerClient> {
    while (this.client === client) await rejectOnAbort(this.#changed.nextChange(), signal);
    return await this.ready(signal);
  }

  /**
   * Resolves with the client of a healthy container. After a connection broke, waits until the container responds to a
   * ping. Otherwise, a request could be queued at the socket of a terminating container and get lost.
   */
  async healthyClient(signal: AbortSignal): Promise<ContainerClient> {
    for (;;) {
      const client = await this.ready(signal);
      if (client.isUnhealthy) await client.ping(signal);
      if (!client.isUnhealthy) return client;
      await delay(this.#options.clock, unhealthyPingIntervalMs, signal);
    }
  }

  async usage(): Promise<InstanceUsage | null> {
    return this.#state.at === "in-service" ? await this.#state.container.usage() : null;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#tasks[Symbol.asyncDispose]();
    this.#move({ at: "stopped" });
  }

  async #keep(running: Started | null, closing: AbortSignal): Promise<void> {
    const { clock, logger } = this.#options;
    let started = running;
    while (!closing.aborted) {
      try {
        started ??= await this.#startOnce(closing);
        const sinceMs = clock.epochMs();
        const reason = await this.#watch(started, closing);
        started = null;
        if (clock.epochMs() - sinceMs >= this.#options.limits.settledMs) this.#failureCount = 0;
        if (closing.aborted) break;
        logger.warning("a container ended and is restarted", { ...this.#who, reason });
        this.#move({ at: "waiting", failure: reason });
      } catch (error) {
        if (closing.aborted) break;
        this.#failedStartCount += 1;
        this.#lastLines = error instanceof InstanceFailure ? error.lastLines : [];
        logger.warning("a container did not start", { ...this.#who, error: String(error) });
        this.#move({ at: "waiting", failure: error instanceof Error ? error.message : String(error) });
      }
      started = null;
      this.#failureCount += 1;
      await delay(clock, this.#restartDelayMs(), closing).catch(() => {});
    }
    if (started !== null) await this.#stop(started);
  }

  #restartDelayMs(): number {
    const { restartDelayMsMin, restartDelayMsMax } = this.#options.limits;
    return Math.min(restartDelayMsMax, restartDelayMsMin * 2 ** Math.min(this.#failureCount - 1, 20));
  }

  async #startOnce(signal: AbortSignal): Promise<Started> {
    const started = (await this.#adopted(signal)) ?? (await this.#fresh(signal));
    this.#failedStartCount = 0;
    this.#move({ at: "in-service", ...started });
    return started;
  }

  /**
   * Adopts the container of a previous run of the platform. Resolves with null if there is none. A container that
   * cannot be adopted is stopped, and null is returned.
   */
  async #adopted(signal: AbortSignal): Promise<Started | null> {
    if (this.#wasLookedFor) return null;
    this.#wasLookedFor = true;
    const { slot, takeOver, logger } = this.#options;
    const container = await slot.adopt(signal);
    if (container === null) return null;
    const started = this.#connected(container);
    try {
      await this.#healthy(started, signal);
      await takeOver(started.client, signal);
    } catch (error) {
      await this.#stop(started);
      signal.throwIfAborted();
      logger.warning("a container could not be adopted", { ...this.#who, error: String(error) });
      return null;
    }
    this.#isPrepared = true;
    return started;
  }

  async #fresh(signal: AbortSignal): Promise<Started> {
    this.#move({ at: "starting" });
    if (!this.#isPrepared) await this.#options.prepare(signal);
    this.#isPrepared = true;
    const started = this.#connected(await this.#options.slot.start(signal));
    try {
      await this.#healthy(started, signal);
    } catch (error) {
      await this.#stop(started);
      throw error;
    }
    return started;
  }

  #connected(container: HostedContainer): Started {
    const { limits, clock, onChanged } = this.#options;
    return { container, client: new ContainerClient(container.address, limits.container, { clock, onChanged }) };
  }

  /**
   * Resolves when the container responds to a ping with status 200. Rejects with InstanceFailure if it exits or exceeds
   * the start limit.
   */
  async #healthy({ container, client }: Started, signal: AbortSignal): Promise<void> {
    const { limits, clock } = this.#options;
    let end: ContainerEnd | null = null;
    void container.ended.then((ended) => (end = ended));
    const sinceMs = clock.epochMs();
    while (!(await client.ping(signal))) {
      const waitedMs = clock.epochMs() - sinceMs;
      if (end !== null) throw this.#failure(`the container ${endText(end)}`, (end as ContainerEnd).lastLines);
      if (waitedMs > limits.startMsMax) {
        const text =
          `no healthy /ping within ${limits.startMsMax / 1000} s; where its model takes longer to load, ` +
          "raise the variant's ContainerStartupHealthCheckTimeoutInSeconds";
        throw this.#failure(text, container.lastLines());
      }
      await delay(clock, waitedMs < 3000 ? firstPingsIntervalMs : laterPingsIntervalMs, signal);
    }
  }

  /**
   * Monitors a container. Resolves with the reason after the container has ended or was stopped for failed health
   * checks.
   */
  async #watch(started: Started, closing: AbortSignal): Promise<string> {
    const { limits, clock } = this.#options;
    const ended = started.container.ended.then(endText);
    let health = newProbeState(clock.epochMs());
    let responseCount = started.client.answerCount;
    try {
      for (;;) {
        const tick = delay(clock, limits.pingIntervalMs, closing).then(() => null);
        const reason = await Promise.race([ended, tick]);
        if (reason !== null) {
          await this.#stop(started);
          return reason;
        }
        const look = await this.#look(started, responseCount, closing);
        responseCount = started.client.answerCount;
        const judged = evaluateProbe(health, look, limits);
        if (typeof judged === "string") {
          // A hung container would ignore SIGTERM: it is killed without a grace period.
          await this.#stop(started, 0);
          return judged;
        }
        health = judged;
      }
    } catch (error) {
      if (!closing.aborted) throw error;
      await this.#stop(started);
      return "stopped";
    }
  }

  async #look({ client, container }: Started, responseCount: number, closing: AbortSignal): Promise<ProbeResult> {
    const { limits, clock } = this.#options;
    const askedNs = clock.monotonicNs();
    const isHealthy = await client.ping(closing);
    const isLate = (clock.monotonicNs() - askedNs) / 1e6 > limits.container.pingMsMax + lateMsMin;
    const hasResponse = isHealthy || client.answerCount > responseCount;
    return { atMs: clock.epochMs(), isAnswered: hasResponse, isLate, workedNs: await container.workedNs() };
  }

  async #stop(started: Started, graceMs = this.#options.limits.stopGraceMs): Promise<void> {
    const wasInService = this.#state.at === "in-service";
    this.#move({ at: "waiting", failure: "stopping" });
    if (wasInService) this.#options.onLost();
    await started.client[Symbol.asyncDispose]();
    await started.container.stop(graceMs);
  }

  #failure(message: string, lastLines: readonly string[] = []): InstanceFailure {
    return new InstanceFailure(message, { containerName: this.#options.name, lastLines });
  }

  #move(state: ContainerState): void {
    this.#state = state;
    if (state.at === "waiting") this.#lastFailure = state.failure;
    this.#options.onChanged();
    this.#changed.notify();
  }
}

interface Started {
  readonly container: HostedContainer;
  readonly client: ContainerClient;
}

function endText({ exitCode, signal, isOutOfMemory }: ContainerEnd): string {
  if (signal !== null) {
    const why = signal === "SIGKILL" && isOutOfMemory ? ": the kernel killed it for lack of memory" : "";
    return `was ended by ${signal}${why}`;
  }
  if (exitCode === null) return "ended";
  return `exited with code ${exitCode}${isOutOfMemory ? " after the kernel had killed a process for lack of memory" : ""}`;
}
