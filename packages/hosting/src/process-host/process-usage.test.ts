import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { test } from "node:test";
import { readProcessTreeUsage } from "./process-usage.ts";

/** A process with a grandchild that allocates 64 MiB, and a child that has used 0.3 s of CPU time and ended. */
const family = `
import os, sys, time
if os.fork() == 0:
  if os.fork() == 0:
    held = bytearray(os.urandom(64 * 2**20))
    print("held", flush=True)
    time.sleep(600)
  os.wait()
if os.fork() == 0:
  while time.process_time() < 0.3: pass
  os._exit(0)
os.wait()
print("worked", flush=True)
time.sleep(600)
`;

test("the usage of a process includes its descendants, and the CPU time of those that have ended", async () => {
  const child = spawn("python3", ["-c", family], { stdio: ["ignore", "pipe", "inherit"], detached: true });
  const closed = once(child, "close");
  try {
    let said = "";
    // The pipe must stay open: a process that writes a line in two chunks would otherwise get EPIPE at the second one.
    for await (const chunk of child.stdout.iterator({ destroyOnReturn: false })) {
      said += String(chunk);
      if (said.includes("held") && said.includes("worked")) break;
    }
    const usage = await readProcessTreeUsage(child.pid!);
    assert.ok(usage !== null && usage.memoryBytes > 64 * 2 ** 20, JSON.stringify(usage));
    assert.ok(usage.cpuNs >= 0.28e9, JSON.stringify(usage));
  } finally {
    process.kill(-child.pid!, "SIGKILL");
    await closed;
  }
  assert.equal(await readProcessTreeUsage(child.pid!), null);
});
