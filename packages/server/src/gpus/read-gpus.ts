import { setTimeout as sleep } from "node:timers/promises";
import { Nvml, type NvmlCalls } from "../native/index.ts";
import { printGpuLine } from "./gpu-lines.ts";

/** Sent to the program, it has the GPUs read without waiting for the interval's end; only when it has said something before. */
export const readNowSignal = "SIGUSR2";

/** What ends the program when it cannot read GPUs, or no longer. */
export const unreadableExit = 3;

/**
 * The whole life of the process that reads GPUs: it opens the library, and prints what it tells every `intervalMs`. The library's calls
 * wait for the driver, which may never answer; so they are made where nobody else waits. Resolves when they fail.
 */
export async function readGpus(open: () => NvmlCalls, intervalMs: number): Promise<void> {
  let wake = new AbortController();
  process.on(readNowSignal, () => wake.abort());
  try {
    const nvml = new Nvml(open());
    for (;;) {
      wake = new AbortController();
      process.stdout.write(printGpuLine({ kind: "reading", readings: nvml.read() }));
      // Told to read now, it does not sleep on.
      await sleep(intervalMs, undefined, { signal: wake.signal }).catch(() => {});
    }
  } catch (error) {
    process.stdout.write(printGpuLine({ kind: "failed", message: (error as Error).message }));
    process.exitCode = unreadableExit;
  }
}
