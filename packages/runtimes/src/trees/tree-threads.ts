import { Worker } from "node:worker_threads";
import { InferenceError } from "@galatea/base";
import type { Arena } from "@galatea/server/tensor";
import type { WasmModule } from "./evaluation/web-assembly.ts";
import type { OpenModel } from "./shared-models.ts";
import type { TreeWorkerData, TreeWorkerCommand, TreeWorkerReply, RowSegment } from "./tree-worker.ts";

/** A batch to evaluate: its slices of rows, the model, and the arena with the rows. */
export interface TreeRun {
  readonly opened: Pick<OpenModel, "id" | "model">;
  readonly arena: Arena;
  readonly slices: readonly (readonly RowSegment[])[];
  /** Maximum number of slices that are evaluated concurrently. */
  readonly threadsMax: number;
  /** After it aborts, no further slice of this batch starts. */
  readonly signal: AbortSignal;
}

interface Job extends TreeRun {
  next: number;
  running: number;
  failure: InferenceError | null;
  readonly end: () => void;
}

/** Number of slices that are sent to a thread at a time, so that it does not wait for its next slice. */
const slicesPerThread = 2;
/**
 * Number of disposed models after which a thread is replaced. An idle thread does not run its garbage collector, and each model that it has
 * used keeps 10 GB of address space, but no memory.
 */
const disposedModelsMax = 500;

interface TreeThread {
  readonly worker: Worker;
  /** The job of each slice that was sent to the thread, in the order of sending. */
  readonly jobs: Job[];
  readonly arenas: Set<number>;
  readonly models: Set<number>;
  /** Number of disposed models that the thread has used. */
  disposedModelCount: number;
}

interface TreeThreadsOptions {
  readonly threadCount: number;
  readonly walk: WasmModule;
}

/**
 * A pool of threads that evaluate models; threads start on demand. Jobs alternate slice by slice, so a large job does not delay others by
 * more than one slice. A failure, including the exit of a thread, fails only the jobs whose slices it affects.
 */
export class TreeThreads implements AsyncDisposable {
  readonly #options: TreeThreadsOptions;
  /** Threads, by index of their workspace; null if the workspace has no thread. */
  readonly #threads: (TreeThread | null)[];
  /** Jobs with unassigned slices. The first job gets the next free thread. */
  readonly #waiting: Job[] = [];
  #isClosed = false;

  constructor(options: TreeThreadsOptions) {
    this.#options = options;
    this.#threads = Array.from({ length: options.threadCount }, () => null);
  }

  /**
   * Resolves when all rows are evaluated. Rejects with the reason of the signal or the first failure, after all threads have stopped using
   * the rows.
   */
  async run(command: TreeRun): Promise<void> {
    if (this.#isClosed) throw new InferenceError("UNAVAILABLE", "Server exiting");
    const ended = Promise.withResolvers<void>();
    const job: Job = { ...command, next: 0, running: 0, failure: null, end: ended.resolve };
    const onAbort = () => this.#fail(job, InferenceError.from(command.signal.reason));
    if (command.signal.aborted) onAbort();
    command.signal.addEventListener("abort", onAbort, { once: true });
    this.#waiting.push(job);
    this.#assignSlices();
    await ended.promise;
    command.signal.removeEventListener("abort", onAbort);
    if (job.failure !== null) throw job.failure;
  }

  /** Notifies threads that the model is no longer used. Must be called after its last run. */
  forgetModel(id: number): void {
    for (const thread of this.#threads) {
      if (thread?.models.delete(id) !== true) continue;
      send(thread, { kind: "forget-model", id });
      thread.disposedModelCount += 1;
      if (thread.disposedModelCount >= disposedModelsMax && thread.jobs.length === 0) this.#replace(thread);
    }
  }

  /** Terminates a thread. A new thread for its workspace starts on demand. */
  #replace(thread: TreeThread): void {
    this.#threads[this.#threads.indexOf(thread)] = null;
    void thread.worker.terminate();
  }

  forgetArena(id: number): void {
    for (const thread of this.#threads)
      if (thread?.arenas.delete(id) === true) send(thread, { kind: "forget-arena", id });
  }

  #assignSlices(): void {
    for (let job = this.#nextJob(); job !== undefined; job = this.#nextJob()) {
      const thread = this.#idlestThread();
      if (thread === null) {
        this.#waiting.unshift(job);
        return;
      }
      this.#assign(thread, job);
      if (job.next < job.slices.length) this.#waiting.push(job);
    }
  }

  /** Returns the next job that may use another thread; removes jobs that have no more slices to start. */
  #nextJob(): Job | undefined {
    for (let index = 0; index < this.#waiting.length;) {
      const job = this.#waiting[index] as Job;
      const isOver = job.failure !== null || job.next >= job.slices.length;
      if (isOver || job.running < job.threadsMax) this.#waiting.splice(index, 1);
      else index += 1;
      if (isOver) endIfDone(job);
      else if (job.running < job.threadsMax) return job;
    }
    return undefined;
  }

  /** Returns the thread with the fewest queued slices; starts a new thread rather than queueing. Null if all queues are full. */
  #idlestThread(): TreeThread | null {
    let least: TreeThread | null = null;
    for (const thread of this.#threads) {
      if (thread !== null && (least === null || thread.jobs.length < least.jobs.length)) least = thread;
    }
    if (least !== null && least.jobs.length === 0) return least;
    const workspace = this.#threads.indexOf(null);
    if (workspace !== -1) return this.#start(workspace);
    return least !== null && least.jobs.length < slicesPerThread ? least : null;
  }

  #assign(thread: TreeThread, job: Job): void {
    const { opened, arena, slices } = job;
    const { fd, capacityBytes: byteLength } = arena;
    if (!thread.arenas.has(arena.id)) send(thread, { kind: "arena", id: arena.id, fd, byteLength });
    if (!thread.models.has(opened.id)) send(thread, { kind: "model", id: opened.id, model: opened.model });
    thread.arenas.add(arena.id);
    thread.models.add(opened.id);
    thread.jobs.push(job);
    thread.worker.ref();
    job.running += 1;
    send(thread, {
      kind: "run",
      model: opened.id,
      arena: arena.id,
      segments: slices[job.next] as readonly RowSegment[],
    });
    job.next += 1;
  }

  #start(workspace: number): TreeThread {
    const extension = import.meta.url.endsWith(".ts") ? "ts" : "js";
    // Workspace 0 belongs to the serving thread.
    const workerData: TreeWorkerData = { walk: this.#options.walk, workspace: workspace + 1 };
    const worker = new Worker(new URL(`./tree-worker.${extension}`, import.meta.url), { workerData, execArgv: [] });
    const thread: TreeThread = { worker, jobs: [], arenas: new Set(), models: new Set(), disposedModelCount: 0 };
    worker.on("message", ({ failure }: TreeWorkerReply) => {
      const job = thread.jobs.shift() as Job;
      if (thread.jobs.length === 0) worker.unref();
      if (failure !== null) this.#fail(job, new InferenceError("INTERNAL", `evaluating trees failed: ${failure}`));
      this.#ended(job);
    });
    let cause = "its thread has ended";
    worker.on("error", (error: Error) => (cause = error.message));
    worker.once("exit", () => {
      if (this.#threads[workspace] === thread) this.#threads[workspace] = null;
      for (const job of thread.jobs.splice(0)) {
        this.#fail(job, new InferenceError("INTERNAL", `evaluating trees failed: ${cause}`));
        this.#ended(job);
      }
    });
    this.#threads[workspace] = thread;
    return thread;
  }

  #ended(job: Job): void {
    job.running -= 1;
    endIfDone(job);
    this.#assignSlices();
  }

  #fail(job: Job, failure: InferenceError): void {
    job.failure ??= failure;
    endIfDone(job);
  }

  /** Terminates all threads. Running jobs fail with UNAVAILABLE. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    for (const job of this.#waiting) this.#fail(job, new InferenceError("UNAVAILABLE", "Server exiting"));
    for (const thread of this.#threads) await thread?.worker.terminate();
  }
}

function endIfDone(job: Job): void {
  if (job.running === 0 && (job.failure !== null || job.next >= job.slices.length)) job.end();
}

function send(thread: TreeThread, command: TreeWorkerCommand): void {
  thread.worker.postMessage(command, []);
}
