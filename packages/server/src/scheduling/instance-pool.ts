import { InferenceError, type Clock } from "@galatea/base";
import {
  ExecutionNotStarted,
  releaseResponse,
  DeferredResponses,
  type Execution,
  type InferenceRequest,
  type Instance,
  type InstanceSupervision,
} from "../inference/index.ts";
import type { QueuedRequest } from "./queued-request.ts";
import type { SchedulerResult } from "./scheduler.ts";

/** An instance and its unfinished executions. */
export interface Slot {
  readonly instance: Instance;
  /** Batches that were handed to the instance and have not ended, in order; it executes the first one. */
  readonly batches: (readonly QueuedRequest[])[];
  /** True if the pool already waits for the next change of the instance's state. */
  isAwaited: boolean;
}

/** An execution that an instance has ended. */
export interface EndedExecution {
  readonly requestCount: number;
  readonly startedNs: number;
  /** True if every request failed. */
  readonly isFailed: boolean;
}

export interface PoolEvents {
  /** Called when an execution has ended and its instance can take another, before the batch's requests settle. */
  freed(execution: EndedExecution): void;
  /** Puts requests that the instance did not start back into their queue, in the batch's order and ahead of requests that arrived later. */
  handedBack(requests: readonly QueuedRequest[]): void;
  /** Called when an instance has recovered, and queued requests should be offered to the instances again. */
  recovered(): void;
  /** Settles a request of an ended batch, in the batch's order. Abandoned requests have settled before. */
  settle(request: QueuedRequest, outcome: SchedulerResult | InferenceError): void;
  /** Called when nothing executes and no responses are pending. */
  idle(): void;
}

export interface PoolOptions {
  readonly clock: Clock;
  /**
   * True if an instance may receive further batches while it executes. Queue rules (priorities, timeouts) do not apply to those batches any
   * more.
   */
  readonly prefetches: boolean;
}

/**
 * Hands batches to instances, up to `executionsMax` each, and settles their requests when they end. If a worker ends before it has started
 * a batch, the requests of that batch return to the queue, whose rules apply to them again.
 */
export class InstancePool {
  readonly #slots: readonly Slot[];
  readonly #prefetches: boolean;
  readonly #clock: Clock;
  readonly #events: PoolEvents;
  /**
   * Index at which the search for the next instance starts: after the instance that was used last (round robin among equally loaded ones).
   */
  #tick = 0;
  #executingCount = 0;
  /** Pending responses of requests that their instances have released. The value is null if no request receives the responses. */
  readonly #responding = new Map<DeferredResponses, QueuedRequest | null>();

  constructor(instances: readonly Instance[], { clock, prefetches: handsAhead }: PoolOptions, events: PoolEvents) {
    this.#slots = instances.map((instance) => ({ instance, batches: [], isAwaited: false }));
    this.#prefetches = handsAhead;
    this.#clock = clock;
    this.#events = events;
  }

  /** True if nothing executes and no responses are pending. */
  get isIdle(): boolean {
    return this.#executingCount === 0 && this.#responding.size === 0;
  }

  /** Number of requests that their instances have released and whose responses are pending. */
  get respondingCount(): number {
    return this.#responding.size;
  }

  /** Number of requests that wait at an instance for its current batch to end and were not abandoned. */
  get waitingCount(): number {
    let count = 0;
    for (const { batches } of this.#slots)
      for (let index = 1; index < batches.length; index++)
        for (const request of batches[index]!) if (request.at === "executing") count++;
    return count;
  }

  /**
   * Returns the least loaded instance that can take another execution; null if the batch must wait. If no instance has or will have a
   * worker, returns any instance, which then fails the batch.
   */
  free(): Slot | null {
    const slots = this.#slots;
    let best: Slot | null = null;
    let failed: Slot | null = null;
    let dormant: InstanceSupervision | null = null;
    let upCount = 0;
    for (let offset = 0; offset < slots.length; offset++) {
      const slot = slots[(this.#tick + offset) % slots.length] as Slot;
      const { supervision } = slot.instance;
      if (supervision !== null && supervision.state !== "up") {
        this.#awaitChange(slot, supervision);
        if (supervision.state === "failed") failed ??= slot;
        else if (supervision.state === "dormant") dormant ??= supervision;
        else upCount++;
        continue;
      }
      upCount++;
      if (slot.batches.length === 0) return slot;
      if (!this.#prefetches || slot.batches.length >= slot.instance.executionsMax) continue;
      if (best === null || slot.batches.length < best.batches.length) best = slot;
    }
    if (best === null && dormant !== null) {
      dormant.needed();
      // The dormant instance is starting. It gets the batch when it is running.
      if (dormant.state !== "dormant") return null;
    }
    return upCount === 0 ? failed : best;
  }

  #awaitChange(slot: Slot, supervision: InstanceSupervision): void {
    if (slot.isAwaited) return;
    slot.isAwaited = true;
    void supervision.changed().then(() => {
      slot.isAwaited = false;
      if (supervision.state !== "up" && supervision.state !== "failed") return this.#awaitChange(slot, supervision);
      this.#events.recovered();
    });
  }

  /** Hands a batch, whose requests are no longer in the queue, to an instance. */
  start(slot: Slot, batch: readonly QueuedRequest[]): void {
    slot.batches.push(batch);
    this.#executingCount++;
    this.#tick = (this.#slots.indexOf(slot) + 1) % this.#slots.length;
    const nowNs = this.#clock.monotonicNs();
    for (const request of batch) request.start(slot.instance, nowNs);
    void this.#run(slot, batch);
  }

  /** Settles all running requests with the error. */
  abandon(error: InferenceError): void {
    for (const { batches } of this.#slots)
      for (const batch of batches) for (const request of batch) request.abandon(error);
    for (const request of this.#responding.values()) request?.abandon(error);
  }

  #requeue(batch: readonly QueuedRequest[]): void {
    const waiting: QueuedRequest[] = [];
    for (const request of batch) {
      if (request.putBack()) waiting.push(request);
      else request.releaseInputs();
    }
    this.#events.handedBack(waiting);
    if (this.isIdle) this.#events.idle();
  }

  async #run(slot: Slot, batch: readonly QueuedRequest[]): Promise<void> {
    let outcome: Execution | InferenceError;
    try {
      outcome = await slot.instance.execute(requestsOf(batch));
      if (outcome.outcomes.length !== batch.length) outcome = this.#wrongCount(outcome, batch.length);
    } catch (error) {
      outcome = InferenceError.from(error);
    }
    slot.batches.splice(slot.batches.indexOf(batch), 1);
    this.#executingCount--;
    if (outcome instanceof ExecutionNotStarted) return this.#requeue(batch);
    this.#events.freed({
      requestCount: batch.length,
      startedNs: (batch[0] as QueuedRequest).record.startedNs,
      isFailed: outcome instanceof InferenceError || outcome.outcomes.every((each) => each instanceof InferenceError),
    });
    if (outcome instanceof InferenceError) {
      for (const request of batch) this.#end(request, outcome);
    } else this.#executed(batch, outcome);
    if (this.isIdle) this.#events.idle();
  }

  #executed(batch: readonly QueuedRequest[], execution: Execution): void {
    let batchSize = 0;
    for (const request of batch) batchSize += request.record.batchSize;
    let counted = false;
    for (let index = 0; index < batch.length; index++) {
      const request = batch[index] as QueuedRequest;
      const outcome = execution.outcomes[index] as Execution["outcomes"][number];
      if (request.at === "executing") {
        const record = request.record;
        record.computeInputNs = execution.computeInputNs;
        record.computeInferNs = execution.computeInferNs;
        record.computeOutputNs = execution.computeOutputNs;
        record.executedBatchSize = batchSize;
        // A batch that failed because there was no worker does not count as executed.
        const isExecuted = !(outcome instanceof InferenceError) || execution.computeInferNs > 0;
        record.countsExecution = isExecuted && !counted;
        counted ||= isExecuted;
      }
      if (outcome instanceof DeferredResponses) void this.#waitForResponses(outcome, request);
      else this.#end(request, outcome);
    }
  }

  /** Settles the request with the last of its responses. If `request` is null, releases that response instead. */
  async #waitForResponses(responses: DeferredResponses, request: QueuedRequest | null): Promise<void> {
    request?.releaseInputs();
    this.#responding.set(responses, request);
    const last = await responses.ended;
    this.#responding.delete(responses);
    if (request !== null) this.#events.settle(request, last ?? "sent");
    else if (last !== null && !(last instanceof InferenceError)) releaseResponse(last);
    if (this.isIdle) this.#events.idle();
  }

  /** Releases the responses of an execution that cannot be matched with its requests, and returns the error of the requests. */
  #wrongCount(execution: Execution, requestCount: number): InferenceError {
    const got = execution.outcomes.length;
    for (const outcome of execution.outcomes) {
      if (outcome instanceof DeferredResponses) void this.#waitForResponses(outcome, null);
      else if (!(outcome instanceof InferenceError)) releaseResponse(outcome);
    }
    return new InferenceError("INTERNAL", `the backend gave ${got} responses for a batch of ${requestCount} requests`);
  }

  #end(request: QueuedRequest, outcome: SchedulerResult | InferenceError): void {
    request.releaseInputs();
    this.#events.settle(request, outcome);
  }
}

function requestsOf(batch: readonly QueuedRequest[]): readonly InferenceRequest[] {
  if (batch.length === 1) return [(batch[0] as QueuedRequest).request];
  return batch.map((queued) => queued.request);
}
