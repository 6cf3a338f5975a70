import { pack } from "../archive.ts";
import { runLoad } from "../load.ts";
import { putObject, invokeBytes, invokeHeaders, metricStatistics, startPlatform, type Platform } from "../platform.ts";
import { treeCpuUs, treeMemory } from "../processes.ts";
import { pipelineBody } from "../requests.ts";
import type { BenchContext } from "../row.ts";
import { temporaryDirectory } from "../servers.ts";
import { playArrivals, weightedQuantile, type Arrival } from "./arrivals.ts";
import type { Need } from "./plan.ts";
import { invokeTenant, tenantModels, type TenantResponse } from "./tenants.ts";

const endpoint = "fleet";
const uploadsMax = 2;
/** Clients that load every model once before the load starts. */
const fillClients = 2;

export interface SharedFleetOptions {
  readonly arrivals: readonly Arrival[];
  /** Responses to earlier requests are excluded from percentiles. */
  readonly countFromMs: number;
  readonly modelCount: number;
  readonly instanceType: string;
  readonly instanceCount: number;
  /** Bytes for the models of one instance. */
  readonly modelMemoryBytes: number;
}

export interface Percentiles {
  readonly count: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

export interface SharedFleetFigures {
  /** The platform and all instances together. */
  readonly complete: Need;
  readonly archiveBytes: number;
  readonly perSecondMax: number;
  /** First requests for models that are only in the object store. */
  readonly filling: Percentiles;
  /** The responses under load: those of copies that had responded before, and the others, some of which waited for a load. */
  readonly all: Percentiles;
  readonly warm: Percentiles;
  readonly first: Percentiles;
  readonly requestCount: number;
  /** Invocations of models that were not loaded, as the platform counts them. */
  readonly missCount: number;
  readonly loadedCount: number;
  readonly failures: readonly string[];
}

/** Hosts all models behind one multi-model endpoint of `galatea up`, loads each once, and sends the whole load. */
export async function measureSharedFleet(
  context: BenchContext,
  options: SharedFleetOptions,
): Promise<SharedFleetFigures> {
  const { arrivals, countFromMs, modelCount, instanceType, instanceCount, modelMemoryBytes } = options;
  await using data = await temporaryDirectory();
  await using platform = await startPlatform(data.path);
  const archiveBytes = await upload(platform, modelCount);
  context.log(`${modelCount} archives uploaded, ${(archiveBytes / 1e6).toFixed(0)} MB`);
  await platform.createMultiModelEndpoint(endpoint, `${endpoint}/`, instanceType, {
    environment: { GALATEA_MODEL_MEMORY_BYTES: String(modelMemoryBytes), OPENBLAS_NUM_THREADS: "1" },
    instanceCount,
  });
  // The first invocation of a fresh data directory also makes the Python environment of all models.
  await invoke(platform, modelCount - 1);
  const filled = await fill(platform, modelCount - 1);
  context.log(`${filled.length} models loaded once`);
  const perSecondMax = await throughputOf(context, platform);
  const [metricsBefore, cpuBeforeUs] = [await hitsOf(platform), await treeCpuUs(platform.pid)];
  const startMs = performance.now();
  const responses = await playArrivals(arrivals, (model) => invoke(platform, model));
  const [cpuUs, seconds] = [(await treeCpuUs(platform.pid)) - cpuBeforeUs, (performance.now() - startMs) / 1000];
  const { processCount, proportionalBytes } = await treeMemory(platform.pid);
  context.log(`${processCount} processes of the platform`);
  const hits = await hitsOf(platform);
  const loaded = await metricStatistics(platform, "/aws/sagemaker/Endpoints", "LoadedModelCount", endpoint);
  const served = responses.filter(
    ({ failure }, index) => failure === null && (arrivals[index]?.atMs ?? 0) >= countFromMs,
  );
  return {
    complete: { memoryBytes: proportionalBytes, vcpus: cpuUs / 1e6 / seconds },
    archiveBytes,
    perSecondMax,
    filling: percentiles(filled),
    all: percentiles(served),
    warm: percentiles(served.filter(({ isFirst }) => !isFirst)),
    first: percentiles(served.filter(({ isFirst }) => isFirst)),
    requestCount: responses.length,
    missCount: hits.count - hits.sum - (metricsBefore.count - metricsBefore.sum),
    loadedCount: loaded.max,
    failures: [...filled, ...responses].flatMap(({ failure }) => (failure === null ? [] : [failure])),
  };
}

const targetOf = (tenant: number) => `${tenant}.tar.gz`;

const invoke = (platform: Platform, tenant: number) =>
  invokeTenant(tenant, {
    port: platform.port,
    path: `/endpoints/${endpoint}/invocations`,
    headers: invokeHeaders(targetOf(tenant)),
  });

/** Resolves with the bytes of all archives. */
async function upload(platform: Platform, modelCount: number): Promise<number> {
  let bytes = 0;
  await eachOf(modelCount, uploadsMax, async (tenant) => {
    const archive = await pack(tenantModels(tenant));
    bytes += archive.length;
    await putObject(platform.port, `${endpoint}/${targetOf(tenant)}`, archive);
  });
  return bytes;
}

/** Invokes the models below `end` once each, the rarest first, so that the most popular ones are in memory afterwards. */
async function fill(platform: Platform, end: number): Promise<readonly TenantResponse[]> {
  const responses: TenantResponse[] = [];
  await eachOf(end, fillClients, async (index) => {
    responses.push(await invoke(platform, end - 1 - index));
  });
  return responses;
}

async function eachOf(count: number, concurrencyMax: number, work: (index: number) => Promise<void>): Promise<void> {
  const left = Array.from({ length: count }, (_, index) => index).values();
  await Promise.all(
    Array.from({ length: concurrencyMax }, async () => {
      for (const index of left) await work(index);
    }),
  );
}

async function throughputOf(context: BenchContext, { port }: Platform): Promise<number> {
  const timing = { durationMs: context.quick ? 500 : 3000, warmUpMs: context.quick ? 500 : 5000 };
  const request = invokeBytes(endpoint, targetOf(0), pipelineBody);
  return (await runLoad({ port, request, clients: 8, ...timing })).perSecond;
}

const hitsOf = (platform: Platform) => metricStatistics(platform, "AWS/SageMaker", "ModelCacheHit", endpoint);

function percentiles(responses: readonly TenantResponse[]): Percentiles {
  const values = responses.map(({ tookMs }) => ({ value: tookMs, weight: 1 }));
  return {
    count: responses.length,
    p50Ms: weightedQuantile(values, 0.5),
    p99Ms: weightedQuantile(values, 0.99),
  };
}
