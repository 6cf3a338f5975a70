export interface BackoffOptions {
  readonly firstMs: number;
  readonly maxMs: number;
  readonly factor: number;
  /** Uniform in [0, 1): spreads equal waits by up to a quarter, so that what fell together does not rise together. */
  readonly random: () => number;
}

/** Milliseconds to wait before the next attempt of something that has failed so many times in a row, 1 or more. */
export function backoffMs(failureCount: number, { firstMs, maxMs, factor, random }: BackoffOptions): number {
  return Math.min(maxMs, firstMs * factor ** (failureCount - 1)) * (1 - random() / 4);
}
