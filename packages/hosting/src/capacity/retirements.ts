import { delay, openDeadline, type Clock, type Deadline } from "@galatea/base";

export interface RetirementLimits {
  /** How long the instances of what is deleted or stopped are kept for the requests that they have: longer than any that is no stream. */
  readonly retireMsMax: number;
  /** The same of instances that an update or a smaller number takes away: longer than any stream and any asynchronous invocation may take. */
  readonly leaveMsMax: number;
  /** Moves whose instances are kept for so long; the instances of those before get `retireMsMax`. */
  readonly leavingMax: number;
}

interface Leaving {
  readonly key: string;
  readonly aborter: AbortController;
}

/**
 * Lets instances that get no more requests answer those they have. Each request has a limit of its own, so an instance that is given time
 * goes when its last one ends; the bounds here are for what does not keep to that, and for memory: a client that holds streams open while
 * it updates its endpoint again and again must not fill the nodes with instances that leave.
 */
export class Retirements {
  readonly #clock: Clock;
  readonly #limits: RetirementLimits;
  /** Oldest first. */
  readonly #leaving = new Set<Leaving>();

  constructor(clock: Clock, limits: RetirementLimits) {
    this.#clock = clock;
    this.#limits = limits;
  }

  /** For what is deleted or stopped, with what still leaves under its key. Resolves when `retire` has ended; its signal aborts at the bound. */
  async end(key: string, closing: AbortSignal, retire: (signal: AbortSignal) => Promise<void>): Promise<void> {
    using limit = this.hurry(key, closing);
    await retire(limit.signal);
  }

  /** From now on what leaves under a key has as long as what is deleted; not where this is disposed, or the signal aborts, before. */
  hurry(key: string, signal: AbortSignal): Deadline {
    const limit = openDeadline({ clock: this.#clock, afterMs: this.#limits.retireMsMax, signal });
    const cut = () => {
      if (!limit.isLate) return;
      for (const each of this.#leaving) if (each.key === key) each.aborter.abort(limit.signal.reason);
    };
    limit.signal.addEventListener("abort", cut, { once: true });
    return limit;
  }

  /** For what an update or a smaller number takes away. */
  async leave(key: string, closing: AbortSignal, retire: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const { leaveMsMax, retireMsMax, leavingMax } = this.#limits;
    const aborter = new AbortController();
    const entry: Leaving = { key, aborter };
    this.#leaving.add(entry);
    const signal = AbortSignal.any([closing, aborter.signal]);
    using limit = openDeadline({ clock: this.#clock, afterMs: leaveMsMax, signal });
    const over = new AbortController();
    const ended = retire(limit.signal).finally(() => over.abort());
    try {
      while (!over.signal.aborted) {
        await delay(this.#clock, retireMsMax, over.signal).catch(() => {});
        const newerCount = this.#leaving.size - 1 - [...this.#leaving].indexOf(entry);
        if (newerCount >= leavingMax) aborter.abort(new Error("too many instances leave"));
      }
      await ended;
    } finally {
      this.#leaving.delete(entry);
    }
  }
}
