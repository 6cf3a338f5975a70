import { openDeadline, type Clock } from "../base/index.ts";
import { nameKey } from "./definitions/index.ts";
import { isTransient, longestHoldMs } from "./endpoints/index.ts";
import { HeldQuestions, type Asker } from "./held-questions.ts";
import { openWait, until, untilSettled, type Wait } from "./settled.ts";
import type { HostingStore, NumberedStateChange } from "./store/index.ts";

/** After a step of an update has been recorded the next one may follow at once: only what stays that long is told. */
const quietMs = 1000;

/** Waiting for endpoints: until one settles, until there is news of one, until there is a state change of any. */
export class EndpointWatch {
  readonly #store: HostingStore;
  readonly #clock: Clock;
  readonly #stopping = new AbortController();
  readonly held: HeldQuestions;

  constructor(store: HostingStore, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
    this.held = new HeldQuestions(clock);
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
    await this.#settled(nameKey(name), wait, () => false);
  }

  /** Holds a question for an endpoint as long as that helps who asks: a waiter's until a state is there that stays. */
  async news(name: string, asker: Asker): Promise<void> {
    const key = nameKey(name);
    const { view } = this.#store;
    await this.held.hold({
      asker,
      subject: `endpoint ${key}`,
      stays: view.endpointState(key) !== "Deleting",
      isLogged: false,
      wait: async (wait) => {
        // The answer of one that is deleted and gone would be an error.
        const isOver = () => !wait.mayFail && view.endpointState(key) === "Deleting";
        if (asker.isWaiter) await this.#settled(key, wait, isOver);
        else await this.#news(key, wait, isOver);
        const at = view.endpointState(key);
        return at !== null && isTransient({ at });
      },
    });
  }

  async #settled(key: string, wait: Wait, isOver: () => boolean): Promise<void> {
    using over = this.#deadline(wait);
    const isSettled = () => {
      const at = this.#store.view.endpointState(key);
      return at === null || !isTransient({ at }) || isOver();
    };
    await untilSettled(this.#store, isSettled, over.signal);
  }

  /** What an update has come to is told when nothing more came within a second. */
  async #news(key: string, wait: Wait, isOver: () => boolean): Promise<void> {
    const { view, kinds } = this.#store;
    using over = this.#deadline(wait);
    for (let isFirst = true; ; isFirst = false) {
      const changed = view.stateChanged();
      // The view's own: a record is on disk before the view is told, so that its version would differ until the event loop takes a turn.
      const version = view.endpointVersion(key);
      if (over.signal.aborted || isOver()) return;
      const found = await kinds.endpoints.find(key);
      if (found.at !== "found") return;
      const holdMs = Math.min(longestHoldMs(found.value, this.#clock.epochMs()), isFirst ? Infinity : quietMs);
      if (holdMs <= 0) return;
      using quiet = openDeadline({
        clock: this.#clock,
        afterMs: Math.min(holdMs, wait.waitMsMax),
        signal: over.signal,
      });
      await this.#changed(key, version, { changed, signal: quiet.signal });
      if (quiet.signal.aborted) return;
    }
  }

  /** Of this endpoint, whatever happens to others meanwhile. */
  async #changed(
    key: string,
    version: number | null,
    { changed, signal }: { readonly changed: Promise<void>; readonly signal: AbortSignal },
  ): Promise<void> {
    const { view } = this.#store;
    for (let next = changed; !signal.aborted; next = view.stateChanged()) {
      if (view.endpointVersion(key) !== version) return;
      await until(next, signal);
    }
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
