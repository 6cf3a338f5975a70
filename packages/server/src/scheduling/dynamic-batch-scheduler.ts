import { assert, type InferenceError } from "@galatea/base";
import type { InferenceRequest, Instance, RequestRecord } from "../inference/index.ts";
import type { ModelConfig } from "../modelconfig/index.ts";
import {
  computeBatchKey,
  batchKeyRules,
  batchPolicy,
  chooseBatch,
  hasQueueRules,
  type BatchKeyRule,
  type BatchPolicy,
} from "./batch-policy.ts";
import { Drain } from "./drain.ts";
import { InstancePool, type EndedExecution, type PoolEvents } from "./instance-pool.ts";
import type { SchedulerOptions } from "./options.ts";
import { PriorityQueue } from "./priority-queue.ts";
import { QueuedRequest, type RequestOwner, type UnsettledState } from "./queued-request.ts";
import { queueFullError, requestCancelled, schedulerStoppingError, queueTimeoutError } from "./refusals.ts";
import { BatchDelayEstimator } from "./batch-delay-estimator.ts";
import { ResponseOrder } from "./response-order.ts";
import type { Scheduler, SchedulerResult } from "./scheduler.ts";
import { WakeUp } from "./wake-up.ts";

/**
 * Creates a scheduler that forms batches while requests wait.
 *
 * - While every instance executes, batches continue to grow. An instance that accepts a second execution in advance gets one only when that
 *   batch cannot grow any more. Handing over a small batch early hides about 20 us but costs a whole execution. With priorities or a queue
 *   policy no batch is handed over in advance, because these rules no longer apply to requests that an instance has received.
 * - Requests that arrive in one event loop tick are batched at the end of the tick. Without this, the first request of a burst would be
 *   executed alone and the others after it.
 * - Without a configured delay, a batch still waits for the next requests of clients whose batch has just ended, if that wait is cheaper
 *   than another execution (`BatchDelayEstimator`).
 * - A timer enforces queue timeouts, also while every instance is busy. A timeout no longer applies after the batch was handed to an
 *   instance; it applies again if the instance hands the request back.
 * - `preserve_ordering` sends responses in the order in which their requests arrived, across all instances. Cancelled and timed-out
 *   requests settle at once.
 */
export function createDynamicBatchScheduler(
  instances: readonly Instance[],
  config: ModelConfig,
  options: SchedulerOptions,
): Scheduler {
  return new DynamicBatchScheduler(instances, config, options);
}

class DynamicBatchScheduler implements Scheduler, RequestOwner, PoolEvents {
  readonly #options: SchedulerOptions;
  readonly #policy: BatchPolicy;
  readonly #keyRules: readonly BatchKeyRule[];
  readonly #queue: PriorityQueue;
  readonly #order: ResponseOrder | null;
  readonly #pool: InstancePool;
  readonly #drain = new Drain();
  readonly #delayOver: WakeUp;
  /**
   * Decides whether a batch waits for returning clients. Null if the model has a queue delay, preferred sizes other than the maximum, or
   * several instances.
   */
  readonly #delayEstimator: BatchDelayEstimator | null;
  #gathering: Disposable | null = null;
  readonly #form = () => this.#formBatches();
  #forming: NodeJS.Immediate | null = null;
  #expiry: { readonly atNs: number; readonly timer: Disposable } | null = null;

  constructor(instances: readonly Instance[], config: ModelConfig, options: SchedulerOptions) {
    assert(config.scheduling.kind === "dynamic", `model '${config.name}' has no dynamic batching`);
    this.#options = options;
    this.#policy = batchPolicy(config, config.scheduling);
    this.#keyRules = batchKeyRules(config);
    this.#queue = new PriorityQueue(config.scheduling);
    this.#order = config.scheduling.preserveOrdering ? new ResponseOrder() : null;
    this.#pool = new InstancePool(
      instances,
      { clock: options.clock, prefetches: !hasQueueRules(config.scheduling) },
      this,
    );
    this.#delayOver = new WakeUp(options.clock, this.#form);
    const { batchSizeMax, preferredBatchSizes, queueDelayMaxNs } = this.#policy;
    const isLeftToUs = queueDelayMaxNs === 0 && [...preferredBatchSizes].every((size) => size === batchSizeMax);
    this.#delayEstimator = isLeftToUs && instances.length === 1 ? new BatchDelayEstimator() : null;
  }

  get pendingCount(): number {
    return this.#queue.length + this.#pool.waitingCount;
  }

  infer(request: InferenceRequest, record: RequestRecord, releaseInputs: () => void): Promise<SchedulerResult> {
    const level = this.#queue.levelOf(request);
    const refusal = this.#refusal(request, level);
    if (refusal !== null) {
      releaseInputs();
      return Promise.reject(refusal);
    }
    record.queuedNs = this.#options.clock.monotonicNs();
    const queued = new QueuedRequest(request, record, releaseInputs, this);
    if (this.#keyRules.length > 0) queued.batchKey = computeBatchKey(this.#keyRules, request);
    this.#delayEstimator?.arrived(record.queuedNs);
    this.#queue.add(queued, level);
    this.#order?.enter(queued);
    this.#forming ??= setImmediate(this.#form);
    if (queued.heapIndex >= 0) this.#armExpiry();
    return queued.promise;
  }

  close(): Promise<void> {
    this.#drain.closing = true;
    this.#drainIfIdle();
    return this.#drain.closed;
  }

  abandon(error: InferenceError): void {
    for (let next = this.#queue.first(); next !== null; next = this.#queue.first()) next.abandon(error);
    this.#pool.abandon(error);
  }

  requestAbandoned(request: QueuedRequest, was: UnsettledState): void {
    if (was === "queued") this.#queue.remove(request);
    this.#order?.left(was);
    this.#drainIfIdle();
  }

  freed({ requestCount, startedNs, isFailed }: EndedExecution): void {
    if (this.#delayEstimator !== null) {
      const nowNs = this.#options.clock.monotonicNs();
      this.#delayEstimator.ended(requestCount, isFailed ? null : nowNs - startedNs, nowNs);
    }
    this.#formBatches();
  }

  handedBack(requests: readonly QueuedRequest[]): void {
    for (const request of requests) this.#queue.putBack(request);
    this.#formBatches();
    this.#armExpiry();
  }

  recovered(): void {
    this.#formBatches();
  }

  settle(request: QueuedRequest, outcome: SchedulerResult | InferenceError): void {
    if (this.#order === null) request.settle(outcome);
    else this.#order.settle(request, outcome);
  }

  idle(): void {
    this.#drainIfIdle();
  }

  #refusal(request: InferenceRequest, level: number): InferenceError | null {
    if (this.#drain.closing) return schedulerStoppingError(request);
    if (request.signal?.aborted) return requestCancelled(request);
    if (!this.#isFull(level)) return null;
    // Requests of this event loop tick count as pending only if no instance is free for them.
    if (this.#forming !== null) this.#formBatches();
    return this.#isFull(level) ? queueFullError(request) : null;
  }

  #isFull(level: number): boolean {
    const endedCount = this.#order?.endedCount ?? 0;
    const waitingCount = this.#queue.length + this.#pool.respondingCount + endedCount;
    return waitingCount >= this.#options.queueLengthMax || this.#queue.isFull(level);
  }

  #formBatches(): void {
    if (this.#forming !== null) clearImmediate(this.#forming);
    this.#forming = null;
    this.#gathering?.[Symbol.dispose]();
    this.#gathering = null;
    if (this.#queue.length === 0) return;
    const nowNs = this.#options.clock.monotonicNs();
    this.#expire(nowNs);
    while (this.#queue.length > 0) {
      const slot = this.#pool.free();
      if (slot === null) break;
      const decision = chooseBatch(this.#queue, this.#policy, nowNs);
      if (decision.kind === "wait") {
        if (slot.batches.length === 0) return this.#delayOver.set(decision.untilNs);
        break;
      }
      if (slot.batches.length === 0 && !decision.complete && this.#gathers(nowNs)) return;
      if (slot.batches.length > 0 && !decision.complete) break;
      this.#pool.start(slot, this.#take(decision.requestCount));
    }
    this.#delayOver[Symbol.dispose]();
  }

  /**
   * Returns whether the batch waits for returning clients, and sets the timer that ends the wait. A batch never waits while a queued
   * request has a deadline.
   */
  #gathers(nowNs: number): boolean {
    const untilNs = this.#delayEstimator?.waitUntilNs(nowNs) ?? null;
    if (untilNs === null || this.#queue.nextDeadlineNs() !== null) return false;
    this.#gathering = this.#options.clock.timer(Math.ceil((untilNs - nowNs) / 1e6), this.#form);
    return true;
  }

  #take(requestCount: number): readonly QueuedRequest[] {
    const batch: QueuedRequest[] = [];
    for (let index = 0; index < requestCount; index++) {
      const next = this.#queue.first() as QueuedRequest;
      this.#queue.remove(next);
      batch.push(next);
    }
    return batch;
  }

  #expire(nowNs: number): void {
    const expired = this.#queue.expire(nowNs);
    if (expired.length === 0) return;
    for (const request of expired) {
      request.reject(queueTimeoutError());
      request.releaseInputs();
      this.#order?.left("queued");
    }
    this.#drainIfIdle();
  }

  /**
   * Sets the timer for the earliest queue deadline, unless a timer already fires before it. When the timer fires, it is set again for the
   * next deadline. Timers have a resolution of milliseconds.
   */
  #armExpiry(): void {
    const atNs = this.#queue.nextDeadlineNs();
    if (atNs === null || (this.#expiry !== null && this.#expiry.atNs <= atNs)) return;
    this.#expiry?.timer[Symbol.dispose]();
    const delayMs = Math.max(1, Math.ceil((atNs - this.#options.clock.monotonicNs()) / 1e6));
    const timer = this.#options.clock.timer(delayMs, () => {
      this.#expiry = null;
      this.#expire(this.#options.clock.monotonicNs());
      this.#armExpiry();
    });
    this.#expiry = { atNs, timer };
  }

  #isIdle(): boolean {
    return this.#queue.length === 0 && this.#pool.isIdle;
  }

  #drainIfIdle(): void {
    if (!this.#drain.closing || !this.#isIdle()) return;
    this.#expiry?.timer[Symbol.dispose]();
    this.#delayOver[Symbol.dispose]();
    this.#gathering?.[Symbol.dispose]();
    this.#drain.finish();
  }
}
