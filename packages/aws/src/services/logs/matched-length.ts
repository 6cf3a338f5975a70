/** Matched in a turn of the event loop, or one message more: of the slowest patterns some milliseconds' work. */
const perTurn = 64 * 1024;

/** How much has been compared with a pattern since the last turn of the event loop. */
export class MatchedLength {
  #length = 0;

  /** Returns whether another turn is to be waited for before this message is compared. */
  isTurnDueBefore(message: string): boolean {
    this.#length += message.length;
    if (this.#length <= perTurn) return false;
    const isFirst = this.#length === message.length;
    this.#length = message.length;
    return !isFirst;
  }
}
