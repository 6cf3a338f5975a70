import { patientWrite, TaskGroup, type LoopTurns } from "@galatea/base";
import { nameKey } from "../definitions/index.ts";
import type { FleetOptions } from "../endpoints/index.ts";
import { LatestWrite } from "./latest-write.ts";
import type { HostingStore } from "../store/index.ts";
import {
  JobRun,
  type JobMemory,
  moveTransform,
  noProgress,
  type TransformEvent,
  type TransformJobRecord,
  type TransformProgress,
  type TransformState,
} from "../transforms/index.ts";

export interface TransformReconcilerOptions {
  readonly store: HostingStore;
  readonly fleet: FleetOptions;
  readonly newInstanceId: () => string;
  /** Of all jobs. */
  readonly memory: JobMemory;
  readonly turns: LoopTurns;
}

/** Runs transform jobs: what is recorded as in progress runs, from where its progress says. Each move is recorded before anybody is told of it. */
export class TransformReconciler implements AsyncDisposable {
  readonly #options: TransformReconcilerOptions;
  readonly #running = new Map<string, AbortController>();
  readonly #tasks: TaskGroup;

  constructor(options: TransformReconcilerOptions) {
    this.#options = options;
    this.#tasks = new TaskGroup((error) => {
      options.fleet.logger.error("a transform job ended unexpectedly", { error: String(error) });
    });
  }

  /** For one that is recorded as in progress, or as stopping. */
  takeUp({ name }: TransformJobRecord): void {
    const key = nameKey(name);
    const stopping = new AbortController();
    this.#running.set(key, stopping);
    this.#tasks.run(async (closing) => {
      try {
        await this.#run(key, stopping.signal, closing);
      } finally {
        this.#running.delete(key);
      }
    });
  }

  /** For one that is recorded as stopping: what it does is given up. */
  giveUp({ name }: TransformJobRecord): void {
    this.#running.get(nameKey(name))?.abort(new Error("the job is stopped"));
  }

  /** Records a move; null where the job is not in the state any more that the move is made from. */
  async record(key: string, from: TransformState["at"], event: TransformEvent): Promise<TransformJobRecord | null> {
    const { store, fleet } = this.#options;
    const { transformJobs } = store.kinds;
    return await store.attempt(async () => {
      const found = await transformJobs.find(key);
      if (found.at !== "found" || found.value.state.at !== from) return null;
      const { value, version } = found;
      const moved = { ...value, state: moveTransform(value.state, event), modifiedMs: fleet.clock.epochMs() };
      await store.write([transformJobs.put(key, moved, version)]);
      return moved;
    });
  }

  /** Instances stop; records stay, and the jobs go on in the next life. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#tasks[Symbol.asyncDispose]();
  }

  async #run(key: string, stopping: AbortSignal, closing: AbortSignal): Promise<void> {
    const { store } = this.#options;
    const found = await store.kinds.transformJobs.find(key);
    if (found.at !== "found") return;
    if (found.value.state.at === "InProgress" && !stopping.aborted) {
      const failure = await this.#transform(key, found.value, AbortSignal.any([stopping, closing]));
      closing.throwIfAborted();
      if (!stopping.aborted) await this.#conclude(key, "InProgress", failure, closing);
    }
    // It was stopped, or the stop came between its end and the record of that.
    await this.#conclude(key, "Stopping", null, closing);
  }

  /** Records how a job ended, where it is in that state; tried until it is recorded, since nothing runs for it any more. */
  async #conclude(
    key: string,
    from: "InProgress" | "Stopping",
    failure: string | null,
    closing: AbortSignal,
  ): Promise<void> {
    const { clock, logger } = this.#options.fleet;
    const record = () => this.record(key, from, endOf(from, failure, clock.epochMs()));
    const what = "the end of a transform job";
    await patientWrite(record, { clock, logger, what, name: key, outlasts: "every error", signal: closing });
  }

  /** Null, or why it failed. Where the signal aborts nothing of it runs any more. */
  async #transform(key: string, job: TransformJobRecord, signal: AbortSignal): Promise<string | null> {
    const { store, fleet, newInstanceId, memory, turns } = this.#options;
    const { transformProgress } = store.kinds;
    const before = await transformProgress.find(key);
    const progress = before.at === "found" ? before.value : noProgress;
    const told = new LatestWrite<TransformProgress>((latest) =>
      store.write([transformProgress.put(key, latest, "any")]),
    );
    const run = new JobRun({
      job,
      progress,
      fleet,
      newInstanceId,
      memory,
      turns,
      started: async () => {
        await this.record(key, "InProgress", { kind: "started", atMs: fleet.clock.epochMs() });
      },
      progressed: (latest) => told.write(latest),
    });
    try {
      return await run.run(signal);
    } catch (error) {
      if (signal.aborted) return null;
      fleet.logger.error("a transform job failed in the platform", { job: job.name, error: String(error) });
      return `InternalServerError: ${error instanceof Error ? error.message : String(error)}`;
    }
  }
}

function endOf(from: "InProgress" | "Stopping", failure: string | null, atMs: number): TransformEvent {
  if (from === "Stopping") return { kind: "stopped", atMs };
  return failure === null ? { kind: "completed", atMs } : { kind: "failed", atMs, reason: failure };
}
