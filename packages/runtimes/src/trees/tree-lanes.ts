import { Worker } from "node:worker_threads";
import { InferenceError } from "@galatea/base";
import type { Arena } from "@galatea/server/tensor";
import type { WasmModule } from "./evaluation/web-assembly.ts";
import type { OpenModel } from "./shared-models.ts";
import type { TreeLaneData, TreeLaneOrder, TreeLaneReply, RowSegment } from "./tree-lane.ts";

/** Rows of a batch, in slices, with their model and arena. */
export interface TreeLaneRun {
  readonly opened: Pick<OpenModel, "id" | "model">;
  readonly arena: Arena;
  readonly slices: readonly (readonly RowSegment[])[];
  /** Maximum number of slices that are evaluated concurrently. */
  readonly threadsMax: number;
  /** When it aborts, no further slice begins. */
  readonly signal: AbortSignal;
}

interface Job extends TreeLaneRun {
  next: number;
  running: number;
  failure: InferenceError | null;
  readonly end: () => void;
}

/** Number of slices queued at a thread, so that it continues with the next without being woken. */
const slicesAtLane = 2;
/**
 * Number of disposed models after which a thread is replaced. An idle thread's garbage collector does not run, and each model that it has
 * used keeps address space (10 GB, no memory).
 */
const forgottenMax = 500;

interface Lane {
  readonly worker: Worker;
  /** Jobs of its queued slices, in order. */
  readonly jobs: Job[];
  readonly arenas: Set<number>;
  readonly models: Set<number>;
  /** Number of disposed models that it has used. */
  forgotten: number;
}

interface TreeLanesOptions {
  readonly laneCount: number;
  readonly walk: WasmModule;
}

/**
 * The threads that evaluate models, started on demand. Jobs alternate slice by slice, so that a large one delays others by at most one
 * slice. A failure, including a thread's end, fails only its job.
 */
export class TreeLanes implements AsyncDisposable {
  readonly #options: TreeLanesOptions;
  /** By workspace; null without a thread. */
  readonly #lanes: (Lane | null)[];
  /** Jobs with unassigned slices; the next one comes first. */
  readonly #waiting: Job[] = [];
  #isClosed = false;

  constructor(options: TreeLanesOptions) {
    this.#options = options;
    this.#lanes = Array.from({ length: options.laneCount }, () => null);
  }

  /**
   * Resolves when all rows are evaluated. Rejects with the signal's reason, or the first failure, once no thread works for it any more.
   */
  async run(order: TreeLaneRun): Promise<void> {
    if (this.#isClosed) throw new InferenceError("UNAVAILABLE", "Server exiting");
    const ended = Promise.withResolvers<void>();
    const job: Job = { ...order, next: 0, running: 0, failure: null, end: ended.resolve };
    const onAbort = () => this.#fail(job, InferenceError.from(order.signal.reason));
    if (order.signal.aborted) onAbort();
    order.signal.addEventListener("abort", onAbort, { once: true });
    this.#waiting.push(job);
    this.#handOut();
    await ended.promise;
    order.signal.removeEventListener("abort", onAbort);
    if (job.failure !== null) throw job.failure;
  }

  /** Called after the model's last run. */
  forgetModel(id: number): void {
    for (const lane of this.#lanes) {
      if (lane?.models.delete(id) !== true) continue;
      tell(lane, { kind: "forget-model", id });
      lane.forgotten += 1;
      if (lane.forgotten >= forgottenMax && lane.jobs.length === 0) this.#retire(lane);
    }
  }

  /** Another thread takes its workspace on demand. */
  #retire(lane: Lane): void {
    this.#lanes[this.#lanes.indexOf(lane)] = null;
    void lane.worker.terminate();
  }

  forgetArena(id: number): void {
    for (const lane of this.#lanes) if (lane?.arenas.delete(id) === true) tell(lane, { kind: "forget-arena", id });
  }

  #handOut(): void {
    for (let job = this.#nextJob(); job !== undefined; job = this.#nextJob()) {
      const lane = this.#freeLane();
      if (lane === null) {
        this.#waiting.unshift(job);
        return;
      }
      this.#give(lane, job);
      if (job.next < job.slices.length) this.#waiting.push(job);
    }
  }

  /** Returns the next job that may continue; drops those that have ended. */
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

  /** Returns the least loaded lane; starts a new one before any slice waits. */
  #freeLane(): Lane | null {
    let least: Lane | null = null;
    for (const lane of this.#lanes) {
      if (lane !== null && (least === null || lane.jobs.length < least.jobs.length)) least = lane;
    }
    if (least !== null && least.jobs.length === 0) return least;
    const desk = this.#lanes.indexOf(null);
    if (desk !== -1) return this.#start(desk);
    return least !== null && least.jobs.length < slicesAtLane ? least : null;
  }

  #give(lane: Lane, job: Job): void {
    const { opened, arena, slices } = job;
    const { fd, capacityBytes: byteLength } = arena;
    if (!lane.arenas.has(arena.id)) tell(lane, { kind: "arena", id: arena.id, fd, byteLength });
    if (!lane.models.has(opened.id)) tell(lane, { kind: "model", id: opened.id, model: opened.model });
    lane.arenas.add(arena.id);
    lane.models.add(opened.id);
    lane.jobs.push(job);
    lane.worker.ref();
    job.running += 1;
    tell(lane, { kind: "run", model: opened.id, arena: arena.id, pieces: slices[job.next] as readonly RowSegment[] });
    job.next += 1;
  }

  #start(desk: number): Lane {
    const extension = import.meta.url.endsWith(".ts") ? "ts" : "js";
    // The first workspace is the serving thread's.
    const workerData: TreeLaneData = { walk: this.#options.walk, desk: desk + 1 };
    const worker = new Worker(new URL(`./tree-lane.${extension}`, import.meta.url), { workerData, execArgv: [] });
    const lane: Lane = { worker, jobs: [], arenas: new Set(), models: new Set(), forgotten: 0 };
    worker.on("message", ({ failure }: TreeLaneReply) => {
      const job = lane.jobs.shift() as Job;
      if (lane.jobs.length === 0) worker.unref();
      if (failure !== null) this.#fail(job, new InferenceError("INTERNAL", `evaluating trees failed: ${failure}`));
      this.#ended(job);
    });
    let cause = "its thread has ended";
    worker.on("error", (error: Error) => (cause = error.message));
    worker.once("exit", () => {
      if (this.#lanes[desk] === lane) this.#lanes[desk] = null;
      for (const job of lane.jobs.splice(0)) {
        this.#fail(job, new InferenceError("INTERNAL", `evaluating trees failed: ${cause}`));
        this.#ended(job);
      }
    });
    this.#lanes[desk] = lane;
    return lane;
  }

  #ended(job: Job): void {
    job.running -= 1;
    endIfDone(job);
    this.#handOut();
  }

  #fail(job: Job, failure: InferenceError): void {
    job.failure ??= failure;
    endIfDone(job);
  }

  /** Fails running jobs. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    for (const job of this.#waiting) this.#fail(job, new InferenceError("UNAVAILABLE", "Server exiting"));
    for (const lane of this.#lanes) await lane?.worker.terminate();
  }
}

function endIfDone(job: Job): void {
  if (job.running === 0 && (job.failure !== null || job.next >= job.slices.length)) job.end();
}

function tell(lane: Lane, order: TreeLaneOrder): void {
  lane.worker.postMessage(order, []);
}
