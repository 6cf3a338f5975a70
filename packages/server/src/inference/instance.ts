import { InferenceError } from "@galatea/base";
import type { SentAnswers } from "./answers.ts";
import type { InferenceRequest } from "./request.ts";
import type { Outcome } from "./response.ts";

/** How an execution has released a request: with its only response, with an error, or with responses that come later. */
export type Released = Outcome | SentAnswers;

/** What one execution of a batch gave, in the batch's order, and how long its phases took. */
export interface Execution {
  readonly outcomes: readonly Released[];
  readonly computeInputNs: number;
  readonly computeInferNs: number;
  readonly computeOutputNs: number;
}

/** The error of a batch that was not started, because its worker ended first. It is safe to execute it by another instance, or later. */
export class ExecutionNotStarted extends InferenceError {
  constructor(why: string) {
    super("INTERNAL", why);
    this.name = "ExecutionNotStarted";
  }
}

/**
 * `up`: executes batches. `restarting`: its worker has ended, and the next one is not up yet. `failed`: its worker cannot be started
 * now, or ever again; batches fail with the reason. `dormant`: its worker is started when it is needed.
 */
export type InstanceState = "up" | "restarting" | "failed" | "dormant";

/** Whether an instance can execute now. */
export interface InstanceSupervision {
  readonly state: InstanceState;
  /** Resolves when `state` may have changed. */
  changed(): Promise<void>;
  /** Starts a dormant instance. To be called when all others execute. */
  needed(): void;
}

/**
 * One place where batches of a model run, one at a time. A scheduler feeds it; a backend implements it.
 *
 * `execute` borrows the requests' input tensors until it resolves (an instance whose worker still reads a block after that
 * retains the block itself). It never rejects for a reason of the requests or of a crash: those are outcomes. It rejects
 * with ExecutionNotStarted where its worker ended before it began the batch, and else only for bugs. A batch's requests agree in every shape beyond the batch axis unless the model allows ragged batches;
 * the sum of their batch sizes is at most the model's max_batch_size.
 */
export interface Instance {
  /** As in Triton: `<group>_<index>`, visible to Python models and in messages. */
  readonly name: string;
  /**
   * How many executions may be handed over before the first has resolved, at this moment: 1 for most; a backend that hides the
   * hand-over latency of a worker process behind the run before takes 2 or more. Executions still run one after another.
   */
  readonly executionsMax: number;
  /** Null for an instance whose executions run in no process that can end. */
  readonly supervision: InstanceSupervision | null;
  execute(batch: readonly InferenceRequest[]): Promise<Execution>;
  /**
   * Nobody waits any more for this request of a batch that was handed over and has not resolved. A backend that can tells the model,
   * and stops a run, or does not begin it, when all of its batch have been given up.
   */
  givenUp(request: InferenceRequest): void;
}
