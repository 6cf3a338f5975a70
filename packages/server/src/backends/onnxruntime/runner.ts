import { closeSync } from "node:fs";
import { InferenceError } from "@galatea/base";
import type { RunThreadResult, OnnxRuntimeOptions, OnnxSessionOptions, RunResult } from "../../native/index.ts";
import type { Arena } from "../../tensor/index.ts";
import type { DeviceBytes } from "../device-bytes.ts";
import { GpuMemory } from "./gpu-memory.ts";
import { type RunThreadClient, RunThreadEnded } from "./run-thread-client.ts";
import { isGpuLost } from "./lost-device.ts";
import { MemoryLedger } from "./memory-ledger.ts";
import { RunnerCaller } from "./runner-calls.ts";
import type { RunnerMemoryUsage, RunnerSession } from "./runner-control.ts";
import { checkResults, toRunCommand, type ModelRun, allocateOutputs } from "./model-run.ts";
import { executionTimeout } from "../execution-timeout.ts";
import { cancelledError, RunWatch } from "./run-watch.ts";
import { RunThreadPool } from "./run-thread-pool.ts";
import { type LaunchedRunner, launchRunner, type LaunchOptions } from "./start-runner.ts";
import { RunnerEnded, CrashBlame } from "./crash-blame.ts";

/** The model file and settings of a session. */
export interface SessionContent {
  /** Name for messages: the name of the first model with this content. */
  readonly modelName: string;
  /** A key that is equal for equal files and settings. */
  readonly key: string;
  readonly options: OnnxSessionOptions;
  /** The GPU on which the session runs; null for the CPU. */
  readonly device: number | null;
  /**
   * Size of the session's files in bytes. It is the estimate of the session's memory until the session is opened, and a lower bound of the
   * memory that is charged for opening it.
   */
  readonly byteLength: number;
  /** True to free the unused parts of the library's memory pool after each run. */
  readonly shrinksAfterRun: boolean;
  /** Throws if the files no longer match the key. Called when another process must load the files after a crash. */
  readonly verify: () => Promise<void>;
}

export interface RunnerOptions extends LaunchOptions {
  readonly runtime: OnnxRuntimeOptions;
  /** Maximum number of concurrent runs. */
  readonly runThreadsMax: number;
  /** Maximum memory in bytes that runs may leave in the library's memory pool. If there is more, it is released. */
  readonly keptBytesMax: number;
  /** Time in milliseconds from a run to the check of the memory that runs have left in the pool. */
  readonly memoryReleaseMs: number;
  /** Maximum time in milliseconds from the termination of a run to its next operator. */
  readonly terminateMs: number;
  /**
   * Time in milliseconds within which the process must reply to calls that run no model. After it, the process counts as hung and is
   * killed.
   */
  readonly responseMs: number;
  /** Time in milliseconds after which a run or a load is ended; null for never. */
  readonly deadlineMs: number | null;
  /** Called with the keys of the sessions for which `bytesOf` or `gpuBytesOf` has changed. */
  readonly onMemory: (keys: readonly string[]) => void;
  /** Returns the GPU memory that these processes use; null for a runner without GPUs. */
  readonly gpuBytesOf: ((pids: readonly number[]) => Promise<DeviceBytes>) | null;
}

export interface RunTask {
  readonly content: SessionContent;
  readonly arena: Arena;
  readonly run: ModelRun;
  readonly signal: AbortSignal | null;
}

/** A runner process with its loaded sessions. After the process has ended, every call throws RunnerEnded. */
export class Runner implements AsyncDisposable {
  /** Resolves with a description of how the process ended, when none of its threads can access memory any more. */
  readonly ended: Promise<string>;
  readonly #options: RunnerOptions;
  readonly #launched: LaunchedRunner;
  readonly #calls: RunnerCaller;
  readonly #sessions = new Map<string, Promise<RunnerSession>>();
  readonly #arenas = new Map<number, Promise<number>>();
  readonly #threads: RunThreadPool;
  readonly #crashBlame = new CrashBlame();
  #end: { readonly how: string } | null = null;
  readonly #ledger = new MemoryLedger();
  /** Null for a runner without GPUs. */
  readonly #gpuMemory: GpuMemory | null;
  /** Timer of the next memory measurement; null if there was no run since the last measurement. */
  #settling: { readonly timer: Disposable } | null = null;

  private constructor(options: RunnerOptions, launched: LaunchedRunner) {
    this.#options = options;
    this.#launched = launched;
    const { gpuBytesOf } = options;
    const { pid } = launched;
    this.#gpuMemory = gpuBytesOf === null ? null : new GpuMemory(() => gpuBytesOf([pid]));
    // A runner that has closed its sockets is unusable, and is killed.
    this.#calls = new RunnerCaller(launched, () => launched.kill());
    this.#threads = new RunThreadPool({
      runThreadsMax: options.runThreadsMax,
      open: (thread, fd) => this.#withResponseTimeout(this.#calls.callWith("thread", { thread }, fd)),
      onBroken: () => launched.kill(),
    });
    this.ended = launched.ended.then(async (how) => {
      // The sockets are closed by now, so all results that the process has sent, and the runs that it never received, are known.
      await this.#crashBlame.closed();
      this.#onEnd(how);
      return how;
    });
  }

  static async start(options: RunnerOptions): Promise<Runner> {
    const runner = new Runner(options, await launchRunner(options));
    try {
      await runner.#withResponseTimeout(runner.#calls.call("start", options.runtime));
      return runner;
    } catch (error) {
      await runner[Symbol.asyncDispose]();
      throw error instanceof RunnerEnded
        ? new InferenceError("UNAVAILABLE", `${error.message} at its start`, { cause: error })
        : error;
    }
  }

  get alive(): boolean {
    return this.#end === null;
  }

  /** Returns the bytes of host memory charged to the session `key`; null if this runner has not loaded it. */
  bytesOf(key: string): number | null {
    return this.alive ? this.#ledger.bytesOf(key) : null;
  }

  /** Returns the GPU memory of this session. */
  gpuBytesOf(key: string): DeviceBytes {
    return (this.alive ? this.#gpuMemory?.bytesOf(key) : null) ?? new Map();
  }

  has(key: string): boolean {
    return this.#sessions.has(key);
  }

  /** Returns the session of this content, and loads it if necessary. Throws ONNX Runtime's text, or RunnerEnded. */
  session(content: SessionContent): Promise<RunnerSession> {
    const known = this.#sessions.get(content.key);
    if (known !== undefined) return known;
    const loading = this.#load(content);
    this.#sessions.set(content.key, loading);
    loading.catch(() => this.#sessions.delete(content.key));
    return loading;
  }

  async #load(content: SessionContent): Promise<RunnerSession> {
    const { key, device } = content;
    if (this.#gpuMemory === null || device === null) return await this.#open(content);
    return await this.#gpuMemory.during(key, device, () => this.#open(content));
  }

  async #open({ key, modelName, options, byteLength, verify }: SessionContent): Promise<RunnerSession> {
    await verify();
    // The first thread is opened now, so that the first run does not wait for it and its memory is not charged to a session.
    await this.#threads.warmUp();
    this.#checkAlive();
    const task = { closed: this.#calls.closed, isUnread: true };
    this.#crashBlame.start(task, task);
    const { clock, deadlineMs } = this.#options;
    let because: InferenceError | null = null;
    // The library cannot abort a load, therefore the process is killed.
    const onDeadline = () => {
      because = executionTimeout(`loading model '${modelName}'`, deadlineMs);
      this.#crashBlame.accuse(task);
      this.#launched.kill();
    };
    using _deadline = deadlineMs === null ? null : clock.timer(deadlineMs, onDeadline);
    try {
      const wire = { ...options, config: [...options.config] };
      const loaded = await this.#calls.call("load", { session: key, options: wire }, () => (task.isUnread = false));
      this.#ledger.opened(key, Math.max(loaded.openedBytes, byteLength));
      this.#measured(loaded);
      return loaded;
    } catch (error) {
      throw because ?? this.#crashBlame.blamed(error, task);
    } finally {
      this.#crashBlame.end(task);
    }
  }

  /** Frees a session. No run of it may be active. */
  async close(key: string): Promise<void> {
    const session = this.#sessions.get(key);
    this.#sessions.delete(key);
    if (session === undefined || !this.alive) return;
    try {
      await session;
      const closed = this.#withResponseTimeout(this.#calls.call("close", { session: key }));
      this.#ledger.closed(key);
      this.#gpuMemory?.closed(key);
      this.#measured(await closed);
      await this.#lookAtGpus();
    } catch {
      // Ignored: the session was not loaded, or the process has ended.
    }
  }

  /** Unmaps an arena that no run uses any more. */
  async forget(arenaId: number): Promise<void> {
    const mapped = this.#arenas.get(arenaId);
    this.#arenas.delete(arenaId);
    if (mapped === undefined || !this.alive) return;
    try {
      await mapped;
      await this.#withResponseTimeout(this.#calls.call("forget", { arena: arenaId }));
    } catch {
      // Ignored: the arena was not mapped, or the process has ended.
    }
  }

  /** Runs a session. Settles when the library no longer accesses the memory. At most `runThreadsMax` runs at once. */
  async run(task: RunTask): Promise<readonly RunResult[]> {
    const session = await this.session(task.content);
    const base = await this.#address(task.arena);
    const thread = await this.#threads.take(session.home);
    this.#checkAlive();
    this.#crashBlame.start(task, thread);
    const startNs = this.#options.clock.monotonicNs();
    const watch = this.#watch(task, thread);
    try {
      if (task.signal?.aborted) throw cancelledError();
      const pinnedProcessors = thread.processors.join() === session.processors.join() ? [] : session.processors;
      thread.processors = session.processors;
      const command = toRunCommand(task.run, {
        session,
        base,
        processors: pinnedProcessors,
        shrink: task.content.shrinksAfterRun,
      });
      return await this.#finishRun(task, thread, { first: await thread.execute(command), base });
    } catch (error) {
      if (error instanceof RunThreadEnded) {
        this.#crashBlame.end(task);
        throw watch.because ?? new RunnerEnded("none", await this.ended);
      }
      throw watch.because ?? this.#crashBlame.blamed(error, task);
    } finally {
      this.#crashBlame.end(task);
      await watch.end();
      this.#threads.release(thread);
      const tookNs = this.#options.clock.monotonicNs() - startNs;
      this.#ledger.ran(task.content.key, tookNs);
      this.#gpuMemory?.ran(task.content.key, tookNs);
      this.#scheduleMemoryRelease();
    }
  }

  /** Handles the first result of a run, and the allocation of outputs whose size was unknown. */
  async #finishRun(
    task: RunTask,
    thread: RunThreadClient,
    { first, base }: { first: RunThreadResult; base: number },
  ): Promise<readonly RunResult[]> {
    if (first.kind === "failed") throw await this.#failed(task, first.message);
    const { run } = task;
    const { results } = first;
    checkResults(run, results);
    if (first.kind === "done") return results;
    let addresses: readonly number[];
    try {
      addresses = allocateOutputs(run, results, base);
    } catch (error) {
      await thread.execute({ kind: "drop" });
      throw error;
    }
    const second = await thread.execute({ kind: "place", addresses });
    if (second.kind === "failed") throw new InferenceError("INTERNAL", second.message);
    return results;
  }

  /** Returns the error of a failed run. If the process has lost its GPU, it is killed, because all later runs would fail too. */
  async #failed(task: RunTask, message: string): Promise<Error> {
    if (task.content.device === null || !isGpuLost(message)) return new InferenceError("INTERNAL", message);
    this.#options.log.error(
      `a run of model '${task.content.modelName}' failed and its process lost access to the GPU; the process is killed: ${message}`,
    );
    this.#crashBlame.accuse(task);
    this.#launched.kill();
    return new RunnerEnded("certain", await this.ended);
  }

  #watch(task: RunTask, thread: RunThreadClient): RunWatch {
    const { clock, terminateMs, deadlineMs } = this.#options;
    return new RunWatch({
      modelName: task.content.modelName,
      signal: task.signal,
      clock,
      deadlineMs,
      terminateMs,
      terminate: (does) => this.#calls.call("terminate", { thread: thread.number, does }),
      soon: (reply) => this.#withResponseTimeout(reply),
      kill: () => {
        this.#crashBlame.accuse(task);
        this.#launched.kill();
      },
    });
  }

  #address(arena: Arena): Promise<number> {
    const known = this.#arenas.get(arena.id);
    if (known !== undefined) return known;
    const mapping = this.#withResponseTimeout(
      this.#calls.callWith("arena", { arena: arena.id, byteLength: arena.capacityBytes }, arena.fd),
    ).then(({ address }) => address);
    this.#arenas.set(arena.id, mapping);
    mapping.catch(() => this.#arenas.delete(arena.id));
    return mapping;
  }

  /** Waits for a reply that arrives at once unless the process hangs. After `responseMs` the process is killed. */
  async #withResponseTimeout<T>(reply: Promise<T>): Promise<T> {
    using _force = this.#options.clock.timer(this.#options.responseMs, () => this.#launched.kill());
    return await reply;
  }

  /** Schedules one memory measurement, which covers all runs that end before it. */
  #scheduleMemoryRelease(): void {
    if (this.#settling !== null || !this.alive) return;
    const { clock, memoryReleaseMs } = this.#options;
    this.#settling = { timer: clock.timer(memoryReleaseMs, () => void this.settle()) };
  }

  /**
   * Releases memory that runs have left in the pool if it is large, and measures the memory that remains. Does nothing if there was no run
   * since the last call.
   */
  async settle(): Promise<void> {
    if (this.#settling === null) return;
    this.#settling.timer[Symbol.dispose]();
    this.#settling = null;
    try {
      this.#measured(
        await this.#withResponseTimeout(this.#calls.call("settle", { keptBytesMax: this.#options.keptBytesMax })),
      );
      await this.#lookAtGpus();
    } catch {
      // Ignored: the process has ended, and its memory is free.
    }
  }

  #measured({ heldBytes }: RunnerMemoryUsage): void {
    if (!this.alive) return;
    const changed = this.#ledger.measured(heldBytes);
    if (changed.length > 0) this.#options.onMemory(changed);
  }

  async #lookAtGpus(): Promise<void> {
    const changed = (await this.#gpuMemory?.look()) ?? [];
    if (changed.length > 0 && this.alive) this.#options.onMemory(changed);
  }

  #checkAlive(): void {
    if (this.#end !== null) throw new RunnerEnded("none", this.#end.how);
  }

  #onEnd(how: string): void {
    this.#crashBlame.ended(how);
    this.#end = { how };
    const error = new RunnerEnded("none", how);
    this.#settling?.timer[Symbol.dispose]();
    this.#options.onMemory(this.#ledger.keys);
    this.#calls.fail(error);
    this.#calls.close();
    closeSync(this.#calls.descriptorFd);
    this.#threads.fail(error);
    this.#threads.close();
  }

  /** Kills the process, even while it runs models. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.alive) return;
    this.#launched.kill();
    await this.ended;
  }
}
