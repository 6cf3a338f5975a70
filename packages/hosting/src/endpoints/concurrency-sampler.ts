import { delay, type Clock, type TaskGroup } from "@galatea/base";

/** Sampling interval: four samples for each data point of ten seconds. */
export const concurrencyLookMs = 2500;
/** Number of samples without requests after which sampling stops until the next request. */
const quietLooks = 4;

export interface ConcurrencySamplerOptions {
  /** Requests that are in flight or wait, per instance. */
  readonly count: () => number;
  readonly record: (count: number) => void;
  readonly tasks: TaskGroup;
  readonly clock: Clock;
}

/** Samples the concurrency of a variant while it has requests; an idle variant costs nothing. */
export class ConcurrencySampler {
  readonly #options: ConcurrencySamplerOptions;
  #isLooking = false;

  constructor(options: ConcurrencySamplerOptions) {
    this.#options = options;
  }

  /** Starts the sampling when a request arrives. */
  touch(): void {
    if (this.#isLooking) return;
    this.#isLooking = true;
    this.#options.tasks.run((closing) => this.#look(closing));
  }

  async #look(closing: AbortSignal): Promise<void> {
    const { count, record, clock } = this.#options;
    for (let quiet = 0; quiet < quietLooks;) {
      // The first sample is delayed: otherwise the request that started the sampling would count in every idle period.
      await delay(clock, concurrencyLookMs, closing).catch(() => {});
      if (closing.aborted) return;
      const found = count();
      quiet = found === 0 ? quiet + 1 : 0;
      record(found);
    }
    this.#isLooking = false;
  }
}
