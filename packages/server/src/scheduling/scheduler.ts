import type { InferenceError } from "@galatea/base";
import type { InferenceRequest, InferenceResponse, RequestRecord } from "../inference/index.ts";

/** How a request ends well: with its one response, or when all its answers were sent to its sink. */
export type Settlement = InferenceResponse | "sent";

/**
 * What stands between a model version and its instances.
 *
 * `infer` resolves with the response, or rejects with an InferenceError (queue full, timeout, cancelled, the model's own error). For a
 * decoupled model the request has a sink, to which the answers go as they are made; `infer` resolves with "sent" when the last one was
 * given, or rejects, and the sink has had no last one: who owns it gives it the error.
 * It borrows the request's input tensors until it settles *and* the execution that carried them has ended: a scheduler whose
 * request is given up while it executes settles at once and calls `releaseInputs` later, exactly once, in every outcome.
 * The response is the caller's. Times are written to `record` before it settles.
 */
export interface Scheduler {
  infer(request: InferenceRequest, record: RequestRecord, releaseInputs: () => void): Promise<Settlement>;
  /** Requests waiting, in the queue or behind others at an instance (the gauge nv_inference_pending_request_count). */
  readonly pendingCount: number;
  /** Refuses new requests (UNAVAILABLE) and resolves when the last one in flight has ended. */
  close(): Promise<void>;
  /**
   * Settles every request in flight with the error, those that execute included: their instances are told that nobody waits any more.
   * `close` resolves when they have let go. An ensemble's resolves at once: what its steps still hold they give back themselves.
   */
  abandon(error: InferenceError): void;
}
