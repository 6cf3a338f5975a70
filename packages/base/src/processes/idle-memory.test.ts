import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { shouldReleaseMemory } from "./idle-memory.ts";

test("memory is released only in an idle process whose resident memory has grown by a tenth", () => {
  const idle = { residentBytes: 111, baseBytes: 100, utilization: 0.01 };
  assert.equal(shouldReleaseMemory(idle), true);
  assert.equal(shouldReleaseMemory({ ...idle, residentBytes: 110 }), false);
  assert.equal(shouldReleaseMemory({ ...idle, utilization: 0.5 }), false);
});

test("a collection returns the pages of a formerly large heap to the system", async () => {
  const program = `
    import { collectGarbage } from ${JSON.stringify(new URL("./idle-memory.ts", import.meta.url).href)};
    const { rss } = process.memoryUsage;
    const startBytes = rss();
    let peakBytes = 0;
    for (let step = 0; step < 60; step++) {
      const objects = Array.from({ length: 20_000 }, (_, index) => ({ text: "text " + index, map: new Map([[index, index]]) }));
      await new Promise((resolve) => setTimeout(resolve, 1, objects));
      peakBytes = Math.max(peakBytes, rss());
    }
    collectGarbage();
    process.stdout.write(JSON.stringify({ startBytes, peakBytes, endBytes: rss() }));
  `;
  const { startBytes, peakBytes, endBytes } = await numbersOf(program);
  assert.ok(peakBytes! > startBytes! * 2, "the burst took memory");
  assert.ok(
    endBytes! < startBytes! * 1.5,
    `${endBytes} of ${peakBytes} bytes are left; at the start there were ${startBytes}`,
  );
});

test("an idle process returns the memory of a burst to the system", async () => {
  const program = `
    import { silentLogger } from ${JSON.stringify(import.meta.resolve("@galatea/base"))};
    import { releaseMemoryWhenIdle } from ${JSON.stringify(new URL("./idle-memory.ts", import.meta.url).href)};
    const startBytes = process.memoryUsage.rss();
    releaseMemoryWhenIdle(silentLogger);
    let texts = Array.from({ length: 2_000_000 }, (_, index) => "text " + index);
    let buffers = Array.from({ length: 2000 }, () => Buffer.alloc(64 * 1024, 1));
    const peakBytes = process.memoryUsage.rss();
    texts = buffers = [];
    const stay = setInterval(() => {
      if (process.memoryUsage.rss() > startBytes * 1.3) return;
      process.stdout.write(JSON.stringify({ startBytes, peakBytes, endBytes: process.memoryUsage.rss() }));
      clearInterval(stay);
    }, 500);
  `;
  const { startBytes, peakBytes, endBytes } = await numbersOf(program);
  assert.ok(peakBytes! > startBytes! * 3, "the burst took memory");
  assert.ok(endBytes! <= startBytes! * 1.3);
});

/** Runs the program in a child process, and returns the numbers that the program prints. */
async function numbersOf(program: string): Promise<Record<string, number>> {
  const child = spawn(process.execPath, ["--input-type=module-typescript", "-e", program], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const lines: string[] = [];
  for await (const line of createInterface(child.stdout)) lines.push(line);
  if (child.exitCode === null) await once(child, "exit");
  return JSON.parse(lines.join("")) as Record<string, number>;
}
