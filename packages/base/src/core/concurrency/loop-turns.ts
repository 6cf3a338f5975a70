/**
 * Long computations take turns on the event loop: however many there are, one of them has its turn between two looks of the loop at its
 * sockets. So what others wait for them is one turn, not one of each.
 */
export class LoopTurns {
  readonly #waiting: (() => void)[] = [];
  #isScheduled = false;

  /** Resolves when it is the caller's turn, which ends with the caller's next wait; in the order of asking. Rejects when the signal has aborted by then. */
  next(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push(() => {
        if (signal.aborted) reject(signal.reason as Error);
        else resolve();
      });
      if (!this.#isScheduled) this.#schedule();
    });
  }

  #schedule(): void {
    this.#isScheduled = true;
    // An immediate that is made while immediates run waits for the loop's next round.
    setImmediate(() => {
      this.#waiting.shift()?.();
      this.#isScheduled = false;
      if (this.#waiting.length > 0) this.#schedule();
    });
  }
}

/** Whose turns, and for whom. */
export interface TurnsOf {
  readonly turns: LoopTurns;
  readonly signal: AbortSignal;
}
