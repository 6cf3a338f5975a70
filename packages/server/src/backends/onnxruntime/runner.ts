import { closeSync } from "node:fs";
import { InferenceError } from "@galatea/base";
import type { LaneAnswer, OnnxRuntimeOptions, OnnxSessionOptions, RunResult } from "../../native/index.ts";
import type { Arena } from "../../tensor/index.ts";
import type { DeviceBytes } from "../device-bytes.ts";
import { GpuMemory } from "./gpu-memory.ts";
import { type Lane, LaneGone } from "./lane.ts";
import { losesDevice } from "./lost-device.ts";
import { MemoryLedger } from "./memory-ledger.ts";
import { RunnerCaller } from "./runner-calls.ts";
import type { HeldMemory, RunnerSession } from "./runner-control.ts";
import { checkResults, laneOrder, type ModelRun, placed } from "./model-run.ts";
import { overdue } from "../overdue.ts";
import { cancelled, RunWatch } from "./run-watch.ts";
import { RunnerLanes } from "./runner-lanes.ts";
import { type LaunchedRunner, launchRunner, type LaunchOptions } from "./start-runner.ts";
import { RunnerEnded, Suspects } from "./suspects.ts";

/** What a session is made of. */
export interface SessionContent {
  /** In messages: the first model that came with it. */
  readonly modelName: string;
  /** Equal for equal files and settings. */
  readonly key: string;
  readonly options: OnnxSessionOptions;
  /** The GPU that it runs on; null for the CPU. */
  readonly device: number | null;
  /** Its files' length: what it is taken to hold until that is measured, and at least. */
  readonly byteLength: number;
  /** Gives the unused parts of the library's memory pool back after each run. */
  readonly shrinksAfterRun: boolean;
  /** Throws where the files are no more what the key says: a process that ended is followed by one that loads them anew. */
  readonly verify: () => Promise<void>;
}

export interface RunnerOptions extends LaunchOptions {
  readonly runtime: OnnxRuntimeOptions;
  /** Runs at once. */
  readonly lanesMax: number;
  /** What runs may leave behind in the library's memory pool until it is given back. */
  readonly keptBytesMax: number;
  /** How long after a run that is looked at. */
  readonly settleMs: number;
  /** How long a run that was told to end may take to its next operator. */
  readonly terminateMs: number;
  /** How long the process may take for what is not a model's doing; one that takes longer hangs, and is ended. */
  readonly answerMs: number;
  /** After so long a run or a load is ended; null for never. */
  readonly deadlineMs: number | null;
  /** `bytesOf` or `gpuBytesOf` these sessions says something else now. */
  readonly onMemory: (keys: readonly string[]) => void;
  /** What processes hold of GPUs; null for a runner without any. */
  readonly gpuBytesOf: ((pids: readonly number[]) => Promise<DeviceBytes>) | null;
}

export interface RunTask {
  readonly content: SessionContent;
  readonly arena: Arena;
  readonly run: ModelRun;
  readonly signal: AbortSignal | null;
}

/** A process that has sessions and runs them. Everything that is asked of it after its end throws RunnerEnded. */
export class Runner implements AsyncDisposable {
  /** Resolves with how it ended when nobody of it touches any memory any more. */
  readonly ended: Promise<string>;
  readonly #options: RunnerOptions;
  readonly #launched: LaunchedRunner;
  readonly #calls: RunnerCaller;
  readonly #sessions = new Map<string, Promise<RunnerSession>>();
  readonly #arenas = new Map<number, Promise<number>>();
  readonly #lanes: RunnerLanes;
  readonly #suspects = new Suspects();
  #end: { readonly how: string } | null = null;
  readonly #ledger = new MemoryLedger();
  /** null where it has no GPU. */
  readonly #gpuMemory: GpuMemory | null;
  /** A look at its memory that is due; null when no run was over since the last. */
  #settling: { readonly timer: Disposable } | null = null;

  private constructor(options: RunnerOptions, launched: LaunchedRunner) {
    this.#options = options;
    this.#launched = launched;
    const { gpuBytesOf } = options;
    const { pid } = launched;
    this.#gpuMemory = gpuBytesOf === null ? null : new GpuMemory(() => gpuBytesOf([pid]));
    // A runner that closed its sockets is of no use, whatever it still does.
    this.#calls = new RunnerCaller(launched, () => launched.kill());
    this.#lanes = new RunnerLanes({
      lanesMax: options.lanesMax,
      open: (lane, fd) => this.#soon(this.#calls.callWith("lane", { lane }, fd)),
      onBroken: () => launched.kill(),
    });
    this.ended = launched.ended.then(async (how) => {
      // What it answered, and what it never took, is known when its sockets have nothing more to say. The kernel has closed them.
      await this.#suspects.closed();
      this.#onEnd(how);
      return how;
    });
  }

  static async start(options: RunnerOptions): Promise<Runner> {
    const runner = new Runner(options, await launchRunner(options));
    try {
      await runner.#soon(runner.#calls.call("start", options.runtime));
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

  /** What this session is charged with; null where it is not here. */
  bytesOf(key: string): number | null {
    return this.alive ? this.#ledger.bytesOf(key) : null;
  }

  /** What this session holds of GPUs. */
  gpuBytesOf(key: string): DeviceBytes {
    return (this.alive ? this.#gpuMemory?.bytesOf(key) : null) ?? new Map();
  }

  has(key: string): boolean {
    return this.#sessions.has(key);
  }

  /** The session of this content, loaded now where it is not there. Throws ONNX Runtime's words, or RunnerEnded. */
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
    // Its first run shall not wait for the thread, whose memory is no session's.
    await this.#lanes.warmUp();
    this.#checkAlive();
    const task = { closed: this.#calls.closed, isUntaken: true };
    this.#suspects.began(task, task);
    const { clock, deadlineMs } = this.#options;
    let because: InferenceError | null = null;
    // The library has no other end of a load than its process's.
    const onDeadline = () => {
      because = overdue(`loading model '${modelName}'`, deadlineMs);
      this.#suspects.accuse(task);
      this.#launched.kill();
    };
    using _deadline = deadlineMs === null ? null : clock.timer(deadlineMs, onDeadline);
    try {
      const wire = { ...options, config: [...options.config] };
      const loaded = await this.#calls.call("load", { session: key, options: wire }, () => (task.isUntaken = false));
      this.#ledger.opened(key, Math.max(loaded.openedBytes, byteLength));
      this.#measured(loaded);
      return loaded;
    } catch (error) {
      throw because ?? this.#suspects.blamed(error, task);
    } finally {
      this.#suspects.over(task);
    }
  }

  /** Frees a session; no run of it is under way. */
  async close(key: string): Promise<void> {
    const session = this.#sessions.get(key);
    this.#sessions.delete(key);
    if (session === undefined || !this.alive) return;
    try {
      await session;
      const closed = this.#soon(this.#calls.call("close", { session: key }));
      this.#ledger.closed(key);
      this.#gpuMemory?.closed(key);
      this.#measured(await closed);
      await this.#lookAtGpus();
    } catch {
      // It was never loaded, or went with the process.
    }
  }

  /** No run uses this arena any more. */
  async forget(arenaId: number): Promise<void> {
    const mapped = this.#arenas.get(arenaId);
    this.#arenas.delete(arenaId);
    if (mapped === undefined || !this.alive) return;
    try {
      await mapped;
      await this.#soon(this.#calls.call("forget", { arena: arenaId }));
    } catch {
      // It was never mapped, or the process has ended.
    }
  }

  /** Settles when the library has let go of the memory. At most `lanesMax` at once. */
  async run(task: RunTask): Promise<readonly RunResult[]> {
    const session = await this.session(task.content);
    const base = await this.#address(task.arena);
    const lane = await this.#lanes.take(session.home);
    this.#checkAlive();
    this.#suspects.began(task, lane);
    const startNs = this.#options.clock.monotonicNs();
    const watch = this.#watch(task, lane);
    try {
      if (task.signal?.aborted) throw cancelled();
      const moves = lane.processors.join() === session.processors.join() ? [] : session.processors;
      lane.processors = session.processors;
      const order = { session, base, processors: moves, shrink: task.content.shrinksAfterRun };
      return await this.#converse(task, lane, { first: await lane.ask(laneOrder(task.run, order)), base });
    } catch (error) {
      if (error instanceof LaneGone) {
        this.#suspects.over(task);
        throw watch.because ?? new RunnerEnded("none", await this.ended);
      }
      throw watch.because ?? this.#suspects.blamed(error, task);
    } finally {
      this.#suspects.over(task);
      await watch.end();
      this.#lanes.giveBack(lane);
      const tookNs = this.#options.clock.monotonicNs() - startNs;
      this.#ledger.ran(task.content.key, tookNs);
      this.#gpuMemory?.ran(task.content.key, tookNs);
      this.#settleSoon();
    }
  }

  /** What follows a run's first answer. */
  async #converse(
    task: RunTask,
    lane: Lane,
    { first, base }: { first: LaneAnswer; base: number },
  ): Promise<readonly RunResult[]> {
    if (first.kind === "failed") throw await this.#failed(task, first.message);
    const { run } = task;
    const { results } = first;
    checkResults(run, results);
    if (first.kind === "done") return results;
    let addresses: readonly number[];
    try {
      addresses = placed(run, results, base);
    } catch (error) {
      await lane.ask({ kind: "drop" });
      throw error;
    }
    const second = await lane.ask({ kind: "place", addresses });
    if (second.kind === "failed") throw new InferenceError("INTERNAL", second.message);
    return results;
  }

  /** The error of a run that failed. One that cost the process its GPU ends the process, which has done it for all others as well. */
  async #failed(task: RunTask, message: string): Promise<Error> {
    if (task.content.device === null || !losesDevice(message)) return new InferenceError("INTERNAL", message);
    this.#options.log.error(`model '${task.content.modelName}' has lost its process the GPU: ${message}`);
    this.#suspects.accuse(task);
    this.#launched.kill();
    return new RunnerEnded("certain", await this.ended);
  }

  #watch(task: RunTask, lane: Lane): RunWatch {
    const { clock, terminateMs, deadlineMs } = this.#options;
    return new RunWatch({
      modelName: task.content.modelName,
      signal: task.signal,
      clock,
      deadlineMs,
      terminateMs,
      terminate: (does) => this.#calls.call("terminate", { lane: lane.number, does }),
      soon: (answer) => this.#soon(answer),
      kill: () => {
        this.#suspects.accuse(task);
        this.#launched.kill();
      },
    });
  }

  #address(arena: Arena): Promise<number> {
    const known = this.#arenas.get(arena.id);
    if (known !== undefined) return known;
    const mapping = this.#soon(
      this.#calls.callWith("arena", { arena: arena.id, byteLength: arena.capacityBytes }, arena.fd),
    ).then(({ address }) => address);
    this.#arenas.set(arena.id, mapping);
    mapping.catch(() => this.#arenas.delete(arena.id));
    return mapping;
  }

  /** What takes no time in a process that does not hang. */
  async #soon<T>(answer: Promise<T>): Promise<T> {
    using _force = this.#options.clock.timer(this.#options.answerMs, () => this.#launched.kill());
    return await answer;
  }

  /** Soon after a run, and once for all that end until then. */
  #settleSoon(): void {
    if (this.#settling !== null || !this.alive) return;
    const { clock, settleMs } = this.#options;
    this.#settling = { timer: clock.timer(settleMs, () => void this.settle()) };
  }

  /** Gives back what runs have left behind, where that is much, and measures what stays. Nothing to do where no run was since the last look. */
  async settle(): Promise<void> {
    if (this.#settling === null) return;
    this.#settling.timer[Symbol.dispose]();
    this.#settling = null;
    try {
      this.#measured(await this.#soon(this.#calls.call("settle", { keptBytesMax: this.#options.keptBytesMax })));
      await this.#lookAtGpus();
    } catch {
      // The process has ended, and its memory with it.
    }
  }

  #measured({ heldBytes }: HeldMemory): void {
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
    this.#suspects.ended(how);
    this.#end = { how };
    const error = new RunnerEnded("none", how);
    this.#settling?.timer[Symbol.dispose]();
    this.#options.onMemory(this.#ledger.keys);
    this.#calls.fail(error);
    this.#calls.close();
    closeSync(this.#calls.descriptorFd);
    this.#lanes.fail(error);
    this.#lanes.close();
  }

  /** Ends it with what it is doing. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.alive) return;
    this.#launched.kill();
    await this.ended;
  }
}
