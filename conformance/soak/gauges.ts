import { readdirSync } from "node:fs";
import { ask } from "../faults/asking.ts";
import { arenaBytes, descendantsOf, openFiles, residentBytes } from "../faults/processes.ts";
import type { RunningServer } from "../environments/index.ts";
import type { Tolerance } from "./flatness.ts";

const mebibyte = 2 ** 20;

/**
 * What is measured while nobody asks anything. Processes are exact. Threads and descriptors may differ by those that start with the
 * first use of something. Memory: what V8 keeps of compiled code and of garbage that it has not looked at; arenas keep 16 MiB warm each.
 */
export const tolerances = [
  { name: "descriptors of the server", unit: "", growthMax: 4 },
  { name: "threads of the server", unit: "", growthMax: 2 },
  { name: "processes", unit: "", growthMax: 0 },
  { name: "descriptors of all processes", unit: "", growthMax: 12 },
  { name: "arenas", unit: "MiB", growthMax: 16 },
  { name: "request memory", unit: "bytes", growthMax: 0 },
  // The collector lets the heap rise from about 140 to about 280 MiB while load lasts, and stays there: a leak of a kilobyte a request
  // passes this bound within ten minutes.
  { name: "resident memory of the server", unit: "MiB", growthMax: 128 },
  { name: "resident memory of its processes", unit: "MiB", growthMax: 64 },
] as const satisfies readonly Tolerance[];

export type Sample = readonly number[];

/** In the order of `tolerances`. */
export async function takeSample({ pid, metricsPort }: RunningServer): Promise<Sample> {
  const others = descendantsOf(pid).map((seen) => seen.pid);
  const count = (each: number) => openFiles(each).length;
  return [
    count(pid),
    readdirSync(`/proc/${pid}/task`).length,
    others.length,
    others.reduce((sum, each) => sum + count(each), count(pid)),
    arenaBytes(pid) / mebibyte,
    await requestBytes(metricsPort),
    residentBytes(pid) / mebibyte,
    others.reduce((sum, each) => sum + residentBytes(each), 0) / mebibyte,
  ];
}

/** Bytes in flight; the question after them is itself one of 4096. */
export async function requestBytes(metricsPort: number): Promise<number> {
  const { body } = await ask(metricsPort, { path: "/metrics" });
  return Number(/^galatea_request_memory_used_bytes (\d+)$/m.exec(body.toString())?.[1] ?? Number.NaN) - 4096;
}
