import { join } from "node:path";
import { startOracle, type RunningServer } from "../../conformance/environments/index.ts";
import { requestBytes, runLoad } from "../load.ts";
import { treeCpuUs, treeMemory } from "../processes.ts";
import { pipelineBody } from "../requests.ts";
import type { BenchContext } from "../row.ts";
import { temporaryDirectory, writeModels } from "../servers.ts";
import { playArrivals, weightedQuantile, zipfShares, type Arrival, type RankBand } from "./arrivals.ts";
import type { Need } from "./plan.ts";
import { invokeTenant, tenantModels, type TenantResponse } from "./tenants.ts";

const headers = { "content-type": "application/json" };
const environment = { SAGEMAKER_TRITON_DEFAULT_MODEL_NAME: "tenant", OPENBLAS_NUM_THREADS: "1" };
/** Servers that start at the same time. */
const startsMax = 3;

export interface TritonFigures {
  /** A server alone on its machine: its memory, and the vCPUs that the share of the most popular model uses. */
  readonly alone: Need;
  /** The mean of the sampled servers, weighted to represent all servers. They share the pages of their libraries on one machine. */
  readonly packed: Need;
  readonly serverCount: number;
  readonly perSecondMax: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly requestCount: number;
  readonly failures: readonly string[];
}

interface Endpoint {
  readonly tenant: number;
  readonly server: RunningServer;
}

const invoke = (endpoints: ReadonlyMap<number, Endpoint>, tenant: number) =>
  invokeTenant(tenant, {
    port: endpoints.get(tenant)?.server.sagemakerPort ?? 0,
    path: "/invocations",
    headers,
  });

/**
 * Runs one tritonserver for each sampled model, all at once, and sends each the requests that its model gets of the whole
 * load. Percentiles are of the whole fleet: the responses of a band's sample have the weight of the whole band.
 */
export async function measureTritonFleet(
  context: BenchContext,
  {
    arrivals,
    bands,
    modelCount,
    countFromMs,
  }: {
    readonly arrivals: readonly Arrival[];
    readonly bands: readonly RankBand[];
    readonly modelCount: number;
    readonly countFromMs: number;
  },
): Promise<TritonFigures> {
  await using directory = await temporaryDirectory();
  const endpoints = new Map<number, Endpoint>();
  const start = async (tenant: number) => {
    const repository = join(directory.path, String(tenant));
    await writeModels(repository, tenantModels(tenant));
    const server = await startOracle(context.oracle, { repositories: [repository], env: environment });
    endpoints.set(tenant, { tenant, server });
    // The first request of a server is not part of the load.
    const { failure } = await invoke(endpoints, tenant);
    if (failure !== null) throw new Error(`tritonserver of model ${tenant}: ${failure}`);
  };
  try {
    const ranks = bands.flatMap(({ sampled }) => sampled);
    await start(0);
    const aloneBytes = (await treeMemory(endpoints.get(0)?.server.pid ?? 0)).proportionalBytes;
    const left = ranks.filter((rank) => rank > 0).values();
    await Promise.all(
      Array.from({ length: startsMax }, async () => {
        for (const rank of left) await start(rank);
      }),
    );
    context.log(`${endpoints.size} tritonservers started`);
    const perSecondMax = await throughputOf(context, endpoints.get(0));
    const before = await cpuOf(endpoints);
    const sampled = arrivals.filter(({ model }) => endpoints.has(model));
    const startMs = performance.now();
    const responses = await playArrivals(sampled, (model) => invoke(endpoints, model));
    const after = await cpuOf(endpoints);
    const seconds = (performance.now() - startMs) / 1000;
    const vcpusOf = (tenant: number) => ((after.get(tenant) ?? 0) - (before.get(tenant) ?? 0)) / 1e6 / seconds;
    const bytes: number[] = [];
    for (const { server } of endpoints.values()) bytes.push((await treeMemory(server.pid)).proportionalBytes);
    const counted = responses.filter((_, index) => (sampled[index]?.atMs ?? 0) >= countFromMs);
    const latencies = bandWeighted(counted, bands, modelCount);
    return {
      alone: { memoryBytes: aloneBytes, vcpus: Math.max(...ranks.map(vcpusOf)) },
      packed: { memoryBytes: mean(bytes), vcpus: bandMean(bands, modelCount, vcpusOf) },
      serverCount: endpoints.size,
      perSecondMax,
      p50Ms: weightedQuantile(latencies, 0.5),
      p99Ms: weightedQuantile(latencies, 0.99),
      requestCount: responses.length,
      failures: responses.flatMap(({ failure }) => (failure === null ? [] : [failure])),
    };
  } finally {
    await Promise.all([...endpoints.values()].map(({ server }) => server.stop()));
  }
}

/** Memory of one tritonserver with several of the ensembles: without any model, and for each further one. */
export async function measureSharedTriton(
  context: BenchContext,
  tenants: readonly number[],
): Promise<{ readonly baseBytes: number; readonly perModelBytes: number }> {
  await using directory = await temporaryDirectory();
  for (const tenant of tenants) await writeModels(directory.path, tenantModels(tenant, `_${tenant}`));
  const bytesWith = async (flags: readonly string[]) => {
    const server = await startOracle(context.oracle, { repositories: [directory.path], flags });
    try {
      return (await treeMemory(server.pid)).proportionalBytes;
    } finally {
      await server.stop();
    }
  };
  const baseBytes = await bytesWith(["--model-control-mode=explicit"]);
  return { baseBytes, perModelBytes: ((await bytesWith([])) - baseBytes) / tenants.length };
}

async function throughputOf(context: BenchContext, endpoint: Endpoint | undefined): Promise<number> {
  const timing = { durationMs: context.quick ? 500 : 3000, warmUpMs: context.quick ? 500 : 5000 };
  const request = requestBytes("/invocations", pipelineBody, headers);
  const { perSecond } = await runLoad({ port: endpoint?.server.sagemakerPort ?? 0, request, clients: 8, ...timing });
  return perSecond;
}

async function cpuOf(endpoints: ReadonlyMap<number, Endpoint>): Promise<ReadonlyMap<number, number>> {
  const us = new Map<number, number>();
  for (const { tenant, server } of endpoints.values()) us.set(tenant, await treeCpuUs(server.pid));
  return us;
}

/** Weights the responses so that those of a band have the band's share of the load. */
function bandWeighted(responses: readonly TenantResponse[], bands: readonly RankBand[], modelCount: number) {
  const shares = zipfShares(modelCount);
  return bands.flatMap(({ first, end, sampled }) => {
    const share = shares.slice(first, end).reduce((sum, each) => sum + each, 0);
    const ofBand = responses.filter(({ tenant, failure }) => failure === null && sampled.includes(tenant));
    if (ofBand.length === 0)
      throw new Error(
        `no request came for the sampled models of ranks ${first + 1} to ${end}: send more or for longer`,
      );
    return ofBand.map(({ tookMs }) => ({ value: tookMs, weight: share / ofBand.length }));
  });
}

/** Returns the mean over all models, where the sample of a band represents the band. */
function bandMean(bands: readonly RankBand[], modelCount: number, valueOf: (rank: number) => number): number {
  const sum = bands.reduce((total, { first, end, sampled }) => total + (end - first) * mean(sampled.map(valueOf)), 0);
  return sum / modelCount;
}

const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
