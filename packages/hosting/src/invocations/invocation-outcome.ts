import type { VariantMetrics } from "../series/index.ts";
import type { Hop } from "./container-chain.ts";
import type { InvocationRequest } from "./invocation.ts";

/** The outcome of one invocation, from which all its metrics are recorded once. */
export interface InvocationOutcome {
  /** Zero until the last container, or an error of ours, sets it. */
  status: number;
  readonly hops: readonly Hop[];
  readonly target: string | null;
  /** Null if no model was waited for. */
  cacheHit: boolean | null;
  waitedUs: number;
  /** Time of the first chunk of a streamed response; zero before. */
  firstPartNs: number;
  /** True if a streamed response ended early, other than by its client's disconnect. */
  isBrokenOff: boolean;
}

export function beginOutcome(request: Pick<InvocationRequest, "targetModel">, hops: readonly Hop[]): InvocationOutcome {
  return {
    status: 0,
    hops,
    target: request.targetModel,
    cacheHit: null,
    waitedUs: 0,
    firstPartNs: 0,
    isBrokenOff: false,
  };
}

/** `totalNs`: from the request's receipt to its end, which is `nowNs`. */
export function recordOutcome(
  metrics: VariantMetrics,
  outcome: InvocationOutcome,
  { nowNs, totalNs }: { readonly nowNs: number; readonly totalNs: number },
): void {
  const { status, hops, target, cacheHit, waitedUs, isBrokenOff } = outcome;
  const modelNs = modelTimeNs(hops, nowNs);
  const overheadNs = Math.max(0, totalNs - modelNs);
  metrics.record("Invocations", 1);
  metrics.record("Invocation4XXErrors", isClientError(status) ? 1 : 0);
  metrics.record("Invocation5XXErrors", status >= 500 ? 1 : 0);
  metrics.record("InvocationModelErrors", status >= 200 && status < 300 && !isBrokenOff ? 0 : 1);
  recordStream(metrics, outcome, nowNs - totalNs);
  if (modelNs > 0) {
    metrics.record("ModelLatency", modelNs / 1000);
    metrics.record("OverheadLatency", overheadNs / 1000);
  }
  for (const hop of hops) {
    if (hop.sentNs === 0) continue;
    const { containerName } = hop.target.place;
    metrics.recordContainer(containerName, "Invocations", 1);
    metrics.recordContainer(containerName, "Invocation4XXErrors", isClientError(hop.status) ? 1 : 0);
    metrics.recordContainer(containerName, "Invocation5XXErrors", hop.status >= 500 ? 1 : 0);
    metrics.recordContainer(containerName, "ContainerLatency", hopTimeNs(hop, nowNs) / 1000);
    metrics.recordContainer(containerName, "OverheadLatency", overheadNs / 1000);
  }
  if (cacheHit === null || target === null) return;
  metrics.recordMultiModel("ModelCacheHit", cacheHit ? 1 : 0);
  if (!cacheHit) metrics.recordMultiModel("ModelLoadingWaitTime", waitedUs);
  metrics.recordModel(target, "Invocations", 1);
  metrics.recordModel(target, "ModelCacheHit", cacheHit ? 1 : 0);
  metrics.recordModel(target, "ModelLatency", modelNs / 1000);
}

/** Records a request that reached no container. */
export function recordRefusal(
  metrics: VariantMetrics,
  request: Pick<InvocationRequest, "targetModel" | "receivedNs">,
  { status, nowNs }: { readonly status: number; readonly nowNs: number },
): void {
  const outcome = { ...beginOutcome(request, []), status };
  recordOutcome(metrics, outcome, { nowNs, totalNs: nowNs - request.receivedNs });
}

function recordStream(
  metrics: VariantMetrics,
  { firstPartNs, isBrokenOff, hops }: InvocationOutcome,
  receivedNs: number,
): void {
  if (firstPartNs === 0) return;
  const sentNs = Math.min(...hops.filter((hop) => hop.sentNs > 0).map((hop) => hop.sentNs));
  metrics.recordStream("FirstChunkLatency", (firstPartNs - receivedNs) / 1000);
  metrics.recordStream("FirstChunkModelLatency", (firstPartNs - sentNs) / 1000);
  metrics.recordStream("FirstChunkOverheadLatency", (sentNs - receivedNs) / 1000);
  metrics.recordStream("MidStreamErrors", isBrokenOff ? 1 : 0);
}

/** Records the model time of a queued request, which has metrics of its own for the rest. */
export function recordModelTime(metrics: VariantMetrics, { hops, status }: InvocationOutcome, nowNs: number): void {
  const modelNs = modelTimeNs(hops, nowNs);
  metrics.record("Invocation4XXErrors", status >= 400 && status <= 499 ? 1 : 0);
  metrics.record("Invocation5XXErrors", status >= 500 ? 1 : 0);
  if (modelNs > 0) metrics.record("ModelLatency", modelNs / 1000);
}

/** Returns the sum of the containers' times; where one responds while the next already works, that time counts once. */
function modelTimeNs(hops: readonly Hop[], nowNs: number): number {
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

const hopTimeNs = ({ sentNs, endedNs }: Hop, nowNs: number) => (endedNs === 0 ? nowNs : endedNs) - sentNs;

const isClientError = (status: number) => status >= 400 && status < 500;
