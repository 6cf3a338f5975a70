import { delay, type Clock, type TaskGroup } from "@galatea/base";

/** Sampling interval in milliseconds: four samples for each data point of ten seconds. */
export const concurrencySampleMs = 2500;
/** Number of samples without requests after which sampling stops until the next request. */
const idleSamplesMax = 4;

export interface ConcurrencySamplerOptions {
  /** Returns the number of requests per instance that are in flight or wait. */
  readonly count: () => number;
  readonly record: (count: number) => void;
  readonly tasks: TaskGroup;
  readonly clock: Clock;
}

/** Samples the concurrency of a variant while it has requests. An idle variant is not sampled. */
export class ConcurrencySampler {
  readonly #options: ConcurrencySamplerOptions;
  #isLooking = false;

  constructor(options: ConcurrencySamplerOptions) {
    this.#options = options;
  }

  /** Starts sampling if it is not running. Call this for each request. */
  touch(): void {
    if (this.#isLooking) return;
    this.#isLooking = true;
    this.#options.tasks.run((closing) => this.#sample(closing));
  }

  async #sample(closing: AbortSignal): Promise<void> {
    const { count, record, clock } = this.#options;
    for (let quiet = 0; quiet < idleSamplesMax;) {
      // The first sample is delayed. Otherwise, a single short request would always be counted as concurrency.
      await delay(clock, concurrencySampleMs, closing).catch(() => {});
      if (closing.aborted) return;
      const found = count();
      quiet = found === 0 ? quiet + 1 : 0;
      record(found);
    }
    this.#isLooking = false;
  }
}
