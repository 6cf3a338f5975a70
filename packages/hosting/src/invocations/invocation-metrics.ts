import type { AwsError } from "@galatea/base";
import type { VariantMetrics } from "../series/index.ts";
import type { ChainHop } from "./container-chain.ts";
import type { InvocationRequest } from "./invocation.ts";
import {
  errorsBy,
  outcomeOfError,
  outcomeReport,
  type InvocationOutcome,
  type OutcomeReport,
} from "./invocation-outcome.ts";

/** Data about one invocation. Together with its outcome, all metrics of the invocation are recorded from it. */
export interface InvocationTrace {
  readonly hops: readonly ChainHop[];
  readonly target: string | null;
  /** True if the model was already loaded. Null if the request had no target model or did not acquire it. */
  cacheHit: boolean | null;
  waitedUs: number;
  /** Monotonic time of the first chunk of a streamed response; 0 before. */
  firstChunkNs: number;
}

export function beginTrace(
  { targetModel }: Pick<InvocationRequest, "targetModel">,
  hops: readonly ChainHop[],
): InvocationTrace {
  return { hops, target: targetModel, cacheHit: null, waitedUs: 0, firstChunkNs: 0 };
}

/**
 * Records the metrics of an invocation. `nowNs` is the monotonic time of its end, and `totalNs` the time since the
 * request was received.
 */
export function recordOutcome(
  metrics: VariantMetrics,
  { trace, outcome }: { readonly trace: InvocationTrace; readonly outcome: InvocationOutcome },
  { nowNs, totalNs }: { readonly nowNs: number; readonly totalNs: number },
): void {
  const report = outcomeReport(outcome);
  if (report.Invocations === 0) return;
  const { hops, target, cacheHit, waitedUs } = trace;
  const modelNs = modelTimeNs(hops, nowNs);
  const overheadNs = Math.max(0, totalNs - modelNs);
  metrics.record("Invocations", report.Invocations);
  metrics.record("Invocation4XXErrors", report.Invocation4XXErrors);
  metrics.record("Invocation5XXErrors", report.Invocation5XXErrors);
  metrics.record("InvocationModelErrors", report.InvocationModelErrors);
  recordStream(metrics, trace, { report, receivedNs: nowNs - totalNs });
  if (modelNs > 0) {
    metrics.record("ModelLatency", modelNs / 1000);
    metrics.record("OverheadLatency", overheadNs / 1000);
  }
  for (const hop of hops) {
    if (hop.sentNs === 0) continue;
    const { containerName } = hop.target.place;
    metrics.recordContainer(containerName, "Invocations", 1);
    const errors = errorsBy(hop.status);
    metrics.recordContainer(containerName, "Invocation4XXErrors", errors.Invocation4XXErrors);
    metrics.recordContainer(containerName, "Invocation5XXErrors", errors.Invocation5XXErrors);
    metrics.recordContainer(containerName, "ContainerLatency", hopTimeNs(hop, nowNs) / 1000);
    metrics.recordContainer(containerName, "OverheadLatency", overheadNs / 1000);
  }
  if (cacheHit === null || target === null) return;
  metrics.recordMultiModel("ModelCacheHit", cacheHit ? 1 : 0);
  if (!cacheHit) metrics.recordMultiModel("ModelLoadingWaitTime", waitedUs);
  metrics.recordTargetModel(target, "Invocations", 1);
  metrics.recordTargetModel(target, "ModelCacheHit", cacheHit ? 1 : 0);
  metrics.recordTargetModel(target, "ModelLatency", modelNs / 1000);
}

/** Records a request that is rejected before it reaches a container. */
export function recordRejection(
  metrics: VariantMetrics,
  request: Pick<InvocationRequest, "targetModel" | "receivedNs">,
  { error, nowNs }: { readonly error: AwsError; readonly nowNs: number },
): void {
  const outcome = outcomeOfError(error, { isCancelled: false, hasResponse: false });
  const trace = beginTrace(request, []);
  recordOutcome(metrics, { trace, outcome }, { nowNs, totalNs: nowNs - request.receivedNs });
}

function recordStream(
  metrics: VariantMetrics,
  { firstChunkNs, hops }: InvocationTrace,
  { report, receivedNs }: { readonly report: OutcomeReport; readonly receivedNs: number },
): void {
  if (firstChunkNs === 0) return;
  const sentNs = Math.min(...hops.filter((hop) => hop.sentNs > 0).map((hop) => hop.sentNs));
  metrics.recordStream("FirstChunkLatency", (firstChunkNs - receivedNs) / 1000);
  metrics.recordStream("FirstChunkModelLatency", (firstChunkNs - sentNs) / 1000);
  metrics.recordStream("FirstChunkOverheadLatency", (sentNs - receivedNs) / 1000);
  metrics.recordStream("MidStreamErrors", report.MidStreamErrors);
}

/**
 * Records the model latency and the error counts of an asynchronous request. Asynchronous inference records its other
 * metrics.
 */
export function recordModelTime(
  metrics: VariantMetrics,
  { trace, outcome }: { readonly trace: InvocationTrace; readonly outcome: InvocationOutcome },
  nowNs: number,
): void {
  const report = outcomeReport(outcome);
  if (report.Invocations === 0) return;
  const modelNs = modelTimeNs(trace.hops, nowNs);
  metrics.record("Invocation4XXErrors", report.Invocation4XXErrors);
  metrics.record("Invocation5XXErrors", report.Invocation5XXErrors);
  if (modelNs > 0) metrics.record("ModelLatency", modelNs / 1000);
}

/**
 * Returns the smaller of two times: the sum of the containers' times, and the time from the first request to the last
 * response. The sum counts time twice in which two containers work concurrently. The other time includes pauses between
 * containers.
 */
function modelTimeNs(hops: readonly ChainHop[], nowNs: number): number {
  let sumNs = 0;
  let fromNs = Infinity;
  let untilNs = 0;
  for (const hop of hops) {
    if (hop.sentNs === 0) continue;
    const timeNs = hopTimeNs(hop, nowNs);
    sumNs += timeNs;
    fromNs = Math.min(fromNs, hop.sentNs);
    untilNs = Math.max(untilNs, hop.sentNs + timeNs);
  }
  return sumNs === 0 ? 0 : Math.min(sumNs, untilNs - fromNs);
}

const hopTimeNs = ({ sentNs, endedNs }: ChainHop, nowNs: number) => (endedNs === 0 ? nowNs : endedNs) - sentNs;
