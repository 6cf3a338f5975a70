import { InferenceError, unreachable, type Clock, type Logger } from "@galatea/base";
import type { InstanceState, InstanceSupervision } from "../../inference/index.ts";
import { backoffMs } from "@galatea/base/processes";
import { nextWorkerState, type WorkerEvent, type WorkerState } from "./worker-state.ts";

/** The interface of a worker process for its supervisor. */
export interface WorkerProcess {
  /** False once the process was reaped, which happens shortly before `ended` resolves. */
  readonly alive: boolean;
  /** Resolves with the reason why the process ended. */
  readonly ended: Promise<string>;
  kill(reason: string): void;
  finalize(graceMs: number): Promise<void>;
}

export interface SupervisedWorkerOptions<Worker extends WorkerProcess> {
  /** Name of the instance, for messages. */
  readonly name: string;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly random: () => number;
  /** Starts and initializes a worker. */
  readonly start: (signal: AbortSignal) => Promise<Worker>;
  /** Called when a worker is running. */
  readonly onUp: (worker: Worker) => void;
  /** Called when a worker has ended. `state` already shows whether another one is started. */
  readonly onEnd: (worker: Worker, reason: string) => void;
  /** Called with the reason when there is no worker, and with null when there is a worker again. */
  readonly onHealth: (reason: string | null) => void;
}

/** Time in milliseconds after which the end of a worker does not count as a failed start. */
const soundAfterMs = 10_000;
/** Pause in milliseconds after a failed start of a dormant instance, for example because of too little memory. */
const dormantRestMs = 10_000;
const restarts = { firstMs: 100, maxMs: 30_000, factor: 2 };

/** Keeps one worker process running until `close`: starts another one when it ends. */
export class SupervisedWorker<Worker extends WorkerProcess> implements InstanceSupervision {
  readonly #options: SupervisedWorkerOptions<Worker>;
  readonly #closing = new AbortController();
  #current: WorkerState<Worker>;
  /** Timer that fires when the running worker no longer counts as just started, or at the next start. */
  #timer: Disposable | null = null;
  /** Resolves when the last start has succeeded or failed. */
  #started: Promise<void> = Promise.resolve();
  /** Resolved at the next change of the state. */
  #change: PromiseWithResolvers<void> | null = null;
  /** The latest worker; null before the first one. */
  #latest: Worker | null = null;

  /** `worker` is null for a dormant instance, whose worker is started on demand. */
  constructor(options: SupervisedWorkerOptions<Worker>, worker: Worker | null) {
    this.#options = options;
    this.#current = worker === null ? { at: "dormant", isResting: false } : { at: "up", worker, failureCount: 0 };
    if (worker !== null) this.#attend(worker);
  }

  /** The running worker; null when there is none. */
  get up(): Worker | null {
    return this.#current.at === "up" && this.#current.worker.alive ? this.#current.worker : null;
  }

  get state(): InstanceState {
    const current = this.#current;
    switch (current.at) {
      case "dormant":
        return "dormant";
      case "up":
        return current.worker.alive ? "up" : "restarting";
      case "starting":
        return "restarting";
      case "down":
        return current.startFailed ? "failed" : "restarting";
      case "closed":
        return "failed";
      default:
        return unreachable(current);
    }
  }

  changed(): Promise<void> {
    this.#change ??= Promise.withResolvers<void>();
    return this.#change.promise;
  }

  needed(): void {
    this.#on({ is: "needed" });
  }

  /** Resolves with the worker, or with the reason why there is none. Waits for a restart, unless the last start failed. */
  async coming(): Promise<Worker | string> {
    while (this.state === "restarting") await this.changed();
    const current = this.#current;
    if (current.at === "up") return current.worker;
    return current.at === "down" ? current.reason : `Stub process '${this.#options.name}' is not healthy.`;
  }

  /** Records that the worker has executed something. Its end then does not count as a failed start. */
  proven(): void {
    if (this.#current.at === "up" && this.#current.failureCount > 0) this.#on({ is: "sound" });
  }

  /** Kills the worker, even during an execution, and starts no other one. */
  abandon(reason: string): void {
    this.#closing.abort(new Error(reason));
    this.#on({ is: "closed" });
    this.#latest?.kill(reason);
  }

  /** Ends the worker after its `finalize`. Resolves when no process is left. */
  async close(finalizeMs: number): Promise<void> {
    const current = this.#current;
    this.#closing.abort(new Error("the model is unloaded"));
    this.#on({ is: "closed" });
    if (current.at === "up") await current.worker.finalize(finalizeMs);
    await this.#started;
    await this.#latest?.ended;
  }

  #on(event: WorkerEvent<Worker>): void {
    const next = nextWorkerState(this.#current, event);
    if (next !== this.#current) this.#applyEvent(next);
  }

  #applyEvent(next: WorkerState<Worker>): void {
    const { clock, random, onHealth } = this.#options;
    const { at: before } = this.#current;
    this.#timer?.[Symbol.dispose]();
    this.#timer = null;
    this.#current = next;
    this.#change?.resolve();
    this.#change = null;
    switch (next.at) {
      case "dormant":
        if (next.isResting) this.#timer = clock.timer(dormantRestMs, () => this.#on({ is: "wait over" }));
        return;
      case "up":
        if (next.failureCount > 0) this.#timer = clock.timer(soundAfterMs, () => this.#on({ is: "sound" }));
        if (before === "up") return;
        this.#attend(next.worker);
        return onHealth(null);
      case "starting":
        this.#started = this.#start();
        return;
      case "down": {
        const waitMs = backoffMs(next.failureCount, { ...restarts, random });
        this.#timer = clock.timer(waitMs, () => this.#on({ is: "wait over" }));
        return;
      }
      case "closed":
        return;
      default:
        unreachable(next);
    }
  }

  #attend(worker: Worker): void {
    this.#latest = worker;
    this.#options.onUp(worker);
    void worker.ended.then((reason) => {
      this.#options.onEnd(worker, reason);
      if (this.#current.at === "closed") return;
      this.#options.logger.error(reason, { instance: this.#options.name });
      this.#options.onHealth(reason);
      this.#on({ is: "ended", worker, reason });
    });
  }

  async #start(): Promise<void> {
    const { name, logger, start } = this.#options;
    let worker: Worker;
    try {
      worker = await start(this.#closing.signal);
    } catch (error) {
      if (this.#current.at === "closed") return;
      const { message, reason } = InferenceError.from(error);
      const isFirst = this.#current.at === "starting" && this.#current.isFirst;
      if (isFirst && reason === "out-of-memory") logger.verbose(`not started: ${message}`, { instance: name });
      else logger.error(`${isFirst ? "start" : "restart"} failed: ${message}`, { instance: name });
      this.#on({ is: "start failed", reason: `Stub process '${name}' is not healthy. (restart failed: ${message})` });
      return;
    }
    if (this.#current.at === "closed") await worker.finalize(0);
    else this.#on({ is: "started", worker });
  }
}
