import { InferenceError } from "@galatea/base";
import type { DeferredResponses } from "./response-sink.ts";
import type { InferenceRequest } from "./request.ts";
import type { Outcome } from "./response.ts";

/** The outcome of a request at the end of its execution: its only response, an error, or responses that are sent later. */
export type Released = Outcome | DeferredResponses;

/** The result of one execution: outcomes in the order of the batch, and the durations of the phases. */
export interface Execution {
  readonly outcomes: readonly Released[];
  readonly computeInputNs: number;
  readonly computeInferNs: number;
  readonly computeOutputNs: number;
}

/**
 * The error of a batch whose worker ended before it started the batch. It is safe to execute the batch again, on this or another instance.
 */
export class ExecutionNotStarted extends InferenceError {
  constructor(why: string) {
    super("INTERNAL", why);
    this.name = "ExecutionNotStarted";
  }
}

/**
 * The state of an instance. `up`: it executes batches. `restarting`: its worker has ended and a new one is starting. `failed`: its worker
 * cannot be started, and batches fail with the reason. `dormant`: its worker is started when it is needed.
 */
export type InstanceState = "up" | "restarting" | "failed" | "dormant";

/** The availability of an instance. */
export interface InstanceSupervision {
  readonly state: InstanceState;
  /** Resolves when `state` may have changed. */
  changed(): Promise<void>;
  /** Starts a dormant instance. Called when all other instances execute. */
  needed(): void;
}

/**
 * Executes batches of a model, one at a time. A scheduler calls it; a backend implements it.
 *
 * `execute` borrows the requests' input tensors until it resolves; an instance whose worker reads a block longer retains the block itself.
 * Failures of requests and crashes are outcomes, not rejections. `execute` rejects with ExecutionNotStarted when the worker ended before it
 * began the batch, and otherwise only because of bugs.
 *
 * The requests of a batch have equal shapes except on the batch axis, unless the model allows ragged batches. The sum of their batch sizes
 * is at most the model's max_batch_size.
 */
export interface Instance {
  /** Triton's name of the instance, `<group>_<index>`, visible to Python models and in messages. */
  readonly name: string;
  /**
   * Current limit of executions that may be handed over before the first one has resolved. It is 1 for most instances. A worker process has
   * 2 or more, which hides the latency of handing over a batch. The instance still executes them one after another.
   */
  readonly executionsMax: number;
  /** Availability of the instance's worker; null for an instance without a worker process. */
  readonly supervision: InstanceSupervision | null;
  execute(batch: readonly InferenceRequest[]): Promise<Execution>;
  /**
   * Reports that no caller waits for this request any more. The batch has not resolved yet. A backend that supports it notifies the model;
   * when all requests of the batch were abandoned, it stops or skips the execution.
   */
  abandonRequest(request: InferenceRequest): void;
}
