/** The destination of lines. */
export interface LineTarget {
  /** Returns null if the text was written at once, else a promise that resolves when it is, or rejects. */
  append(text: string): Promise<void> | null;
  /** Writes as much of the text as possible without waiting; used when the process ends. */
  appendNow(text: string): void;
  /** Called for text that could not be written. */
  failed(text: string, error: Error): void;
}

/**
 * Writes lines without blocking the writer: one append runs at a time, further lines wait in memory up to a limit, and
 * above it lines are dropped, counted, and reported in the log itself once it accepts lines again.
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
    // After a dropped line none is accepted, so that the log reports the gap in its place.
    if (this.#droppedCount > 0 || this.#waitingChars + line.length > this.#waitingCharsMax) {
      this.#droppedCount++;
      return;
    }
    this.#waiting.push(line);
    this.#waitingChars += line.length;
    if (!this.#isWriting) this.#writing = this.#writeAll();
  }

  /** Resolves when all lines are written or have failed. */
  async written(): Promise<void> {
    await this.#writing;
  }

  /** Writes the waiting lines at the end of the process, as far as possible without waiting. */
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
