/** Where lines go. */
export interface LineTarget {
  /** Null when the text was taken at once, else resolves when it has been, however long that is, and rejects with why it never will be. */
  append(text: string): Promise<void> | null;
  /** As much of the text as is taken without waiting; for the last moment of the process. */
  appendNow(text: string): void;
  /** What has become of text that was not taken. */
  failed(text: string, error: Error): void;
}

/**
 * Writes lines without ever holding their writer up: one append is under way at a time, what comes meanwhile waits in memory up to a
 * bound, and beyond it lines are dropped, counted, and told of in the log itself as soon as its reader goes on.
 */
export class LineWriter {
  readonly #target: LineTarget;
  readonly #waitingCharsMax: number;
  readonly #droppedLine: (count: number) => string;
  #waiting: string[] = [];
  #waitingChars = 0;
  #underWay = "";
  #droppedCount = 0;
  #isWriting = false;
  #writing: Promise<void> = Promise.resolve();

  constructor(
    target: LineTarget,
    options: { readonly waitingCharsMax: number; readonly droppedLine: (count: number) => string },
  ) {
    this.#target = target;
    this.#waitingCharsMax = options.waitingCharsMax;
    this.#droppedLine = options.droppedLine;
  }

  write(line: string): void {
    // Behind a dropped line nothing is let in, so that the log tells of it at its place.
    if (this.#droppedCount > 0 || this.#waitingChars + line.length > this.#waitingCharsMax) {
      this.#droppedCount++;
      return;
    }
    this.#waiting.push(line);
    this.#waitingChars += line.length;
    if (!this.#isWriting) this.#writing = this.#writeAll();
  }

  /** Resolves when everything that was written has been taken or has failed. */
  async written(): Promise<void> {
    await this.#writing;
  }

  /** At the end of the process: what still waits, as far as it is taken at once. */
  writeNow(): void {
    const text = this.#underWay + this.#takeWaiting();
    if (text !== "") this.#target.appendNow(text);
  }

  async #writeAll(): Promise<void> {
    this.#isWriting = true;
    while (this.#waiting.length > 0 || this.#droppedCount > 0) {
      this.#underWay = this.#takeWaiting();
      try {
        const taking = this.#target.append(this.#underWay);
        if (taking !== null) await taking;
      } catch (error) {
        this.#target.failed(this.#underWay, error as Error);
      }
      this.#underWay = "";
    }
    this.#isWriting = false;
  }

  #takeWaiting(): string {
    const lines = this.#waiting;
    if (this.#droppedCount > 0) lines.push(this.#droppedLine(this.#droppedCount));
    this.#droppedCount = 0;
    this.#waiting = [];
    this.#waitingChars = 0;
    return lines.join("");
  }
}
