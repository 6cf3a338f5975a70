import type { Clock } from "@galatea/base";
import { briefNs } from "./traffic.ts";

/** Nobody should wait behind a run longer than this while another instance is free. */
const slowNs = 1_000_000;
/** For how long a slow run is expected to have been not the last. */
const slowMemoryNs = 10_000_000_000;

/**
 * How long the runs of a model take, in all of its instances, and so how many executions one instance is handed ahead.
 *
 * The next execution waits in the worker's socket while it runs the one before, and costs it no wait; a worker that takes less
 * time for one than it takes to be woken is woken for several. What waits at one instance is out of the others' reach, so a model
 * with several instances hands nothing ahead while a run may turn out to be slow.
 */
export class Pace {
  readonly #clock: Clock;
  readonly #isAlone: boolean;
  #lastRunNs = Number.POSITIVE_INFINITY;
  #slowAtNs: number;
  /** The model has been seen to call others: what waits behind such an execution may wait long, or for itself. */
  calls = false;

  constructor(clock: Clock, instanceCount: number) {
    this.#clock = clock;
    this.#isAlone = instanceCount === 1;
    this.#slowAtNs = clock.monotonicNs();
  }

  /** The last run was over before the event loop could have slept. */
  get isBrief(): boolean {
    return this.#lastRunNs <= briefNs;
  }

  /** A run has ended that took so long as its worker measured it. */
  ran(durationNs: number): void {
    this.#lastRunNs = durationNs;
    if (!this.#isAlone && durationNs > slowNs) this.#slowAtNs = this.#clock.monotonicNs();
  }

  /** For an instance that has been executing since then; null: it does not. */
  executionsMax(sinceNs: number | null): number {
    if (this.calls) return 1;
    if (!this.#isAlone && sinceNs !== null) {
      const nowNs = this.#clock.monotonicNs();
      if (nowNs - sinceNs > slowNs || nowNs - this.#slowAtNs < slowMemoryNs) return 1;
    }
    return this.isBrief ? 8 : 2;
  }
}
