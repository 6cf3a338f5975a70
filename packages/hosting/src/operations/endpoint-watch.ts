import type { Clock } from "@galatea/base";
import { nameKey } from "../definitions/index.ts";
import { isTransient } from "../endpoints/index.ts";
import { openWait, untilChanged, untilStable, type Wait } from "../waits/index.ts";
import type { HostingStore, NumberedStateChange } from "../store/index.ts";

/** Waits for a stable state of an endpoint, and for state changes of any endpoint. */
export class EndpointWatch {
  readonly #store: HostingStore;
  readonly #clock: Clock;
  readonly #stopping = new AbortController();

  constructor(store: HostingStore, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /** Aborted when the platform stops, which ends all waits. */
  get stopping(): AbortSignal {
    return this.#stopping.signal;
  }

  /** Ends all waits, which resolve with the present state; later ones end at once. */
  stop(): void {
    this.#stopping.abort();
  }

  /** Resolves when the endpoint is in a stable state or deleted, or when the wait ends, whichever is first. */
  async settled(name: string, wait: Wait): Promise<void> {
    using over = this.#deadline(wait);
    const isSettled = () => {
      const at = this.#store.view.endpointState(nameKey(name));
      return at === null || !isTransient({ at });
    };
    await untilStable(this.#store, isSettled, over.signal);
  }

  /**
   * Returns the state changes after a number, oldest first. Without any it waits for the first one, until the wait
   * ends.
   */
  async stateChanges(after: number, limit: number, wait: Wait): Promise<readonly NumberedStateChange[]> {
    const { stateChanges } = this.#store;
    using over = this.#deadline(wait);
    for (;;) {
      const changed = stateChanges.changed();
      const found = await stateChanges.after(after, limit);
      if (found.length > 0 || over.signal.aborted) return found;
      await untilChanged(changed, over.signal);
    }
  }

  #deadline(wait: Wait) {
    return openWait(wait, this.#stopping.signal, this.#clock);
  }
}
