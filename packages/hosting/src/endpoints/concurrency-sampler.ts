import { delay, type Clock, type TaskGroup } from "@galatea/base";

/** Four to a point of ten seconds. */
export const concurrencyLookMs = 2500;
/** Looks at nothing, after which nobody looks any more until a request comes. */
const quietLooks = 4;

export interface ConcurrencySamplerOptions {
  /** Requests that are in flight, or wait, for each instance. */
  readonly count: () => number;
  readonly record: (count: number) => void;
  readonly tasks: TaskGroup;
  readonly clock: Clock;
}

/** How many requests an instance has at a time, looked at while there are any: a variant that nobody asks costs nothing. */
export class ConcurrencySampler {
  readonly #options: ConcurrencySamplerOptions;
  #isLooking = false;

  constructor(options: ConcurrencySamplerOptions) {
    this.#options = options;
  }

  /** A request has come. */
  touch(): void {
    if (this.#isLooking) return;
    this.#isLooking = true;
    this.#options.tasks.run((closing) => this.#look(closing));
  }

  async #look(closing: AbortSignal): Promise<void> {
    const { count, record, clock } = this.#options;
    for (let quiet = 0; quiet < quietLooks;) {
      // Not at once: the request that began it would count in every quiet time there is.
      await delay(clock, concurrencyLookMs, closing).catch(() => {});
      if (closing.aborted) return;
      const found = count();
      quiet = found === 0 ? quiet + 1 : 0;
      record(found);
    }
    this.#isLooking = false;
  }
}
