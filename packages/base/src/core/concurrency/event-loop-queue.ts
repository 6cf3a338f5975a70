/**
 * A queue in which long computations yield to the event loop: however many computations there are, one chunk of one of them runs between
 * two polls of the sockets. Without this, a request would wait for a chunk of each computation instead of one chunk.
 */
export class EventLoopQueue {
  readonly #waiting: (() => void)[] = [];
  #isScheduled = false;

  /**
   * Resolves when the caller may run its next chunk, in the order of the calls. The chunk ends at the caller's next `await`. Rejects when
   * the signal has aborted by then.
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

/** The queue in which a computation yields, and the signal that cancels the computation. */
export interface YieldOptions {
  readonly loopQueue: EventLoopQueue;
  readonly signal: AbortSignal;
}
