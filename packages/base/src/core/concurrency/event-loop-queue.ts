/**
 * A queue in which long computations yield to the event loop. Between two polls of the sockets, only one chunk of one
 * computation runs. Without the queue, a request would wait for a chunk of every computation.
 */
export class EventLoopQueue {
  readonly #waiting: (() => void)[] = [];
  #isScheduled = false;

  /**
   * Resolves when the caller may run its next chunk, in the order of the calls. The chunk ends at the caller's next
   * `await`. Rejects if the signal has aborted by that time.
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
    // An immediate that is set by another immediate runs only after the event loop has polled the sockets.
    setImmediate(() => {
      this.#waiting.shift()?.();
      this.#isScheduled = false;
      if (this.#waiting.length > 0) this.#schedule();
    });
  }
}

/** The queue in which a computation waits between its chunks, and the signal that cancels the computation. */
export interface YieldOptions {
  readonly loopQueue: EventLoopQueue;
  readonly signal: AbortSignal;
}
