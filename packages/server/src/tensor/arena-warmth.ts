import type { Clock } from "@galatea/base";

/** Window in which the peak of usage is measured. Memory that the peak needed stays resident for one to two windows. */
const windowMs = 1000;
/** Memory is released in steps of this size; a step takes 1 to 2 ms of CPU time. */
const stepBytesMax = 4 * 1024 * 1024;
const stepPauseMs = 5;

export interface WarmthOptions {
  /** Free memory that always stays resident. */
  readonly warmBytesMin: number;
  readonly clock: Clock;
  readonly memory: {
    readonly usedBytes: () => number;
    /** Returns the number of free bytes that may be resident. */
    readonly freeWarmBytes: () => number;
    /** Releases about this many free bytes to the system. */
    readonly cool: (bytes: number) => void;
  };
}

/**
 * Decides when the free memory of an arena is released to the system. If it were released at once, a client that sends tensors of 16 MB one
 * after another would get pages that are not resident each time, and each page costs a fault in every process that maps it. Memory that was
 * in use during the last second or two therefore stays resident; other free memory is released in steps with pauses.
 */
export class ArenaWarmth implements Disposable {
  readonly #options: WarmthOptions;
  #peakBytes = 0;
  #peakBeforeBytes = 0;
  #windowEndNs = 0;
  #timer: Disposable | null = null;

  constructor(options: WarmthOptions) {
    this.#options = options;
  }

  /** Records the number of bytes in use. */
  use(bytes: number): void {
    if (bytes > this.#peakBytes) this.#peakBytes = bytes;
  }

  /** Schedules a release, because memory became free. */
  freed(): void {
    const { warmBytesMin, memory } = this.#options;
    if (this.#timer === null && memory.freeWarmBytes() > warmBytesMin) this.#wake(windowMs);
  }

  #wake(delayMs: number): void {
    this.#timer = this.#options.clock.timer(delayMs, () => {
      this.#timer = null;
      this.#look();
    });
  }

  #look(): void {
    const { warmBytesMin, clock, memory } = this.#options;
    const nowNs = clock.monotonicNs();
    const usedBytes = memory.usedBytes();
    if (nowNs >= this.#windowEndNs) {
      this.#peakBeforeBytes = this.#peakBytes;
      this.#peakBytes = usedBytes;
      this.#windowEndNs = nowNs + windowMs * 1e6;
    }
    const spareBytes = spareWarmBytes({
      freeWarmBytes: memory.freeWarmBytes(),
      usedBytes,
      peakBytes: Math.max(this.#peakBytes, this.#peakBeforeBytes),
      warmBytesMin,
    });
    if (spareBytes > 0) memory.cool(Math.min(spareBytes, stepBytesMax));
    if (memory.freeWarmBytes() > warmBytesMin) this.#wake(spareBytes > stepBytesMax ? stepPauseMs : windowMs);
  }

  [Symbol.dispose](): void {
    this.#timer?.[Symbol.dispose]();
    this.#timer = null;
  }
}

export interface WarmMemory {
  readonly freeWarmBytes: number;
  readonly usedBytes: number;
  /** The peak of usage in the last window. */
  readonly peakBytes: number;
  readonly warmBytesMin: number;
}

/** Returns the free resident memory that would not be needed if usage rose to its recent peak again. */
export function spareWarmBytes({ freeWarmBytes, usedBytes, peakBytes, warmBytesMin }: WarmMemory): number {
  return Math.max(0, freeWarmBytes - Math.max(warmBytesMin, peakBytes - usedBytes));
}
