/** Waiting times between attempts of something that keeps failing. */
export interface Backoff {
  /** Milliseconds to wait before the next attempt; grows with each call. */
  next(): number;
  /** The attempt held: the next failure starts over. */
  succeeded(): void;
  readonly failureCount: number;
}

export interface BackoffOptions {
  readonly firstMs: number;
  readonly maxMs: number;
  readonly factor: number;
  /** Uniform in [0, 1): spreads equal waits by up to a quarter, so that what fell together does not rise together. */
  readonly random: () => number;
}

export function createBackoff(options: BackoffOptions): Backoff {
  let failureCount = 0;
  return {
    next() {
      const waitMs = Math.min(options.maxMs, options.firstMs * options.factor ** failureCount);
      failureCount++;
      return waitMs * (1 - options.random() / 4);
    },
    succeeded() {
      failureCount = 0;
    },
    get failureCount() {
      return failureCount;
    },
  };
}
