import type { InferenceError } from "@galatea/base";
import type { InferenceRequest, InferenceResponse, RequestRecord } from "../inference/index.ts";

/** The successful end of a request: its one response, or "sent" when all responses went to its sink. */
export type Settlement = InferenceResponse | "sent";

/**
 * The scheduler of one model version: queues its requests and runs them on instances.
 *
 * `infer` resolves with the response, or rejects with an InferenceError (queue full, timeout, cancelled, the model's own error). For a
 * decoupled model the request has a sink, which receives the responses as they are produced; `infer` resolves with "sent" after the
 * last one. When it rejects, no final response has been sent: the caller of `infer` sends the error to the sink.
 *
 * It borrows the request's input tensors until it settles *and* the execution that used them has ended. A scheduler whose request is
 * cancelled while it executes settles at once and calls `releaseInputs` later, exactly once, in every outcome. The caller owns the
 * response. Times are written to `record` before it settles.
 */
export interface Scheduler {
  infer(request: InferenceRequest, record: RequestRecord, releaseInputs: () => void): Promise<Settlement>;
  /** Number of requests that wait in the queue or behind others at an instance (the gauge nv_inference_pending_request_count). */
  readonly pendingCount: number;
  /** Rejects new requests (UNAVAILABLE) and resolves when the last one in flight has ended. */
  close(): Promise<void>;
  /**
   * Rejects every unfinished request with the error, executing ones included. Their instances are notified (`Instance.givenUp`); steps of
   * an ensemble without branches run on. `close` resolves when the executions have ended; an ensemble's resolves at once, because its
   * running steps release their own tensors.
   */
  abandon(error: InferenceError): void;
}
