import type { FleetOptions, RunningEndpoint } from "../endpoints/index.ts";
import { nameKey } from "../definitions/index.ts";
import type { QueuedEndpoint } from "./async-invocation.ts";
import { invocationsPerInstanceDefault, type AsyncLimits } from "./async-limits.ts";
import { AsyncMetrics } from "./async-metrics.ts";
import { DataLog } from "./data-log.ts";
import { InvocationQueue } from "./invocation-queue.ts";

export const queueKey = ({ name, createdMs }: QueuedEndpoint): string => `${nameKey(name)} ${createdMs}`;

type QueueDependencies = Pick<FleetOptions, "openSeries" | "openLog" | "clock">;

/** The request queue of one asynchronous endpoint. It counts the requests and bytes that the limits restrict. */
export class EndpointQueue {
  readonly endpoint: QueuedEndpoint;
  readonly waiting = new InvocationQueue();
  readonly metrics: AsyncMetrics;
  readonly log: DataLog;
  readonly pause = new QueuePause();
  /** Number of requests that instances process now. */
  runningCount = 0;
  #reservedCount = 0;
  #reservedBytes = 0;

  constructor(endpoint: QueuedEndpoint, { openSeries, openLog, clock }: QueueDependencies) {
    this.endpoint = endpoint;
    this.metrics = new AsyncMetrics(openSeries, endpoint.name);
    this.log = new DataLog(endpoint.name, openLog, clock);
  }

  /** Number of requests that wait, run, or are being written to disk. */
  get count(): number {
    return this.waiting.count + this.#reservedCount;
  }

  get inlineBytes(): number {
    return this.waiting.inlineBytes + this.#reservedBytes;
  }

  /** Reserves a queue slot for a request that is being written to disk. Dispose the result when the write has ended. */
  reserve(bytes: number): Disposable {
    this.#reservedCount += 1;
    this.#reservedBytes += bytes;
    return {
      [Symbol.dispose]: () => {
        this.#reservedCount -= 1;
        this.#reservedBytes -= bytes;
      },
    };
  }

  /** Returns whether a request waits, an instance has a free slot for it, and the queue is not paused. */
  canStartNext({ asyncInference, inServiceCount }: RunningEndpoint, nowMs: number): boolean {
    const each = asyncInference?.ClientConfig?.MaxConcurrentInvocationsPerInstance ?? invocationsPerInstanceDefault;
    return this.waiting.waitingCount > 0 && this.runningCount < each * inServiceCount && !this.pause.isOn(nowMs);
  }

  sample(nowMs: number, instanceCount: number): void {
    const { count: requestCount, oldestMs } = this.waiting;
    this.metrics.backlog({
      requestCount,
      instanceCount,
      oldestAgeMs: oldestMs === null ? 0 : Math.max(0, nowMs - oldestMs),
    });
  }
}

/** The pause of a queue after a temporary failure. Each further failure doubles the pause. */
class QueuePause {
  #untilMs = -Infinity;
  #forMs = 0;

  isOn(nowMs: number): boolean {
    return nowMs < this.#untilMs;
  }

  begin(nowMs: number, { pauseMsMin, pauseMsMax }: AsyncLimits): number {
    // Several concurrent requests can fail for one cause: only the first of them starts a pause.
    if (this.isOn(nowMs)) return this.#forMs;
    this.#forMs = Math.min(pauseMsMax, Math.max(pauseMsMin, 2 * this.#forMs));
    this.#untilMs = nowMs + this.#forMs;
    return this.#forMs;
  }

  close(): void {
    this.#forMs = 0;
  }
}
