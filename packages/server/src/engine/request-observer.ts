import type { InferenceError } from "@galatea/base";
import type { RequestRecord } from "../inference/index.ts";

/** Why a request failed, as the label `reason` of nv_inference_request_failure names it. */
export type FailureReason = "REJECTED" | "CANCELED" | "BACKEND" | "OTHER";

/** The one place where a request's end is seen: statistics and metrics of one model version. */
export interface RequestObserver {
  succeeded(record: RequestRecord, endNs: number, epochMs: number): void;
  failed(record: RequestRecord, endNs: number, error: InferenceError): void;
}

/** A request that was never started was rejected by the queue; one that was started failed in the backend. */
export function failureLabel(record: RequestRecord, error: InferenceError): FailureReason {
  if (error.code === "CANCELLED") return "CANCELED";
  if (record.startedNs === 0) return error.code === "UNAVAILABLE" ? "REJECTED" : "OTHER";
  return "BACKEND";
}
