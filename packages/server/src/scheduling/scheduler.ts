import type { InferenceError } from "@galatea/base";
import type { InferenceRequest, InferenceResponse, RequestRecord } from "../inference/index.ts";

/** The successful end of a request: its one response, or "sent" when all responses went to its sink. */
export type SchedulerResult = InferenceResponse | "sent";

/**
 * The scheduler of one model version: queues its requests and runs them on instances.
 *
 * `infer` resolves with the response, or rejects with an InferenceError (queue full, timeout, cancelled, the model's own error). For a
 * decoupled model the request has a sink, which receives the responses as they are produced; `infer` then resolves with "sent" after the
 * last one. When it rejects, no final response was sent: the caller of `infer` sends the error to the sink.
 *
 * The scheduler borrows the request's input tensors until the request has settled and its execution has ended, and then calls
 * `releaseInputs` exactly once. A request that is cancelled while it executes settles before that. The caller owns the response. Times are
 * written to `record` before the request settles.
 */
export interface Scheduler {
  infer(request: InferenceRequest, record: RequestRecord, releaseInputs: () => void): Promise<SchedulerResult>;
  /** Number of requests that wait in the queue, or at an instance for an earlier batch (the gauge nv_inference_pending_request_count). */
  readonly pendingCount: number;
  /** Rejects new requests (UNAVAILABLE) and resolves when the last running request has ended. */
  close(): Promise<void>;
  /**
   * Rejects every unfinished request with the error. Instances of running requests are notified (`Instance.abandonRequest`). A running step
   * of an ensemble without branches is not aborted. `close` then resolves when the executions have ended. For an ensemble it resolves at
   * once, because running steps release their own tensors.
   */
  abandon(error: InferenceError): void;
}
