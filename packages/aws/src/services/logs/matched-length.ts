/**
 * Length that is matched in one tick of the event loop, plus one message: some milliseconds of work for the slowest
 * patterns.
 */
const lengthPerTick = 64 * 1024;

/** The length compared with a pattern since the last yield to the event loop. */
export class MatchedLength {
  #length = 0;

  /** Returns whether to yield before this message is compared. */
  shouldYieldBefore(message: string): boolean {
    this.#length += message.length;
    if (this.#length <= lengthPerTick) return false;
    const isFirst = this.#length === message.length;
    this.#length = message.length;
    return !isFirst;
  }
}
