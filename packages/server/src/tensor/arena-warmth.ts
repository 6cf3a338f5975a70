import type { Clock } from "@galatea/base";

/** How long a peak of use is remembered: as long, memory that was needed at the peak stays warm; at most twice as long. */
const windowMs = 1000;
/** Memory is given back in steps of this size, each a millisecond or two of a processor. */
const stepBytesMax = 4 * 1024 * 1024;
const stepPauseMs = 5;

export interface WarmthOptions {
  /** Free memory that stays warm without end. */
  readonly warmBytesMin: number;
  readonly clock: Clock;
  readonly memory: {
    readonly usedBytes: () => number;
    /** What is free and may hold pages. */
    readonly freeWarmBytes: () => number;
    /** Gives about so many of these bytes back to the machine. */
    readonly cool: (bytes: number) => void;
  };
}

/**
 * Decides when the free memory of an arena goes back to the machine. Whoever sends tensors of 16 MB one after the other would meet cold
 * pages each time if free memory went back at once (each page costs a fault in every process that maps it); so what was in use together
 * during the last second or two stays warm, and the rest goes back in steps between which others have their turn.
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

  /** So many bytes are in use now. */
  use(bytes: number): void {
    if (bytes > this.#peakBytes) this.#peakBytes = bytes;
  }

  /** Memory became free. */
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
  /** The most that was in use together lately. */
  readonly peakBytes: number;
  readonly warmBytesMin: number;
}

/** Of the free warm memory, what would not be needed if use rose to its late peak again. */
export function spareWarmBytes({ freeWarmBytes, usedBytes, peakBytes, warmBytesMin }: WarmMemory): number {
  return Math.max(0, freeWarmBytes - Math.max(warmBytesMin, peakBytes - usedBytes));
}
