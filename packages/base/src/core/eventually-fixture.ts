/**
 * Time-out of a test that waits for a condition, in milliseconds. Conditions take a few seconds, so it suffices for
 * a machine that is twenty times slower. Without a time-out, a bug could make its test hang.
 */
export const testTimeoutMs = 180_000;

const intervalMs = 2;

/**
 * Resolves when `holds` returns true. Rejects with the source text of `holds` if it still returns false after `waitMs`.
 */
export async function eventually(holds: () => boolean | Promise<boolean>, waitMs = testTimeoutMs): Promise<void> {
  const end = AbortSignal.timeout(waitMs);
  while (!(await holds())) {
    if (end.aborted) throw new Error(`condition still false after ${waitMs} ms: ${holds.toString()}`);
    // Pauses, so that the code under test can use the processor.
    await new Promise((resolve) => setTimeout(resolve, intervalMs));
  }
}
