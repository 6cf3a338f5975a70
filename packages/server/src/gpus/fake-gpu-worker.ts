import { readFileSync } from "node:fs";
import { fakeNvml, fakeGpu } from "./fake-nvml.ts";
import { readGpus } from "./read-gpus.ts";

/**
 * The program of the process that reads GPUs, with a simulated driver. The file named by its second argument selects the behavior:
 * - "answers": the driver works;
 * - "gone": the driver's library is missing;
 * - "unloaded": the library is present, but the driver is not loaded yet;
 * - "hangs", "crashes" or "lost": from the second reading on, the driver blocks, ends the process, or has lost the GPU.
 */
const does = readFileSync(process.argv[3]!, "utf8");
let reads = 0;
await readGpus(() => {
  if (does === "gone") throw new Error("libnvidia-ml.so.1: cannot open shared object file");
  const calls = fakeNvml([fakeGpu], does === "unloaded" ? { init: 9 } : {});
  return {
    ...calls,
    memory(device, bytes) {
      reads += 1;
      if (reads > 1 && does === "hangs") Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
      if (reads > 1 && does === "crashes") process.kill(process.pid, "SIGSEGV");
      return reads > 1 && does === "lost" ? 15 : calls.memory(device, bytes);
    },
    energy(device, millijoules) {
      const status = calls.energy(device, millijoules);
      millijoules[0] = millijoules[0]! + BigInt(reads - 1) * 1000n;
      return status;
    },
  };
}, Number(process.argv[2]));
