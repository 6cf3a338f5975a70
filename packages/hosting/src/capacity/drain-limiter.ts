import { delay, openDeadline, type Clock, type Deadline } from "@galatea/base";

export interface DrainLimits {
  /**
   * Maximum drain time of deleted or stopped instances, in milliseconds. It exceeds the time limit of all requests
   * except response streams and asynchronous invocations.
   */
  readonly deletionDrainMsMax: number;
  /**
   * Maximum drain time of instances that an update or a scale-in removes, in milliseconds. It is longer than any response
   * stream and any asynchronous invocation.
   */
  readonly updateDrainMsMax: number;
  /**
   * Maximum number of concurrent drains by updates. Above this number, the oldest drains are limited to
   * `deletionDrainMsMax`.
   */
  readonly updateDrainsMax: number;
}

interface UpdateDrain {
  readonly key: string;
  readonly aborter: AbortController;
}

/**
 * Limits how long instances drain. A drain ends when the instance's last request has ended, and each request has a time
 * limit. Without these limits, a client that keeps response streams open while it updates its endpoint repeatedly would
 * fill the memory of the nodes with draining instances.
 */
export class DrainLimiter {
  readonly #clock: Clock;
  readonly #limits: DrainLimits;
  /** Drains of updates that have not ended, oldest first. */
  readonly #updateDrains = new Set<UpdateDrain>();

  constructor(clock: Clock, limits: DrainLimits) {
    this.#clock = clock;
    this.#limits = limits;
  }

  /**
   * Runs a drain of deleted or stopped instances. Shortens the drains that updates started with the same key to the
   * same limit. The signal of `drain` aborts at the limit.
   */
  async drainDeleted(key: string, closing: AbortSignal, drain: (signal: AbortSignal) => Promise<void>): Promise<void> {
    using limit = this.shorten(key, closing);
    await drain(limit.signal);
  }

  /**
   * Shortens the drains that updates started with a key to `deletionDrainMsMax` from now. Disposing the result or
   * aborting the signal earlier cancels this.
   */
  shorten(key: string, signal: AbortSignal): Deadline {
    const limit = openDeadline({ clock: this.#clock, afterMs: this.#limits.deletionDrainMsMax, signal });
    const cut = () => {
      if (!limit.hasExpired) return;
      for (const each of this.#updateDrains) if (each.key === key) each.aborter.abort(limit.signal.reason);
    };
    limit.signal.addEventListener("abort", cut, { once: true });
    return limit;
  }

  /** Runs a drain of instances that an update or a scale-in removes. The signal of `drain` aborts at the limit. */
  async drainUpdated(key: string, closing: AbortSignal, drain: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const { updateDrainMsMax, deletionDrainMsMax, updateDrainsMax } = this.#limits;
    const aborter = new AbortController();
    const entry: UpdateDrain = { key, aborter };
    this.#updateDrains.add(entry);
    const signal = AbortSignal.any([closing, aborter.signal]);
    using limit = openDeadline({ clock: this.#clock, afterMs: updateDrainMsMax, signal });
    const over = new AbortController();
    const ended = drain(limit.signal).finally(() => over.abort());
    try {
      while (!over.signal.aborted) {
        await delay(this.#clock, deletionDrainMsMax, over.signal).catch(() => {});
        const newerCount = this.#updateDrains.size - 1 - [...this.#updateDrains].indexOf(entry);
        if (newerCount >= updateDrainsMax)
          aborter.abort(new Error("drain shortened: too many updates drain instances at the same time"));
      }
      await ended;
    } finally {
      this.#updateDrains.delete(entry);
    }
  }
}
