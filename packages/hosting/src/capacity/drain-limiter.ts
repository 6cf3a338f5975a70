import { delay, openDeadline, type Clock, type Deadline } from "@galatea/base";

export interface DrainLimits {
  /** The longest drain of deleted or stopped instances: longer than any request that is not streamed. */
  readonly deletionDrainMsMax: number;
  /**
   * The longest drain of instances that an update or a smaller count removes: longer than any stream and any
   * asynchronous invocation.
   */
  readonly updateDrainMsMax: number;
  /** Concurrent drains of updates; above this number the oldest get the bound of a deletion. */
  readonly updateDrainsMax: number;
}

interface UpdateDrain {
  readonly key: string;
  readonly aborter: AbortController;
}

/**
 * Bounds how long instances without new requests drain. Each request has a limit of its own, so a drain ends with the last request. These
 * bounds protect the nodes' memory: without them, a client that holds streams open during repeated updates of its endpoint would fill the
 * nodes with draining instances.
 */
export class DrainLimiter {
  readonly #clock: Clock;
  readonly #limits: DrainLimits;
  /** Oldest first. */
  readonly #updateDrains = new Set<UpdateDrain>();

  constructor(clock: Clock, limits: DrainLimits) {
    this.#clock = clock;
    this.#limits = limits;
  }

  /** Drains instances that are deleted or stopped; shortens the other drains of the key. Resolves when `drain` has ended; its signal aborts at the bound. */
  async drainDeleted(key: string, closing: AbortSignal, drain: (signal: AbortSignal) => Promise<void>): Promise<void> {
    using limit = this.shorten(key, closing);
    await drain(limit.signal);
  }

  /**
   * Limits the drains of a key to the time of a deletion, unless the result is disposed or the signal aborts before.
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

  /** Drains instances that an update or a smaller count removes. */
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
        if (newerCount >= updateDrainsMax) aborter.abort(new Error("too many instances drain"));
      }
      await ended;
    } finally {
      this.#updateDrains.delete(entry);
    }
  }
}
