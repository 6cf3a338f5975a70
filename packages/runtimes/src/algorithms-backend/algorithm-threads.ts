import type { AlgorithmResponse, AlgorithmRequest } from "../algorithms/index.ts";
import { assert, type Clock, InferenceError } from "@galatea/base";
import type { AlgorithmSource } from "./algorithm-models.ts";
import { AlgorithmThread } from "./algorithm-thread.ts";
import type { AlgorithmReply } from "./algorithm-worker.ts";
import { chooseThread, type ThreadCounts, type ThreadState } from "./choose-thread.ts";

export interface AlgorithmThreadsOptions extends ThreadCounts {
  /** Time limit, in milliseconds, of loading a model and of handling one request. A thread that exceeds it is terminated. */
  readonly commandMsMax: number;
  /** Duration of a command, in milliseconds, after which other models of its thread are loaded in another thread. */
  readonly slowAfterMs: number;
  readonly clock: Clock;
}

/** A model that is loaded in one of the threads. Disposal unloads the model. */
export interface LoadedAlgorithm extends AsyncDisposable {
  readonly memoryBytes: number;
  /**
   * Handles one request at a time; transfers the bytes of the request, which detaches the caller's buffer. Rejects with InferenceError if
   * the thread does not respond.
   */
  invoke(request: AlgorithmRequest): Promise<AlgorithmResponse>;
}

interface PooledThread {
  readonly thread: AlgorithmThread;
  readonly models: Set<number>;
  state: ThreadState["state"];
  /** Timer that marks a busy thread as slow; null in other states. */
  slowTimer: Disposable | null;
}

interface PlacedModel {
  readonly model: number;
  readonly source: AlgorithmSource;
  home: PooledThread | null;
}

interface WaitingCall {
  readonly placed: PlacedModel;
  readonly assign: (pooled: PooledThread) => void;
  readonly reject: (error: InferenceError) => void;
}

/**
 * A pool of a few threads for many models of algorithms. Each model is loaded in one thread, and each thread runs one command at a time. A
 * slow command does not block the other models of its thread: they are loaded in another thread. If a thread is terminated, its models are
 * loaded again at their next request.
 */
export class AlgorithmThreads implements AsyncDisposable {
  readonly #options: AlgorithmThreadsOptions;
  #threads: PooledThread[] = [];
  /** Calls that wait for a thread, in order of arrival; at most one for each model. */
  readonly #waiting = new Set<WaitingCall>();
  #nextModel = 1;
  #isClosed = false;

  constructor(options: AlgorithmThreadsOptions) {
    this.#options = options;
  }

  get threadCount(): number {
    return this.#threads.length;
  }

  /** Loads a model. Rejects with InferenceError for invalid files, and with the reason of an aborted signal. */
  async load(source: AlgorithmSource, signal: AbortSignal): Promise<LoadedAlgorithm> {
    const placed: PlacedModel = { model: this.#nextModel++, source, home: null };
    signal.throwIfAborted();
    const memoryBytes = await this.#withThread(placed, (pooled) => this.#loadIn(pooled, placed));
    return {
      memoryBytes,
      invoke: (request) =>
        this.#withThread(placed, async (pooled) => {
          if (placed.home !== pooled) await this.#loadIn(pooled, placed);
          const transfer = [request.bytes.buffer as ArrayBuffer];
          const command = { kind: "invoke", model: placed.model, request } as const;
          const reply = await pooled.thread.command(command, { ...this.#options, transfer });
          if (reply.outcome !== "responded") throw unexpected(reply);
          return reply.response;
        }),
      [Symbol.asyncDispose]: () => {
        this.#unload(placed);
        return Promise.resolve();
      },
    };
  }

  /** Loads the model in this thread, unloads it from its previous thread, and returns its estimated memory in bytes. */
  async #loadIn(pooled: PooledThread, placed: PlacedModel): Promise<number> {
    const { model, source } = placed;
    const reply = await pooled.thread.command({ kind: "load", model, source }, { ...this.#options, transfer: [] });
    if (reply.outcome !== "loaded") throw unexpected(reply);
    this.#unload(placed);
    placed.home = pooled;
    pooled.models.add(model);
    return reply.memoryBytes;
  }

  #unload(placed: PlacedModel): void {
    placed.home?.thread.forget(placed.model);
    placed.home?.models.delete(placed.model);
    placed.home = null;
  }

  /** Runs the work with exclusive use of a thread. */
  async #withThread<Result>(placed: PlacedModel, work: (pooled: PooledThread) => Promise<Result>): Promise<Result> {
    const assigned = Promise.withResolvers<PooledThread>();
    this.#waiting.add({ placed, assign: assigned.resolve, reject: assigned.reject });
    this.#assignThreads();
    const pooled = await assigned.promise;
    try {
      return await work(pooled);
    } finally {
      this.#setState(pooled, "free");
      this.#assignThreads();
    }
  }

  /** Assigns threads to waiting calls in order of arrival. A call without a free thread does not block later calls. */
  #assignThreads(): void {
    this.#threads = this.#threads.filter(({ thread }) => !thread.hasEnded);
    if (this.#isClosed) return this.#rejectWaiting();
    let states = this.#states();
    for (const waiter of this.#waiting) {
      const home = waiter.placed.home === null ? -1 : this.#threads.indexOf(waiter.placed.home);
      const choice = chooseThread(states, home === -1 ? null : home, this.#options);
      if (choice.take === "wait") continue;
      const pooled = choice.take === "new" ? this.#start() : this.#threads[choice.index];
      assert(pooled !== undefined, "the chosen thread is one of the threads");
      this.#waiting.delete(waiter);
      this.#setState(pooled, "busy");
      states = this.#states();
      waiter.assign(pooled);
    }
  }

  #rejectWaiting(): void {
    const error = new InferenceError("UNAVAILABLE", "the model did not respond: its container is stopping");
    for (const { reject } of this.#waiting) reject(error);
    this.#waiting.clear();
  }

  #states(): readonly ThreadState[] {
    return this.#threads.map(({ state, models }) => ({ state, modelCount: models.size }));
  }

  #start(): PooledThread {
    const pooled: PooledThread = { thread: new AlgorithmThread(), models: new Set(), state: "free", slowTimer: null };
    this.#threads.push(pooled);
    return pooled;
  }

  #setState(pooled: PooledThread, to: ThreadState["state"]): void {
    pooled.slowTimer?.[Symbol.dispose]();
    pooled.state = to;
    pooled.slowTimer =
      to !== "busy"
        ? null
        : this.#options.clock.timer(this.#options.slowAfterMs, () => {
            this.#setState(pooled, "slow");
            this.#assignThreads();
          });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    this.#assignThreads();
    await Promise.all(this.#threads.map(({ thread }) => thread[Symbol.asyncDispose]()));
  }
}

function unexpected(reply: AlgorithmReply): InferenceError {
  if (reply.outcome === "failed") return new InferenceError(reply.code, reply.message);
  return new InferenceError("INTERNAL", `unexpected reply '${reply.outcome}' of the model's worker thread`);
}
