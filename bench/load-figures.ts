import type { RunningServer } from "../conformance/environments/index.ts";
import type { LoadResult } from "./load.ts";
import { treeCpuUs } from "./processes.ts";
import type { BenchContext, Goal, Measure } from "./row.ts";
import { alternateAll, type Pair } from "./servers.ts";

export interface LoadCase {
  readonly what: string;
  readonly clients: number;
  readonly load: (server: RunningServer, timing: LoadTiming) => Promise<LoadResult>;
  /** Ratios to Triton's figures. A figure without a ratio is printed for information only. */
  readonly goals: { readonly throughputMin?: number; readonly p99Max?: number; readonly p50Max?: number };
}

export interface LoadTiming {
  readonly clients: number;
  readonly durationMs: number;
  readonly warmUpMs: number;
}

const ratio = (kind: Goal["kind"], value: number | undefined): Goal | null =>
  value === undefined ? null : { kind, of: "ratio", value };

/** Throughput, p50, p99, and CPU time of the server's processes for each request, from the same rounds. */
export async function measureLoad(context: BenchContext, pair: Pair, load: LoadCase): Promise<Measure[]> {
  const { what, clients, goals } = load;
  const names = ["throughput, /s", "p50, us", "p99, us", "CPU, us"].map((name) => `${what} at ${clients}: ${name}`);
  const warmUp = { clients, durationMs: context.quick ? 200 : 1000, warmUpMs: 0 };
  const timing = { clients, durationMs: context.quick ? 500 : 4000, warmUpMs: 0 };
  const [throughput, p50, p99, cpu] = await alternateAll(context, pair, names, async (server) => {
    await load.load(server, warmUp);
    const beforeUs = await treeCpuUs(server.pid);
    const result = await load.load(server, timing);
    const cpuUs = (await treeCpuUs(server.pid)) - beforeUs;
    return [result.perSecond, result.p50Us, result.p99Us, cpuUs / result.responses];
  });
  const at = `at ${clients} ${clients === 1 ? "client" : "clients"}`;
  return [
    { what: `${what}: throughput ${at}`, unit: "/s", ...throughput!, goal: ratio("at least", goals.throughputMin) },
    { what: `${what}: p50 ${at}`, unit: "us", ...p50!, goal: ratio("at most", goals.p50Max) },
    { what: `${what}: p99 ${at}`, unit: "us", ...p99!, goal: ratio("at most", goals.p99Max) },
    { what: `${what}: CPU for a request ${at}`, unit: "us", ...cpu!, goal: null },
  ];
}
