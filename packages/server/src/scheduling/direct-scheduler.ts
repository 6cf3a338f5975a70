import type { InferenceError } from "@galatea/base";
import type { InferenceRequest, Instance, RequestRecord } from "../inference/index.ts";
import { Drain } from "./drain.ts";
import { InstancePool, type PoolEvents } from "./instance-pool.ts";
import type { SchedulerOptions } from "./options.ts";
import { QueuedRequest, type RequestOwner, type UnsettledState } from "./queued-request.ts";
import { queueFullError, requestCancelled, schedulerStoppingError } from "./refusals.ts";
import { RequestList } from "./request-list.ts";
import type { Scheduler, SchedulerResult } from "./scheduler.ts";

/**
 * Creates a scheduler that runs each request alone, in order of arrival, on the least loaded instance. As in Triton, a queue timeout has no
 * effect here; it is only passed to the backend.
 */
export function createDirectScheduler(instances: readonly Instance[], options: SchedulerOptions): Scheduler {
  return new DirectScheduler(instances, options);
}

class DirectScheduler implements Scheduler, RequestOwner, PoolEvents {
  readonly #queue = new RequestList<QueuedRequest>();
  readonly #pool: InstancePool;
  readonly #options: SchedulerOptions;
  readonly #drain = new Drain();

  constructor(instances: readonly Instance[], options: SchedulerOptions) {
    this.#options = options;
    this.#pool = new InstancePool(instances, { clock: options.clock, prefetches: true }, this);
  }

  get pendingCount(): number {
    return this.#queue.length + this.#pool.waitingCount;
  }

  infer(request: InferenceRequest, record: RequestRecord, releaseInputs: () => void): Promise<SchedulerResult> {
    const refusal = this.#refusal(request);
    if (refusal !== null) {
      releaseInputs();
      return Promise.reject(refusal);
    }
    record.queuedNs = this.#options.clock.monotonicNs();
    const queued = new QueuedRequest(request, record, releaseInputs, this);
    this.#queue.append(queued);
    if (this.#queue.first === queued) this.recovered();
    return queued.promise;
  }

  close(): Promise<void> {
    this.#drain.closing = true;
    this.#drainIfIdle();
    return this.#drain.closed;
  }

  abandon(error: InferenceError): void {
    for (let next = this.#queue.first; next !== null; next = this.#queue.first) next.abandon(error);
    this.#pool.abandon(error);
  }

  requestAbandoned(request: QueuedRequest, was: UnsettledState): void {
    if (was !== "queued") return;
    this.#queue.remove(request);
    this.#drainIfIdle();
  }

  freed(): void {
    this.recovered();
  }

  handedBack(requests: readonly QueuedRequest[]): void {
    for (const request of requests) this.#queue.putBack(request);
    this.recovered();
  }

  recovered(): void {
    while (this.#queue.first !== null) {
      const slot = this.#pool.free();
      if (slot === null) return;
      const next = this.#queue.first;
      this.#queue.remove(next);
      this.#pool.start(slot, [next]);
    }
  }

  settle(request: QueuedRequest, outcome: SchedulerResult | InferenceError): void {
    request.settle(outcome);
  }

  idle(): void {
    this.#drainIfIdle();
  }

  #refusal(request: InferenceRequest): InferenceError | null {
    if (this.#drain.closing) return schedulerStoppingError(request);
    if (request.signal?.aborted) return requestCancelled(request);
    const waitingCount = this.#queue.length + this.#pool.respondingCount;
    return waitingCount >= this.#options.queueLengthMax ? queueFullError(request) : null;
  }

  #isIdle(): boolean {
    return this.#queue.length === 0 && this.#pool.isIdle;
  }

  #drainIfIdle(): void {
    if (this.#drain.closing && this.#isIdle()) this.#drain.finish();
  }
}
