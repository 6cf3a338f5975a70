/**
 * How long a test waits for a condition before it fails, in milliseconds. It says nothing about speed: a machine that is a hundred times
 * slower than usual still passes, and a broken product fails its test instead of hanging it.
 */
export const hangMs = 600_000;

const intervalMs = 2;

/** Resolves when `holds` returns true; rejects, with the condition's text, when it still does not after `waitMs`. */
export async function eventually(holds: () => boolean | Promise<boolean>, waitMs = hangMs): Promise<void> {
  const end = AbortSignal.timeout(waitMs);
  while (!(await holds())) {
    if (end.aborted) throw new Error(`still not so after ${waitMs} ms: ${holds.toString()}`);
    // No busy loop: what the test waits for needs the processor.
    await new Promise((resolve) => setTimeout(resolve, intervalMs));
  }
}
