import { readdirSync } from "node:fs";
import { sendRequest } from "../faults/http-client.ts";
import { arenaBytes, descendantsOf, openFiles, residentBytes } from "../faults/processes.ts";
import type { RunningServer } from "../environments/index.ts";
import type { Tolerance } from "./flatness.ts";

const mebibyte = 2 ** 20;

/**
 * The values that are measured without load. The number of processes must be exact. Threads and descriptors may grow by
 * those that the first use of a feature creates. Memory includes compiled code and uncollected garbage of V8, and 16
 * MiB that each arena keeps.
 */
export const tolerances = [
  { name: "descriptors of the server", unit: "", growthMax: 4 },
  { name: "threads of the server", unit: "", growthMax: 2 },
  { name: "processes", unit: "", growthMax: 0 },
  { name: "descriptors of all processes", unit: "", growthMax: 12 },
  { name: "arenas", unit: "MiB", growthMax: 16 },
  { name: "request memory", unit: "bytes", growthMax: 0 },
  // Under load, V8's heap grows from about 140 to about 280 MiB and stays there. A leak of 1 KiB per request exceeds
  // this limit within ten minutes.
  { name: "resident memory of the server", unit: "MiB", growthMax: 128 },
  { name: "resident memory of its processes", unit: "MiB", growthMax: 64 },
] as const satisfies readonly Tolerance[];

export type Sample = readonly number[];

/** Measures the values in the order of `tolerances`. */
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

/** Returns the bytes in flight. The request that reads them counts for 4,096 bytes itself. */
export async function requestBytes(metricsPort: number): Promise<number> {
  const { body } = await sendRequest(metricsPort, { path: "/metrics" });
  return Number(/^galatea_request_memory_used_bytes (\d+)$/m.exec(body.toString())?.[1] ?? Number.NaN) - 4096;
}
