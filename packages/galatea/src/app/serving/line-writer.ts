/** A destination of log lines. */
export interface LineTarget {
  /**
   * Appends a text. Returns null if it was written at once, else a promise that resolves when it is written or rejects.
   */
  append(text: string): Promise<void> | null;
  /** Writes as much of the text as possible without blocking. Called when the process ends. */
  appendNow(text: string): void;
  /** Receives text that could not be written, and the error. */
  failed(text: string, error: Error): void;
}

/**
 * Writes lines without blocking the caller. One append runs at a time; further lines wait in memory up to a limit.
 * Above the limit, lines are dropped and counted. The number of dropped lines is written to the log once it accepts
 * lines again.
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
    // After a dropped line, all lines are dropped until the gap is reported, so that the report is at the position of
    // the gap.
    if (this.#droppedCount > 0 || this.#waitingChars + line.length > this.#waitingCharsMax) {
      this.#droppedCount++;
      return;
    }
    this.#waiting.push(line);
    this.#waitingChars += line.length;
    if (!this.#isWriting) this.#writing = this.#writeAll();
  }

  /** Resolves when all lines were written or have failed. */
  async written(): Promise<void> {
    await this.#writing;
  }

  /** Writes the waiting lines, as far as possible without blocking. Called when the process ends. */
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
