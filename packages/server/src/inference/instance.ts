import { InferenceError } from "@galatea/base";
import type { SentAnswers } from "./answers.ts";
import type { InferenceRequest } from "./request.ts";
import type { Outcome } from "./response.ts";

/** The outcome of a request at the end of its execution: its only response, an error, or responses that come later. */
export type Released = Outcome | SentAnswers;

/** The result of one execution of a batch, in the batch's order, and the durations of its phases. */
export interface Execution {
  readonly outcomes: readonly Released[];
  readonly computeInputNs: number;
  readonly computeInferNs: number;
  readonly computeOutputNs: number;
}

/**
 * The error of a batch that was not started because its worker ended first. It is safe to execute the batch on another instance, or
 * later.
 */
export class ExecutionNotStarted extends InferenceError {
  constructor(why: string) {
    super("INTERNAL", why);
    this.name = "ExecutionNotStarted";
  }
}

/**
 * `up`: executes batches. `restarting`: its worker has ended, and the next one is not up yet. `failed`: its worker cannot be started, now
 * or ever; batches fail with the reason. `dormant`: its worker is started when it is needed.
 */
export type InstanceState = "up" | "restarting" | "failed" | "dormant";

/** The availability of an instance. */
export interface InstanceSupervision {
  readonly state: InstanceState;
  /** Resolves when `state` may have changed. */
  changed(): Promise<void>;
  /** Starts a dormant instance. Called when all others execute. */
  needed(): void;
}

/**
 * Executes batches of a model, one at a time. A scheduler calls it; a backend implements it. `execute` borrows the requests' input
 * tensors until it resolves (an instance whose worker reads a block longer retains the block itself). It never rejects because of the
 * requests or a crash: those are outcomes. It rejects with ExecutionNotStarted when its worker ended before it began the batch, and
 * otherwise only for bugs. A batch's requests agree in every dimension except the batch axis unless the model allows ragged batches; the
 * sum of their batch sizes is at most the model's max_batch_size.
 */
export interface Instance {
  /** Triton's name of the instance, `<group>_<index>`, visible to Python models and in messages. */
  readonly name: string;
  /**
   * Number of executions that may be handed over before the first has resolved, at this moment. Most instances have 1; a backend that
   * hides the hand-over latency of a worker process behind the previous run has 2 or more. Executions still run one after another.
   */
  readonly executionsMax: number;
  /** Null for an instance without a process that can end. */
  readonly supervision: InstanceSupervision | null;
  execute(batch: readonly InferenceRequest[]): Promise<Execution>;
  /**
   * Reports that nothing waits any more for this request of a batch that has not resolved. A backend that can do so notifies the model,
   * and stops or skips a run when its whole batch was abandoned.
   */
  givenUp(request: InferenceRequest): void;
}
