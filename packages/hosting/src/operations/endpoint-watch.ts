import type { Clock } from "@galatea/base";
import { nameKey } from "../definitions/index.ts";
import { isTransient } from "../endpoints/index.ts";
import { openWait, until, untilSettled, type Wait } from "../waits/index.ts";
import type { HostingStore, NumberedStateChange } from "../store/index.ts";

/** Waiting for endpoints: until one settles, until there is a state change of any. */
export class EndpointWatch {
  readonly #store: HostingStore;
  readonly #clock: Clock;
  readonly #stopping = new AbortController();

  constructor(store: HostingStore, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /** Aborted when nobody is to wait any more. */
  get stopping(): AbortSignal {
    return this.#stopping.signal;
  }

  /** Those who wait are answered with what there is, and from now on nobody waits. */
  stop(): void {
    this.#stopping.abort();
  }

  /** Resolves when the endpoint is in a state that stays, is gone, or the wait is over; whichever comes first. */
  async settled(name: string, wait: Wait): Promise<void> {
    using over = this.#deadline(wait);
    const isSettled = () => {
      const at = this.#store.view.endpointState(nameKey(name));
      return at === null || !isTransient({ at });
    };
    await untilSettled(this.#store, isSettled, over.signal);
  }

  /** State changes behind a number, the oldest first; waits for the first one where there is none, unless the wait is over before. */
  async stateChanges(after: number, limit: number, wait: Wait): Promise<readonly NumberedStateChange[]> {
    const { stateChanges } = this.#store;
    using over = this.#deadline(wait);
    for (;;) {
      const changed = stateChanges.changed();
      const found = await stateChanges.after(after, limit);
      if (found.length > 0 || over.signal.aborted) return found;
      await until(changed, over.signal);
    }
  }

  #deadline(wait: Wait) {
    return openWait(wait, this.#stopping.signal, this.#clock);
  }
}
