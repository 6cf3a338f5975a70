/** Number of characters after which a search yields to the event loop: some milliseconds of work for the slowest patterns. */
const lengthPerTick = 64 * 1024;

/** Counts the characters that were compared with a pattern since the last yield to the event loop. */
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
