import type { DynamicBatchingConfig, ModelConfig, QueuePolicy } from "../modelconfig/index.ts";
import type { InferenceRequest } from "../inference/index.ts";

/** What decides about batches, with every field in the unit it is compared in. */
export interface BatchPolicy {
  /** At least 1. */
  readonly batchSizeMax: number;
  readonly preferredBatchSizes: ReadonlySet<number>;
  readonly preferredBatchSizeLargest: number;
  /** 0: never wait for company. */
  readonly queueDelayMaxNs: number;
}

export function batchPolicy(config: ModelConfig, scheduling: DynamicBatchingConfig): BatchPolicy {
  const batchSizeMax = Math.max(1, config.maxBatchSize);
  return {
    batchSizeMax,
    preferredBatchSizes: new Set(scheduling.preferredBatchSizes),
    preferredBatchSizeLargest: Math.max(0, ...scheduling.preferredBatchSizes) || batchSizeMax,
    queueDelayMaxNs: scheduling.queueDelayMaxUs * 1000,
  };
}

/** Whether it matters which request leaves the queue, and when: a bound on it, a timeout, or priorities. */
export function hasQueueRules(scheduling: DynamicBatchingConfig): boolean {
  const policies = [scheduling.defaultQueuePolicy, ...scheduling.priorityQueuePolicy.values()];
  return scheduling.priorityLevels > 1 || policies.some(hasRules);
}

function hasRules(policy: QueuePolicy): boolean {
  return policy.queueLengthMax > 0 || policy.defaultTimeoutUs > 0 || policy.allowTimeoutOverride;
}

/** What the choice of a batch looks at in a waiting request. */
export interface BatchCandidate {
  readonly batchKey: string;
  readonly record: { readonly batchSize: number; readonly queuedNs: number };
}

/** Waiting requests in the order they are served: by priority, within it by arrival. */
export interface CandidateQueue<Candidate extends BatchCandidate> {
  first(): Candidate | null;
  after(candidate: Candidate): Candidate | null;
}

/** `complete`: no later arrival could join this batch. */
export type BatchDecision =
  | { readonly kind: "send"; readonly requestCount: number; readonly complete: boolean }
  | { readonly kind: "wait"; readonly untilNs: number };

/**
 * Triton's rule. The longest prefix that fits the largest batch and agrees in shape is scanned; within it the largest
 * preferred size is remembered. A preferred size is sent while the oldest request's delay lasts. Otherwise everything scanned is
 * sent when it cannot grow, when it has reached the largest preferred size, or when no delay is left; else the batch waits
 * for the rest of its oldest request's delay. Preferred sizes are no upper bounds. The queue is not empty.
 */
export function chooseBatch<Candidate extends BatchCandidate>(
  queue: CandidateQueue<Candidate>,
  policy: BatchPolicy,
  nowNs: number,
): BatchDecision {
  let requestCount = 0;
  let batchSize = 0;
  let oldestNs = Number.POSITIVE_INFINITY;
  let batchKey = "";
  let preferredCount = 0;
  let preferredSize = 0;
  let full = false;
  for (let next = queue.first(); next !== null; next = queue.after(next)) {
    if (requestCount === 0) batchKey = next.batchKey;
    else if (batchSize + next.record.batchSize > policy.batchSizeMax || next.batchKey !== batchKey) {
      full = true;
      break;
    }
    requestCount++;
    batchSize += next.record.batchSize;
    if (next.record.queuedNs < oldestNs) oldestNs = next.record.queuedNs;
    if (policy.preferredBatchSizes.has(batchSize)) {
      preferredCount = requestCount;
      preferredSize = batchSize;
    }
    if (batchSize >= policy.batchSizeMax) break;
  }
  const delayNs = policy.queueDelayMaxNs;
  const delayIsOver = delayNs > 0 && nowNs - oldestNs >= delayNs;
  if (preferredCount > 0 && !delayIsOver) {
    const complete = preferredSize >= policy.preferredBatchSizeLargest;
    return { kind: "send", requestCount: preferredCount, complete };
  }
  const complete = full || batchSize >= policy.preferredBatchSizeLargest || batchSize >= policy.batchSizeMax;
  if (complete || delayNs === 0 || delayIsOver) return { kind: "send", requestCount, complete };
  return { kind: "wait", untilNs: oldestNs + delayNs };
}

/**
 * Until when a request may wait, Infinity without limit: as long as the policy says from its arrival in this queue. A request's own
 * deadline counts where overriding is allowed and it is earlier, also where the policy has no timeout (Triton compares with a timeout of 0
 * and so ignores it).
 */
export function queueDeadlineNs(policy: QueuePolicy, queuedNs: number, requestDeadlineNs: number): number {
  const { defaultTimeoutUs, allowTimeoutOverride } = policy;
  const ownNs = defaultTimeoutUs > 0 ? queuedNs + defaultTimeoutUs * 1000 : Number.POSITIVE_INFINITY;
  return allowTimeoutOverride ? Math.min(ownNs, requestDeadlineNs) : ownNs;
}

/** The inputs in which two requests of one batch may differ unless somebody looks. */
export interface BatchKeyRule {
  readonly name: string;
  readonly comparesShape: boolean;
}

/** Variable shapes must agree unless ragged batches are allowed; optional inputs must be in all requests or in none. */
export function batchKeyRules(config: ModelConfig): readonly BatchKeyRule[] {
  return config.inputs
    .map((input) => ({ input, comparesShape: !input.allowRaggedBatch && input.dims.some((dim) => dim < 0) }))
    .filter(({ input, comparesShape }) => comparesShape || input.optional)
    .map(({ input, comparesShape }) => ({ name: input.name, comparesShape }));
}

/** Equal for requests that may share a batch. The batch axis is left out. */
export function batchKeyOf(rules: readonly BatchKeyRule[], request: InferenceRequest): string {
  let key = "";
  for (const rule of rules) {
    const tensor = request.inputs.find((input) => input.name === rule.name);
    if (tensor === undefined) key += "-;";
    else if (!rule.comparesShape) key += "+;";
    else {
      for (let axis = 1; axis < tensor.shape.length; axis++) key += `${tensor.shape[axis]},`;
      key += ";";
    }
  }
  return key;
}
