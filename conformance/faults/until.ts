import { readFile } from "node:fs/promises";
import { testTimeoutMs } from "../../packages/base/src/core/eventually-fixture.ts";

const intervalMs = 5;

/** Resolves with the first value of `look` that is not null, undefined or false. Fails with `what` after `timeoutMs`. */
export async function until<Value>(
  what: string,
  look: () => Value | Promise<Value>,
  timeoutMs = testTimeoutMs,
): Promise<NonNullable<Exclude<Value, false>>> {
  const deadlineMs = performance.now() + timeoutMs;
  for (;;) {
    const value = await look();
    if (value !== null && value !== undefined && value !== false) return value as NonNullable<Exclude<Value, false>>;
    if (performance.now() > deadlineMs) throw new Error(`waited ${timeoutMs} ms in vain until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, intervalMs));
  }
}

/** Resolves with the process id that a model writes to `path`. */
export async function pidIn(path: string): Promise<number> {
  return await until(`a process id stands in ${path}`, async () => {
    const pid = Number(await readFile(path, "utf8").catch(() => "0"));
    return pid > 1 ? pid : null;
  });
}
