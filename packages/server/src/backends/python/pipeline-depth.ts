import type { Clock } from "@galatea/base";
import { briefNs } from "./busy-polling.ts";

/** Runs longer than this are slow: a request should not wait behind one while another instance is free. */
const slowNs = 1_000_000;
/** Time after a slow run in which another one is expected. */
const slowMemoryNs = 10_000_000_000;

/**
 * Determines how many executions an instance is handed ahead, from the duration of the model's runs in all of its instances. The next
 * execution waits in the worker's socket while it runs the previous one, which hides its latency; a worker that runs faster than it wakes
 * up gets several. Executions that wait at one instance cannot move to another, so a model with several instances hands nothing ahead
 * while a run may be slow.
 */
export class PipelineDepth {
  readonly #clock: Clock;
  readonly #isAlone: boolean;
  #lastRunNs = Number.POSITIVE_INFINITY;
  #slowAtNs: number;
  /** True after the model has called others: an execution behind such a call may wait long, or for itself. */
  calls = false;

  constructor(clock: Clock, instanceCount: number) {
    this.#clock = clock;
    this.#isAlone = instanceCount === 1;
    this.#slowAtNs = clock.monotonicNs();
  }

  /** True if the last run ended before the event loop could have slept. */
  get isBrief(): boolean {
    return this.#lastRunNs <= briefNs;
  }

  /** Records the duration of a run, as its worker measured it. */
  ran(durationNs: number): void {
    this.#lastRunNs = durationNs;
    if (!this.#isAlone && durationNs > slowNs) this.#slowAtNs = this.#clock.monotonicNs();
  }

  /** Returns the pipeline depth of an instance that has been executing since `sinceNs`; null: it is idle. */
  executionsMax(sinceNs: number | null): number {
    if (this.calls) return 1;
    if (!this.#isAlone && sinceNs !== null) {
      const nowNs = this.#clock.monotonicNs();
      if (nowNs - sinceNs > slowNs || nowNs - this.#slowAtNs < slowMemoryNs) return 1;
    }
    return this.isBrief ? 8 : 2;
  }
}
