import type { AwsError } from "@galatea/base";
import type { VariantMetrics } from "../series/index.ts";
import type { ChainHop } from "./container-chain.ts";
import type { InvocationRequest } from "./invocation.ts";
import { errorsBy, outcomeOfError, outcomeRow, type InvocationOutcome, type OutcomeRow } from "./invocation-outcome.ts";

/** The facts about one invocation from which, with its outcome, all its metrics are recorded once. */
export interface InvocationTrace {
  readonly hops: readonly ChainHop[];
  readonly target: string | null;
  /** Null if no model was waited for. */
  cacheHit: boolean | null;
  waitedUs: number;
  /** Time of the first chunk of a streamed response; zero before. */
  firstPartNs: number;
}

export function beginTrace(
  { targetModel }: Pick<InvocationRequest, "targetModel">,
  hops: readonly ChainHop[],
): InvocationTrace {
  return { hops, target: targetModel, cacheHit: null, waitedUs: 0, firstPartNs: 0 };
}

/** `totalNs`: from the request's receipt to its end, which is `nowNs`. */
export function recordOutcome(
  metrics: VariantMetrics,
  { trace, outcome }: { readonly trace: InvocationTrace; readonly outcome: InvocationOutcome },
  { nowNs, totalNs }: { readonly nowNs: number; readonly totalNs: number },
): void {
  const row = outcomeRow(outcome);
  if (row.Invocations === 0) return;
  const { hops, target, cacheHit, waitedUs } = trace;
  const modelNs = modelTimeNs(hops, nowNs);
  const overheadNs = Math.max(0, totalNs - modelNs);
  metrics.record("Invocations", row.Invocations);
  metrics.record("Invocation4XXErrors", row.Invocation4XXErrors);
  metrics.record("Invocation5XXErrors", row.Invocation5XXErrors);
  metrics.record("InvocationModelErrors", row.InvocationModelErrors);
  recordStream(metrics, trace, { row, receivedNs: nowNs - totalNs });
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

/** Records a request that is rejected with an error before it reaches a container. */
export function recordRefusal(
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
  { firstPartNs, hops }: InvocationTrace,
  { row, receivedNs }: { readonly row: OutcomeRow; readonly receivedNs: number },
): void {
  if (firstPartNs === 0) return;
  const sentNs = Math.min(...hops.filter((hop) => hop.sentNs > 0).map((hop) => hop.sentNs));
  metrics.recordStream("FirstChunkLatency", (firstPartNs - receivedNs) / 1000);
  metrics.recordStream("FirstChunkModelLatency", (firstPartNs - sentNs) / 1000);
  metrics.recordStream("FirstChunkOverheadLatency", (sentNs - receivedNs) / 1000);
  metrics.recordStream("MidStreamErrors", row.MidStreamErrors);
}

/** Records the model time and the error counts of an asynchronous request; its other metrics are recorded elsewhere. */
export function recordModelTime(
  metrics: VariantMetrics,
  { trace, outcome }: { readonly trace: InvocationTrace; readonly outcome: InvocationOutcome },
  nowNs: number,
): void {
  const row = outcomeRow(outcome);
  if (row.Invocations === 0) return;
  const modelNs = modelTimeNs(trace.hops, nowNs);
  metrics.record("Invocation4XXErrors", row.Invocation4XXErrors);
  metrics.record("Invocation5XXErrors", row.Invocation5XXErrors);
  if (modelNs > 0) metrics.record("ModelLatency", modelNs / 1000);
}

/** Returns the sum of the containers' times; where one responds while the next already works, that time counts once. */
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
