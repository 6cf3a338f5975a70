export interface BackoffOptions {
  readonly firstMs: number;
  readonly maxMs: number;
  readonly factor: number;
  /**
   * Returns a number in [0, 1), which shortens a wait by up to a quarter. Processes that failed together therefore do
   * not restart together.
   */
  readonly random: () => number;
}

/** Returns the milliseconds to wait before the next attempt after `failureCount` (1 or more) failures in a row. */
export function backoffMs(failureCount: number, { firstMs, maxMs, factor, random }: BackoffOptions): number {
  return Math.min(maxMs, firstMs * factor ** (failureCount - 1)) * (1 - random() / 4);
}
