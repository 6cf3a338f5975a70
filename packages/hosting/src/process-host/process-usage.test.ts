import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { ProcessTreeMeter } from "./process-usage.ts";

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
    let text = "";
    // The pipe must stay open: a process that writes a line in two chunks would otherwise get EPIPE at the second one.
    for await (const chunk of child.stdout.iterator({ destroyOnReturn: false })) {
      text += String(chunk);
      if (text.includes("held") && text.includes("worked")) break;
    }
    const usage = await new ProcessTreeMeter(child.pid!).usage();
    assert.ok(usage !== null && usage.memoryBytes > 64 * 2 ** 20, JSON.stringify(usage));
    assert.ok(usage.cpuNs >= 0.28e9, JSON.stringify(usage));
  } finally {
    process.kill(-child.pid!, "SIGKILL");
    await closed;
  }
  assert.equal(await new ProcessTreeMeter(child.pid!).usage(), null);
});

/** A process with 100 idle children, which allocates 64 MiB for each line that it reads. */
const wideFamily = `
import os, signal, sys
for _ in range(100):
  if os.fork() == 0: signal.pause()
print("ready", flush=True)
held = []
for line in sys.stdin:
  held.append(bytearray(os.urandom(64 * 2**20)))
  print("held", flush=True)
`;

test("of many processes, each measurement walks the memory of 64, every one in turn; the others' growth is counted meanwhile", async () => {
  const child = spawn("python3", ["-c", wideFamily], { stdio: ["pipe", "pipe", "inherit"], detached: true });
  const closed = once(child, "close");
  try {
    const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
    assert.equal((await lines.next()).value, "ready");
    const measured: number[] = [];
    const meter = new ProcessTreeMeter(child.pid!, (pid) => {
      measured.push(pid);
      return Promise.resolve(2 ** 20);
    });
    const memoryMib = async () => ((await meter.usage())?.memoryBytes ?? 0) / 2 ** 20;
    await memoryMib();
    assert.equal(new Set(measured).size, 64);
    const before = await memoryMib();
    assert.deepEqual([measured.length, new Set(measured).size], [128, 101]);
    assert.ok(before > 100 && before < 110, String(before));
    child.stdin.write("\n");
    assert.equal((await lines.next()).value, "held");
    measured.length = 0;
    const grownBy = (await memoryMib()) - before;
    // The third call measures 64 children, and the process itself was measured by the second call.
    assert.ok(!measured.includes(child.pid!));
    assert.ok(grownBy > 60 && grownBy < 80, String(grownBy));
  } finally {
    process.kill(-child.pid!, "SIGKILL");
    await closed;
  }
});
