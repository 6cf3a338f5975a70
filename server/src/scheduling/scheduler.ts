import type { InferenceRequest, InferenceResponse, RequestRecord } from "../inference/index.ts";

/**
 * What stands between a model version and its instances.
 *
 * `infer` resolves with the response, or rejects with an InferenceError (queue full, timeout, cancelled, the model's own error).
 * It borrows the request's input tensors until it settles *and* the execution that carried them has ended: a scheduler whose
 * request is given up while it executes settles at once and calls `releaseInputs` later, exactly once, in every outcome.
 * The response is the caller's. Times are written to `record` before it settles.
 */
export interface Scheduler {
  infer(request: InferenceRequest, record: RequestRecord, releaseInputs: () => void): Promise<InferenceResponse>;
  /** Requests waiting, in the queue or behind others at an instance (the gauge nv_inference_pending_request_count). */
  readonly pendingCount: number;
  /** Refuses new requests (UNAVAILABLE) and resolves when the last one in flight has ended. */
  close(): Promise<void>;
}
