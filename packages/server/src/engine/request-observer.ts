import type { InferenceError } from "@galatea/base";
import type { RequestRecord } from "../inference/index.ts";

/** The reason of a failed request, as in the label `reason` of nv_inference_request_failure. */
export type FailureReason = "REJECTED" | "CANCELED" | "BACKEND" | "OTHER";

/** Receives the outcome of every request of one model version, for statistics and metrics. */
export interface RequestObserver {
  succeeded(record: RequestRecord, endNs: number, epochMs: number): void;
  failed(record: RequestRecord, endNs: number, error: InferenceError): void;
}

/** Returns the failure reason: REJECTED when the request never started, BACKEND when it failed after its start. */
export function failureLabel(record: RequestRecord, error: InferenceError): FailureReason {
  if (error.code === "CANCELLED") return "CANCELED";
  if (record.startedNs === 0) return error.code === "UNAVAILABLE" ? "REJECTED" : "OTHER";
  return "BACKEND";
}
