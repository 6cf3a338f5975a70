/**
 * Time after which a test that waits for a condition fails, in milliseconds. Long enough for a machine that is a hundred times slower than
 * usual; without a limit, a broken product would hang its test.
 */
export const testTimeoutMs = 600_000;

const intervalMs = 2;

/** Resolves when `holds` returns true; rejects, with the source text of `holds`, when it still returns false after `waitMs`. */
export async function eventually(holds: () => boolean | Promise<boolean>, waitMs = testTimeoutMs): Promise<void> {
  const end = AbortSignal.timeout(waitMs);
  while (!(await holds())) {
    if (end.aborted) throw new Error(`condition still false after ${waitMs} ms: ${holds.toString()}`);
    // Pauses, because the condition that the test waits for needs the processor.
    await new Promise((resolve) => setTimeout(resolve, intervalMs));
  }
}
