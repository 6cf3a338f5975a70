import { type Clock, InferenceError, type Logger } from "@galatea/base";
import type { RunResult } from "../../native/index.ts";
import type { Arena } from "../../tensor/index.ts";
import type { DeviceBytes, MemoryDevice } from "../device-bytes.ts";
import { IsolatedRunners } from "./isolated-runners.ts";
import type { RunLimits } from "./choose-run.ts";
import { type CrashLimits, CrashRecord, type Verdict } from "./crash-record.ts";
import type { ModelRun } from "./model-run.ts";
import { RunQueue } from "./run-queue.ts";
import type { RunnerSession } from "./runner-control.ts";
import type { Runner, RunnerOptions, SessionContent } from "./runner.ts";
import { RunnerEnded } from "./crash-blame.ts";

export interface RunnersOptions {
  readonly runLimits: RunLimits;
  readonly crashes: CrashLimits;
  /** Maximum number of processes for content that must run separately. */
  readonly isolatedRunnersMax: number;
  readonly isolatedIdleMs: number;
  /** Starts a runner process with this name. */
  readonly start: (name: string, onMemory: RunnerOptions["onMemory"]) => Promise<Runner>;
  /** Called with the keys of the content for which `bytesOf` has changed. */
  readonly onMemory: RunnerOptions["onMemory"];
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * Runs sessions in processes, which a model may crash at any time.
 *
 * All content first shares one process. When that process crashes, a task that ran alone is the cause and fails. If several tasks ran, each
 * is repeated in a separate process: the faulty one crashes again, and the others succeed. Content that has crashed several times runs in a
 * separate process, and after more crashes not at all (crash-record.ts). After a crash, the next process loads the content again.
 */
export class Runners implements AsyncDisposable {
  readonly #options: RunnersOptions;
  readonly #runQueue: RunQueue;
  readonly #crashes: CrashRecord;
  readonly #isolated: IsolatedRunners;
  /** Loaded content by key. */
  readonly #held = new Map<string, SessionContent>();
  readonly #live = new Set<Runner>();
  #shared: Promise<Runner> | null = null;
  #reopening: Promise<void> = Promise.resolve();
  #isClosed = false;

  constructor(options: RunnersOptions) {
    this.#options = options;
    this.#runQueue = new RunQueue(options.runLimits, options.clock);
    this.#crashes = new CrashRecord(options.crashes);
    this.#isolated = new IsolatedRunners({
      runnersMax: options.isolatedRunnersMax,
      idleMs: options.isolatedIdleMs,
      start: (name) => this.#start(name),
      clock: options.clock,
      log: options.log,
    });
  }

  /** Starts the shared process. */
  async warmUp(): Promise<void> {
    await this.#sharedRunner();
  }

  /** Loads content, which `close` frees again. Throws ONNX Runtime's text, or INTERNAL if the load crashes the process. */
  async open(content: SessionContent): Promise<RunnerSession> {
    const session = await this.#attempt(content, (runner) => runner.session(content));
    this.#held.set(content.key, content);
    return session;
  }

  /** Frees content. No run of it may be active. */
  async close(content: SessionContent): Promise<void> {
    this.#held.delete(content.key);
    await this.#isolated.end(content.key);
    const shared = await this.#shared?.catch(() => null);
    await shared?.close(content.key);
  }

  /** Unmaps an arena that no model uses any more. */
  async forget(arena: Arena): Promise<void> {
    await this.#isolated.forget(arena.id);
    const shared = await this.#shared?.catch(() => null);
    await shared?.forget(arena.id);
  }

  /** Runs loaded content with tensors in an arena. The memory is borrowed until the run has settled; no process accesses it afterwards. */
  run(
    content: SessionContent,
    task: { readonly arena: Arena; readonly run: ModelRun; readonly signal: AbortSignal | null },
  ): Promise<readonly RunResult[]> {
    return this.#attempt(content, async (runner) => {
      // The session is loaded before the run waits for a slot; otherwise the slot would be idle during the load.
      await runner.session(content);
      using _slot = await this.#runQueue.enter({ tenant: task.arena.id, model: content.key }, task.signal);
      return await runner.run({ content, ...task });
    });
  }

  /** Runs `work` in the shared process, or in a separate one if the content's settings or crashes require that. */
  async #attempt<T>(content: SessionContent, work: (runner: Runner) => Promise<T>): Promise<T> {
    let isSuspect = false;
    for (let attempt = 1; ; attempt += 1) {
      const verdict = this.#verdict(content);
      try {
        if (verdict === "apart" || isSuspect) return await this.#isolated.use(content.key, work);
        return await work(await this.#sharedRunner());
      } catch (error) {
        if (!(error instanceof RunnerEnded)) throw error;
        if (this.#isClosed) throw closed();
        if (error.blame === "certain") throw this.#guilty(content, error);
        if (attempt === attemptsMax) throw new InferenceError("UNAVAILABLE", error.message, { cause: error });
        // A task that may be the cause is repeated in a separate process. A task that is not the cause is repeated in the shared process.
        isSuspect ||= error.blame === "possible";
      }
    }
  }

  async #start(name: string): Promise<Runner> {
    const runner = await this.#options.start(name, this.#options.onMemory);
    this.#live.add(runner);
    void runner.ended.then(() => this.#live.delete(runner));
    return runner;
  }

  /** Returns the memory of content over all processes; null when unknown. */
  bytesOf(key: string): number | null {
    let bytes: number | null = null;
    for (const runner of this.#live) {
      const here = runner.bytesOf(key);
      if (here !== null) bytes = (bytes ?? 0) + here;
    }
    return bytes;
  }

  /** Returns the GPU memory of content over all processes. */
  gpuBytesOf(key: string): DeviceBytes {
    const bytes = new Map<MemoryDevice, number>();
    for (const runner of this.#live)
      for (const [device, here] of runner.gpuBytesOf(key)) bytes.set(device, (bytes.get(device) ?? 0) + here);
    return bytes;
  }

  /** Completes pending measurements of the memory that runs have not released. */
  async settle(): Promise<void> {
    await Promise.all([...this.#live].map((runner) => runner.settle()));
  }

  #verdict({ key, modelName }: SessionContent): Verdict {
    const verdict = this.#crashes.verdict(key, this.#options.clock.epochMs());
    if (verdict !== "refused") return verdict;
    const minutes = Math.round(this.#options.crashes.forgetMs / 60_000);
    throw new InferenceError(
      "UNAVAILABLE",
      `model '${modelName}' is not run: it has crashed its process ${this.#options.crashes.refusedAfter} times. ` +
        `Load another file, or try again in ${minutes} minutes.`,
    );
  }

  #guilty({ key, modelName }: SessionContent, { how }: RunnerEnded): InferenceError {
    this.#crashes.crashed(key, this.#options.clock.epochMs());
    const message = `model '${modelName}' has crashed its process (${how})`;
    this.#options.log.error(message);
    return new InferenceError("INTERNAL", message);
  }

  #sharedRunner(): Promise<Runner> {
    if (this.#isClosed) return Promise.reject(closed());
    if (this.#shared !== null) return this.#shared;
    const starting = this.#start("shared");
    this.#shared = starting;
    const forget = () => {
      if (this.#shared === starting) this.#shared = null;
    };
    starting.then((runner) => {
      void runner.ended.then((how) => {
        forget();
        if (this.#isClosed) return;
        this.#options.log.error(`the ONNX Runtime process has ended (${how}); its sessions are loaded again`);
        this.#reopening = this.#reopening.then(() => this.#reopen());
      });
    }, forget);
    return starting;
  }

  /** Loads all content into the new process, so that the next request does not wait for it. */
  async #reopen(): Promise<void> {
    for (const content of this.#held.values()) {
      if (this.#isClosed) return;
      if (this.#crashes.verdict(content.key, this.#options.clock.epochMs()) !== "shared") continue;
      try {
        const runner = await this.#sharedRunner();
        if (this.#held.has(content.key)) await runner.session(content);
      } catch (error) {
        // The new process crashed too; the next one loads the content.
        if (error instanceof RunnerEnded) return;
        this.#options.log.error(`loading model '${content.modelName}' again: ${InferenceError.from(error).message}`);
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    const shared = await this.#shared?.catch(() => null);
    await shared?.[Symbol.asyncDispose]();
    await this.#isolated[Symbol.asyncDispose]();
    await this.#reopening;
  }
}

/** Maximum number of attempts of a task that did not cause the crashes, while other content crashes the process repeatedly. */
const attemptsMax = 5;

function closed(): InferenceError {
  return new InferenceError("UNAVAILABLE", "the ONNX Runtime backend is closed");
}
