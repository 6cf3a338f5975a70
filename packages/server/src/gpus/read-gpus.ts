import { setTimeout as sleep } from "node:timers/promises";
import { Nvml, type NvmlCalls } from "../native/index.ts";
import { printGpuLine } from "./gpu-lines.ts";

/**
 * The signal that makes the program read the GPUs at once, instead of at the end of the interval. Must not be sent before the program has
 * printed its first line.
 */
export const readNowSignal = "SIGUSR2";

/** Exit code of the program when the GPUs cannot be read. */
export const unreadableExit = 3;

/**
 * The main loop of the process that reads GPUs: opens the library, and prints its readings every `intervalMs`. The library's calls may
 * block in the driver for ever, therefore a separate process makes them. Resolves when a call fails.
 */
export async function readGpus(open: () => NvmlCalls, intervalMs: number): Promise<void> {
  let wake = new AbortController();
  process.on(readNowSignal, () => wake.abort());
  try {
    const nvml = new Nvml(open());
    for (;;) {
      wake = new AbortController();
      process.stdout.write(printGpuLine({ kind: "reading", readings: nvml.read() }));
      // The signal ends the pause early.
      await sleep(intervalMs, undefined, { signal: wake.signal }).catch(() => {});
    }
  } catch (error) {
    process.stdout.write(printGpuLine({ kind: "failed", message: (error as Error).message }));
    process.exitCode = unreadableExit;
  }
}
