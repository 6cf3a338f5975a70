import type { Clock } from "@galatea/base";

const windowNs = 1e9;

/** Limits the log lines per second. Further lines are only counted. Before the next logged line, their number is reported. */
export class LogRate {
  readonly #clock: Clock;
  readonly #linesPerSecondMax: number;
  readonly #reportDropped: (lineCount: number) => void;
  #windowStartNs: number;
  #lineCount = 0;
  #droppedCount = 0;

  constructor(clock: Clock, linesPerSecondMax: number, tellDropped: (lineCount: number) => void) {
    this.#clock = clock;
    this.#linesPerSecondMax = linesPerSecondMax;
    this.#reportDropped = tellDropped;
    this.#windowStartNs = clock.monotonicNs();
  }

  /** Returns whether one more line may be logged. */
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

  /** Reports the number of lines that were counted but not logged. Called after the last line. */
  end(): void {
    if (this.#droppedCount > 0) this.#reportDropped(this.#droppedCount);
    this.#droppedCount = 0;
  }
}
