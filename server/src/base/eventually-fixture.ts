/** Of a test: far beyond what a busy machine needs, and short enough that a broken product is a failure and no hang. */
const waitMsMax = 30_000;

/** Resolves when `holds` does, which is asked in each turn of the loop; rejects, with the condition's text, when it still does not at the end. */
export async function eventually(holds: () => boolean | Promise<boolean>, waitMs = waitMsMax): Promise<void> {
  const end = AbortSignal.timeout(waitMs);
  while (!(await holds())) {
    if (end.aborted) throw new Error(`still not so after ${waitMs} ms: ${holds.toString()}`);
    await new Promise((resolve) => setImmediate(resolve));
  }
}
