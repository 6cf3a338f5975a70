import type { Clock } from "@galatea/base";
import { nameKey } from "../definitions/index.ts";
import { isTransientState } from "../endpoints/index.ts";
import { openWaitDeadline, waitForChange, waitForState, type WaitLimits } from "../waits/index.ts";
import type { HostingStore, NumberedStateChange } from "../store/index.ts";

/** Long polls of callers: waits for the stable state of one endpoint, and for state changes of all endpoints. */
export class EndpointWatch {
  readonly #store: HostingStore;
  readonly #clock: Clock;
  readonly #stopping = new AbortController();

  constructor(store: HostingStore, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /** Signal that aborts when the platform shuts down; it ends all waits. */
  get stopping(): AbortSignal {
    return this.#stopping.signal;
  }

  /** Ends all waits: they resolve with the current state. Later waits end immediately. */
  stop(): void {
    this.#stopping.abort();
  }

  /** Resolves when the endpoint is in a stable state or deleted, or when the wait ends. */
  async waitUntilStable(name: string, wait: WaitLimits): Promise<void> {
    using over = this.#deadline(wait);
    const isSettled = () => {
      const at = this.#store.view.endpointState(nameKey(name));
      return at === null || !isTransientState({ at });
    };
    await waitForState(this.#store, isSettled, over.signal);
  }

  /**
   * Returns the state changes with numbers above `after`, oldest first. If there are none, waits for the next one until
   * the wait ends.
   */
  async stateChanges(after: number, limit: number, wait: WaitLimits): Promise<readonly NumberedStateChange[]> {
    const { stateChanges } = this.#store;
    using over = this.#deadline(wait);
    for (;;) {
      const changed = stateChanges.whenChanged();
      const found = await stateChanges.changesAfter(after, limit);
      if (found.length > 0 || over.signal.aborted) return found;
      await waitForChange(changed, over.signal);
    }
  }

  #deadline(wait: WaitLimits) {
    return openWaitDeadline(wait, this.#stopping.signal, this.#clock);
  }
}
