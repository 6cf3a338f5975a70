import type { DynamicBatchingConfig, ModelConfig, QueuePolicy } from "../modelconfig/index.ts";
import type { InferenceRequest } from "../inference/index.ts";

/** The parameters of batching, converted to the units in which the scheduler compares them. */
export interface BatchPolicy {
  /** Maximum batch size; at least 1. */
  readonly batchSizeMax: number;
  readonly preferredBatchSizes: ReadonlySet<number>;
  readonly preferredBatchSizeLargest: number;
  /** Maximum time for which a request waits for others; 0 if batches never wait for more requests. */
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

/**
 * Returns whether requests can be removed from the queue out of order or without an execution, because there is a queue limit, a timeout,
 * or priorities.
 */
export function hasQueueRules(scheduling: DynamicBatchingConfig): boolean {
  const policies = [scheduling.defaultQueuePolicy, ...scheduling.priorityQueuePolicy.values()];
  return scheduling.priorityLevels > 1 || policies.some(hasRules);
}

function hasRules(policy: QueuePolicy): boolean {
  return policy.queueLengthMax > 0 || policy.defaultTimeoutUs > 0 || policy.allowTimeoutOverride;
}

/** The properties of a waiting request that determine a batch. */
export interface BatchCandidate {
  readonly batchKey: string;
  readonly record: { readonly batchSize: number; readonly queuedNs: number };
}

/** Waiting requests in order: by priority, then by arrival. */
export interface CandidateQueue<Candidate extends BatchCandidate> {
  first(): Candidate | null;
  after(candidate: Candidate): Candidate | null;
}

/**
 * The decision to send a batch or to wait. `complete` is true if waiting cannot improve the batch, because it is full or has reached the
 * largest preferred size.
 */
export type BatchDecision =
  | { readonly kind: "send"; readonly requestCount: number; readonly complete: boolean }
  | { readonly kind: "wait"; readonly untilNs: number };

/**
 * Chooses a batch by Triton's rule. Scans the waiting requests in order, while they fit in the largest batch and have the same batch key.
 * If a scanned prefix has a preferred size and the oldest request may still wait, that prefix is sent. Otherwise all scanned requests are
 * sent if the batch cannot grow, has reached the largest preferred size, or contains a request that may not wait any longer. Otherwise the
 * batch waits. Preferred sizes are not upper bounds. The queue must not be empty.
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
 * Returns the time until which a request may wait; Infinity without a limit. The policy's timeout counts from the arrival in this queue. If
 * the policy allows it, an earlier deadline of the request applies too, even if the policy has no timeout. In that case Triton ignores the
 * request's deadline, because it compares the deadline with a timeout of 0.
 */
export function queueDeadlineNs(policy: QueuePolicy, queuedNs: number, requestDeadlineNs: number): number {
  const { defaultTimeoutUs, allowTimeoutOverride } = policy;
  const ownNs = defaultTimeoutUs > 0 ? queuedNs + defaultTimeoutUs * 1000 : Number.POSITIVE_INFINITY;
  return allowTimeoutOverride ? Math.min(ownNs, requestDeadlineNs) : ownNs;
}

/** An input that must agree (in shape or presence) in all requests of a batch. */
export interface BatchKeyRule {
  readonly name: string;
  readonly comparesShape: boolean;
}

/**
 * Returns the rules of a model: variable shapes must agree unless ragged batches are allowed; optional inputs must be in all requests or
 * in none.
 */
export function batchKeyRules(config: ModelConfig): readonly BatchKeyRule[] {
  return config.inputs
    .map((input) => ({ input, comparesShape: !input.allowRaggedBatch && input.dims.some((dim) => dim < 0) }))
    .filter(({ input, comparesShape }) => comparesShape || input.optional)
    .map(({ input, comparesShape }) => ({ name: input.name, comparesShape }));
}

/** Returns a key that is equal for requests that may share a batch. The batch axis is ignored. */
export function computeBatchKey(rules: readonly BatchKeyRule[], request: InferenceRequest): string {
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
