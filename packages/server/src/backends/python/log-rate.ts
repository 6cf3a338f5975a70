import type { Clock } from "@galatea/base";

const windowNs = 1e9;

/** How many lines a second are shown; those beyond are counted, and their number is told with the next that is shown. */
export class LogRate {
  readonly #clock: Clock;
  readonly #linesPerSecondMax: number;
  readonly #tellDropped: (lineCount: number) => void;
  #windowStartNs: number;
  #lineCount = 0;
  #droppedCount = 0;

  constructor(clock: Clock, linesPerSecondMax: number, tellDropped: (lineCount: number) => void) {
    this.#clock = clock;
    this.#linesPerSecondMax = linesPerSecondMax;
    this.#tellDropped = tellDropped;
    this.#windowStartNs = clock.monotonicNs();
  }

  /** Whether one more line is shown. */
  admits(): boolean {
    const nowNs = this.#clock.monotonicNs();
    if (nowNs - this.#windowStartNs >= windowNs) {
      this.end();
      this.#windowStartNs = nowNs;
      this.#lineCount = 0;
    }
    if (++this.#lineCount <= this.#linesPerSecondMax) return true;
    this.#droppedCount++;
    return false;
  }

  /** No more lines come. */
  end(): void {
    if (this.#droppedCount > 0) this.#tellDropped(this.#droppedCount);
    this.#droppedCount = 0;
  }
}
