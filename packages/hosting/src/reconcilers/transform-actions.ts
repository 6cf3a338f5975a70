import { CoalescedWriter, type EventLoopQueue } from "@galatea/base";
import type { FleetOptions } from "../endpoints/index.ts";
import type { HostingStore } from "../store/index.ts";
import {
  isTransformInProgress,
  JobRun,
  applyTransformEvent,
  initialTransformProgress,
  type JobMemory,
  type TransformEvent,
  type TransformJobRecord,
  type TransformProgress,
} from "../transforms/index.ts";
import type { ReconciledKind, ActionContext, ActionOutcome } from "./reconciler.ts";

export interface TransformActionsOptions {
  readonly store: HostingStore;
  readonly fleet: FleetOptions;
  readonly newInstanceId: () => string;
  /** Memory budget of all transform jobs. */
  readonly memory: JobMemory;
  readonly loopQueue: EventLoopQueue;
}

/** The action of each state of a transform job. A job in progress resumes from its recorded progress. */
export class TransformActions implements ReconciledKind<TransformJobRecord, TransformEvent> {
  readonly what = "transform job";
  readonly isTransient = isTransformInProgress;
  readonly records: HostingStore["kinds"]["transformJobs"];
  readonly actions: ReconciledKind<TransformJobRecord, TransformEvent>["actions"] = {
    InProgress: (step) => this.#run(step),
    Stopping: async () => ({ do: "transition", event: { kind: "stopped", atMs: this.#nowMs } }),
    Completed: null,
    Failed: null,
    Stopped: null,
  };
  readonly #options: TransformActionsOptions;

  constructor(options: TransformActionsOptions) {
    this.#options = options;
    this.records = options.store.kinds.transformJobs;
  }

  transition(job: TransformJobRecord, event: TransformEvent): TransformJobRecord {
    return { ...job, state: applyTransformEvent(job.state, event) };
  }

  /** Runs a job. If the signal aborts, settles only after all instances of the job have stopped. */
  async #run(
    step: ActionContext<TransformJobRecord, TransformEvent>,
  ): Promise<ActionOutcome<TransformJobRecord, TransformEvent>> {
    const { key, record: job, signal } = step;
    const { store, fleet, newInstanceId, memory, loopQueue } = this.#options;
    const { transformProgress } = store.kinds;
    const before = await transformProgress.find(key);
    const progress = before.at === "found" ? before.value : initialTransformProgress;
    const latest = new CoalescedWriter<TransformProgress>(async (value) => {
      await store.write([transformProgress.putChange(key, value, "any")]);
    });
    const run = new JobRun({
      job,
      progress,
      fleet,
      newInstanceId,
      memory,
      loopQueue,
      started: async () => {
        await step.transition({ kind: "started", atMs: this.#nowMs });
      },
      progressed: (value) => latest.write(value),
    });
    const reason = await run.run(signal).catch((error: unknown) => {
      signal.throwIfAborted();
      fleet.logger.error("a transform job failed in the platform", { job: job.name, error: String(error) });
      return `InternalServerError: ${error instanceof Error ? error.message : String(error)}`;
    });
    const atMs = this.#nowMs;
    return {
      do: "transition",
      event: reason === null ? { kind: "completed", atMs } : { kind: "failed", atMs, reason },
    };
  }

  get #nowMs(): number {
    return this.#options.fleet.clock.epochMs();
  }
}
