import type { VariantMetrics } from "../series/index.ts";
import type { InvocationRequest } from "./invocation.ts";

/** What one invocation came to; every metric of it is recorded from this, once. */
export interface InvocationOutcome {
  /** Zero until the container or an error of ours has one. */
  status: number;
  /** From the request's leaving to the end of its answer; zero where it was not sent. */
  modelNs: number;
  readonly target: string | null;
  /** Null where no model was waited for. */
  cacheHit: boolean | null;
  waitedUs: number;
}

export function beginOutcome(request: InvocationRequest): InvocationOutcome {
  return { status: 0, modelNs: 0, target: request.targetModel, cacheHit: null, waitedUs: 0 };
}

/** `totalNs`: from the request's receipt to its end. */
export function recordOutcome(metrics: VariantMetrics, outcome: InvocationOutcome, totalNs: number): void {
  const { status, modelNs, target, cacheHit, waitedUs } = outcome;
  metrics.record("Invocations", 1);
  metrics.record("Invocation4XXErrors", status >= 400 && status < 500 ? 1 : 0);
  metrics.record("Invocation5XXErrors", status >= 500 ? 1 : 0);
  metrics.record("InvocationModelErrors", status >= 200 && status < 300 ? 0 : 1);
  if (modelNs > 0) {
    metrics.record("ModelLatency", modelNs / 1000);
    metrics.record("OverheadLatency", Math.max(0, totalNs - modelNs) / 1000);
  }
  if (cacheHit === null || target === null) return;
  metrics.recordMultiModel("ModelCacheHit", cacheHit ? 1 : 0);
  if (!cacheHit) metrics.recordMultiModel("ModelLoadingWaitTime", waitedUs);
  metrics.recordModel(target, "Invocations", 1);
  metrics.recordModel(target, "ModelCacheHit", cacheHit ? 1 : 0);
  metrics.recordModel(target, "ModelLatency", modelNs / 1000);
}
