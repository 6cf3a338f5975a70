/**
 * Counts the messages that the engine has handled, in memory that both threads share. A front-end thread waits on this count until its
 * synchronous call has a result.
 */
export class HandledMessageCount {
  readonly memory: SharedArrayBuffer;
  readonly #handled: Int32Array;

  constructor(memory = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)) {
    this.memory = memory;
    this.#handled = new Int32Array(memory);
  }

  get handledCount(): number {
    return Atomics.load(this.#handled, 0);
  }

  /** Reports that the engine has handled one more message. */
  handled(): void {
    Atomics.add(this.#handled, 0, 1);
    Atomics.notify(this.#handled, 0);
  }

  /** Blocks this thread until the engine has handled at least `count` messages in total. */
  wait(count: number): void {
    for (let seen = this.handledCount; seen < count; seen = this.handledCount) Atomics.wait(this.#handled, 0, seen);
  }
}
