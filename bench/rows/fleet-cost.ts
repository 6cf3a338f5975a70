import { seededRandom } from "../../conformance/seeded-random.ts";
import { rankBands, zipfArrivals, type RankBand } from "../fleet-cost/arrivals.ts";
import { instancePrices, type InstancePrice } from "../fleet-cost/instance-prices.ts";
import {
  cheapestFor,
  cheapestPlan,
  cpuShareMax,
  dedicatedPlan,
  hoursPerMonth,
  memoryShareMax,
  packedPlan,
  sharedPlan,
  usableOf,
  type Need,
  type Plan,
} from "../fleet-cost/plan.ts";
import { measureSharedFleet, type SharedFleetFigures } from "../fleet-cost/shared-fleet.ts";
import { weightBytesMax, weightBytesMin } from "../fleet-cost/tenants.ts";
import { measureSharedTriton, measureTritonFleet, type TritonFigures } from "../fleet-cost/triton-fleet.ts";
import type { BenchContext, Measure } from "../row.ts";

/** The share of an instance's memory that its server and a share of the platform use. */
const serverBytes = 256 * 2 ** 20;
/** Instances of the measured shared fleet: the number of the smallest type that has memory for all models. */
const sharedInstances = 3;
/**
 * Instances of a shared fleet of another type: one may fail. In a fleet with an endpoint for each model, each endpoint
 * has one instance.
 */
const sharedInstancesMin = 2;
const { instances } = instancePrices;

interface Scale {
  readonly modelCount: number;
  readonly perSecond: number;
  readonly durationMs: number;
  /** Responses to earlier requests are excluded from percentiles: they warm up the servers of both sides. */
  readonly countFromMs: number;
  /** Number of sampled models in a band of a number of ranks. */
  readonly samplesOf: (width: number) => number;
  /** Models in the one tritonserver that holds several. */
  readonly sharedTritonModels: number;
}

const scales: Readonly<Record<"full" | "quick", Scale>> = {
  full: {
    modelCount: 1000,
    perSecond: 200,
    durationMs: 90_000,
    countFromMs: 15_000,
    samplesOf: (width) => (width > 200 ? 8 : 4),
    sharedTritonModels: 10,
  },
  quick: {
    modelCount: 60,
    perSecond: 100,
    durationMs: 10_000,
    countFromMs: 1000,
    samplesOf: () => 2,
    sharedTritonModels: 3,
  },
};

/** The price and the p99 of a thousand models under one Zipf load: an endpoint of Triton for each, and one shared fleet. */
export const fleetCostRow = {
  name: "fleet-cost",
  async measure(context: BenchContext): Promise<Measure[]> {
    const scale = scales[context.quick ? "quick" : "full"];
    const { modelCount, countFromMs } = scale;
    const arrivals = zipfArrivals({ ...scale, random: seededRandom(17) });
    const bands = rankBands(modelCount, scale.samplesOf);
    for (const assumption of assumptions(scale, bands)) context.note(assumption);
    const triton = await measureTritonFleet(context, { arrivals, bands, modelCount, countFromMs });
    const sharedTriton = await measureSharedTriton(
      context,
      Array.from({ length: scale.sharedTritonModels }, (_, index) =>
        Math.floor((index * modelCount) / scale.sharedTritonModels),
      ),
    );
    const instance = cheapestFor(instances, triton.alone);
    const galatea = await measureSharedFleet(context, {
      arrivals,
      countFromMs,
      modelCount,
      instanceType: instance.type,
      instanceCount: sharedInstances,
      modelMemoryBytes: Math.floor(usableOf(instance).memoryBytes - serverBytes),
    });
    for (const failure of [...triton.failures, ...galatea.failures].slice(0, 5)) context.log(`failed: ${failure}`);
    return measuresOf(context, scale, { triton, sharedTriton, galatea, instance });
  },
};

interface Outcome {
  readonly triton: TritonFigures;
  readonly sharedTriton: { readonly baseBytes: number; readonly perModelBytes: number };
  readonly galatea: SharedFleetFigures;
  /** The cheapest type on which one endpoint of Triton runs. */
  readonly instance: InstancePrice;
}

/** The instances that each way of hosting needs. */
function plansOf({ modelCount }: Scale, { triton, sharedTriton, galatea, instance }: Outcome) {
  const tritonModel = { memoryBytes: sharedTriton.perModelBytes, vcpus: triton.packed.vcpus };
  return {
    dedicated: dedicatedPlan(instances, triton.alone, modelCount),
    processes: packedPlan(instances, triton.packed, { count: modelCount }),
    models: packedPlan(instances, tritonModel, {
      count: modelCount,
      base: { memoryBytes: sharedTriton.baseBytes, vcpus: 0 },
    }),
    tritonModel,
    fleet: sharedPlan(instance, galatea.complete, sharedInstances),
    cheapest: cheapestPlan(instances.map((each) => sharedPlan(each, galatea.complete, sharedInstancesMin))),
    machine: dedicatedPlan(instances, galatea.complete, 1),
  };
}

/** The plans, and their inputs. */
function resultNotes(plans: ReturnType<typeof plansOf>, { triton, galatea }: Outcome): readonly string[] {
  const { dedicated, processes, models, tritonModel, fleet, cheapest, machine } = plans;
  const text = (what: string, { count, type, monthlyUsd }: Plan, { memoryBytes, vcpus }: Need) =>
    `${what}: ${count} x ${type}, ${monthlyUsd.toFixed(0)} USD a month; measured ${megabytes(memoryBytes)}, ${vcpus.toFixed(4)} vCPUs`;
  return [
    text("Triton, an endpoint for each model", dedicated, triton.alone),
    text(`Triton, ${processes.perInstance} processes on each instance`, processes, triton.packed),
    text(
      `Triton, ${models.perInstance} models in one process on each instance, none ever unloaded`,
      models,
      tritonModel,
    ),
    text("Galatea, instances of the type of the first line", fleet, galatea.complete),
    text("Galatea, instances of the type that is cheapest for it", cheapest, galatea.complete),
    text("Galatea, one machine", machine, galatea.complete),
    `Galatea in the load: ${galatea.requestCount} requests, ${galatea.missCount} for models that were not loaded; at most ${galatea.loadedCount} models loaded on one instance; archives of ${megabytes(galatea.archiveBytes)}`,
    `Triton in the load: ${triton.requestCount} requests to ${triton.serverCount} servers`,
  ];
}

function measuresOf({ note }: BenchContext, scale: Scale, outcome: Outcome): Measure[] {
  const { triton, galatea } = outcome;
  const { modelCount } = scale;
  const plans = plansOf(scale, outcome);
  for (const line of resultNotes(plans, outcome)) note(line);
  const measure = (
    what: string,
    unit: string,
    [ours, oracle]: readonly [number, number?],
    goal: Measure["goal"] = null,
  ): Measure => ({
    what: `${modelCount} models, Zipf 1.0: ${what}`,
    unit,
    ours: [ours],
    oracle: oracle === undefined ? [] : [oracle],
    goal,
  });
  const failureCount = galatea.failures.length + triton.failures.length;
  return [
    measure(
      "price of a month, beside an endpoint for each model",
      "USD",
      [plans.fleet.monthlyUsd, plans.dedicated.monthlyUsd],
      {
        kind: "at most",
        of: "ratio",
        value: 0.2,
      },
    ),
    measure("price of the cheapest type, beside packed Triton processes", "USD", [
      plans.cheapest.monthlyUsd,
      plans.processes.monthlyUsd,
    ]),
    measure("price of the cheapest type, beside Triton processes that hold many models", "USD", [
      plans.cheapest.monthlyUsd,
      plans.models.monthlyUsd,
    ]),
    measure("price of a month on one machine", "USD", [plans.machine.monthlyUsd]),
    measure("failed requests", "", [failureCount], { kind: "at most", of: "ours", value: 0 }),
    measure("p50 of the load", "ms", [galatea.all.p50Ms, triton.p50Ms]),
    measure("p99 of the load", "ms", [galatea.all.p99Ms, triton.p99Ms]),
    measure("p99 without the first response of each copy", "ms", [galatea.warm.p99Ms]),
    measure("requests for models that were not loaded", "%", [(galatea.missCount / galatea.requestCount) * 100]),
    ...(galatea.first.count === 0
      ? []
      : [
          measure("first response of a copy in the load, p50", "ms", [galatea.first.p50Ms]),
          measure("first response of a copy in the load, p99", "ms", [galatea.first.p99Ms]),
        ]),
    measure("cold start, the first request of each model: p50", "ms", [galatea.filling.p50Ms]),
    measure("cold start, the first request of each model: p99", "ms", [galatea.filling.p99Ms]),
    measure("memory for each model", "MB", [
      galatea.complete.memoryBytes / modelCount / 1e6,
      triton.alone.memoryBytes / 1e6,
    ]),
    measure("vCPUs under the load", "", [galatea.complete.vcpus, triton.packed.vcpus * modelCount]),
    measure("throughput of the most popular model at 8", "/s", [galatea.perSecondMax, triton.perSecondMax]),
  ];
}

const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(0)} MB`;

/** Assumptions of the figures, and what the row does not measure. */
function assumptions(
  { modelCount, perSecond, durationMs, countFromMs }: Scale,
  bands: readonly RankBand[],
): readonly string[] {
  const sampledCount = bands.reduce((sum, { sampled }) => sum + sampled.length, 0);
  const percent = (share: number) => `${Math.round(share * 100)} %`;
  return [
    `prices: ${instancePrices.source}; ${instancePrices.checked}; a month has ${hoursPerMonth} hours`,
    "instances alone are priced; volumes, traffic and objects are not; the same prices for both sides, although Galatea also runs on plain machines, which cost less",
    `models: ${modelCount} ensembles of three Python steps, each with ${weightBytesMin / 2 ** 20} to ${weightBytesMax / 2 ** 20} MiB of weights of its own`,
    `load: ${perSecond} requests a second at random times for ${durationMs / 1000} s, models by Zipf's law with exponent 1, the same requests for both sides; the first ${countFromMs / 1000} s are in no percentile`,
    `an instance gives ${percent(memoryShareMax)} of its memory to servers and models, and the load may take ${percent(cpuShareMax)} of its sustained vCPUs; a vCPU is taken to be as fast as one of this machine`,
    `Triton: ${sampledCount} servers run at once on this machine, one for each sampled model, each with its own share of the load; the responses of a sample stand for its band of ranks (${bands.map(({ first, end, sampled }) => `${sampled.length} of ${first + 1}-${end}`).join(", ")})`,
    "Triton is called directly; what the front end of a hosting service adds to a request is left out. Galatea is called through InvokeEndpoint",
    "Triton's three variants keep all models loaded and have no spare instance; no latency was measured with packed instances",
    `Galatea: ${sharedInstances} instances behind one multi-model endpoint, each with that share of its type's memory for models less ${serverBytes / 2 ** 20} MiB, all on this machine, where they share its processors; every model is invoked once before the load`,
    "several machines need Kubernetes (galatea up --pods): their price is calculated from what one machine used, and latency between machines was not measured",
  ];
}
