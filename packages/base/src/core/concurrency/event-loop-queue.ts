/**
 * Lets long computations yield to the event loop: of any number of computations, one runs one chunk between two polls of the sockets.
 * Without this, a request would wait for a chunk of each computation instead of one chunk.
 */
export class EventLoopQueue {
  readonly #waiting: (() => void)[] = [];
  #isScheduled = false;

  /**
   * Resolves when the caller may run its next chunk, which ends with the caller's next wait; first come, first served. Rejects when the
   * signal has aborted by then.
   */
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
    // An immediate that is set while immediates run waits for the loop's next round.
    setImmediate(() => {
      this.#waiting.shift()?.();
      this.#isScheduled = false;
      if (this.#waiting.length > 0) this.#schedule();
    });
  }
}

/** The queue of computations and the signal of one of them. */
export interface YieldOptions {
  readonly loopQueue: EventLoopQueue;
  readonly signal: AbortSignal;
}
