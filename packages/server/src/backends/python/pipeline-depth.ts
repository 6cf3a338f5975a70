import type { Clock } from "@galatea/base";
import { pollableNs } from "./busy-polling.ts";

/**
 * Duration in nanoseconds above which an execution is slow. A request should not wait for a slow execution while another instance is free.
 */
const slowNs = 1_000_000;
/** Time in nanoseconds after a slow execution in which another slow one is expected. */
const slowMemoryNs = 10_000_000_000;

/**
 * Determines how many executions are sent to an instance ahead of time, from the durations of the model's executions in all instances. The
 * next execution waits in the worker's socket while the worker runs the previous one, which hides the latency of sending it. A worker that
 * executes faster than it wakes up gets several. A sent execution cannot be moved to another instance. Therefore a model with several
 * instances gets none ahead of time while an execution may be slow.
 */
export class PipelineDepth {
  readonly #clock: Clock;
  readonly #isAlone: boolean;
  #lastRunNs = Number.POSITIVE_INFINITY;
  #slowAtNs: number;
  /** True after the model has called another model. An execution that is queued behind such a call may wait long, or deadlock. */
  calls = false;

  constructor(clock: Clock, instanceCount: number) {
    this.#clock = clock;
    this.#isAlone = instanceCount === 1;
    this.#slowAtNs = clock.monotonicNs();
  }

  /** True if the last execution was shorter than the event loop needs to sleep and wake up. */
  get isBrief(): boolean {
    return this.#lastRunNs <= pollableNs;
  }

  /** Records the duration of an execution, as measured by its worker. */
  ran(durationNs: number): void {
    this.#lastRunNs = durationNs;
    if (!this.#isAlone && durationNs > slowNs) this.#slowAtNs = this.#clock.monotonicNs();
  }

  /** Returns the pipeline depth of an instance that has been executing since `sinceNs`; null for an idle one. */
  executionsMax(sinceNs: number | null): number {
    if (this.calls) return 1;
    if (!this.#isAlone && sinceNs !== null) {
      const nowNs = this.#clock.monotonicNs();
      if (nowNs - sinceNs > slowNs || nowNs - this.#slowAtNs < slowMemoryNs) return 1;
    }
    return this.isBrief ? 8 : 2;
  }
}
