import { placeInstances } from "../../packages/hosting/src/nodes/place-instance.ts";
import { noResources, parseNodeId } from "../../packages/hosting/src/nodes/node.ts";
import { invocationLimits } from "../../packages/hosting/src/invocations/invocation.ts";
import { derivePlacementKey } from "../../packages/hosting/src/endpoints/model-rank.ts";
import { seededRandom } from "../../conformance/seeded-random.ts";
import { weightedQuantile, zipfArrivals } from "../fleet-cost/arrivals.ts";
import { median, type BenchContext, type Measure } from "../row.ts";
import { movedShare, SimulatedFleet, type SimulatedResponse } from "../scale/simulated-fleet.ts";

/** A fleet of pods under a load. */
interface Scale {
  readonly podCount: number;
  readonly modelCount: number;
  readonly perSecond: number;
  readonly requestCount: number;
  /** Number of models for which relocations are counted. */
  readonly movableCount: number;
}

const scales: readonly Scale[] = [
  { podCount: 10, modelCount: 100, perSecond: 250, requestCount: 50_000, movableCount: 10_000 },
  { podCount: 100, modelCount: 1000, perSecond: 2500, requestCount: 50_000, movableCount: 10_000 },
  { podCount: 1000, modelCount: 10_000, perSecond: 10_000, requestCount: 50_000, movableCount: 10_000 },
  { podCount: 10_000, modelCount: 20_000, perSecond: 5000, requestCount: 20_000, movableCount: 10_000 },
];
/** Time of a request on a pod, and the load of a model: rounded up from the rows fleet-cost and cold-invocation. */
const [serviceMs, loadMs] = [20, 30];
const { modelCopyColdMs: coldMs } = invocationLimits;
/** Number of models that fit on a pod, relative to the mean number of models. */
const roomRatio = 2;
/** Share of the replay before responses are counted; hot models get their copies during it. */
const warmUpShare = 0.5;
/** Below this mean number of requests for each pod, the busiest pod is determined by chance. */
const servedMin = 10;
/** Number of pods that are added to see which models are relocated. */
const addedShare = 0.01;
const podsPerNode = 8;
/** Share of the nodes' memory that all pods together take. */
const nodeFill = 0.9;
const podBytes = 4 * 2 ** 30;
const key = derivePlacementKey("scale");

/** Placement and routing of the product, in simulated time over as many pods as one machine cannot run. */
export const scaleRow = {
  name: "scale",
  async measure(context: BenchContext): Promise<Measure[]> {
    context.note(
      `simulated: a pod serves one request after the other, ${serviceMs} ms each; a load takes ${loadMs} ms; a pod has room for ${roomRatio} times the mean number of models; the fleet starts with each model on its first pod; Zipf 1.0`,
    );
    context.note(
      "real: the code that ranks pods, routes requests and places instances, and the time that it takes here",
    );
    const measures: Measure[] = [];
    for (const scale of context.quick ? scales.slice(0, 2) : scales) {
      context.log(`${scale.podCount} pods`);
      measures.push(...replay(scale), ...nodePlacement(scale.podCount));
    }
    return measures;
  },
};

const targetOf = (model: number) => `tenants/${model}.tar.gz`;

function replay({ podCount, modelCount, perSecond, requestCount, movableCount }: Scale): Measure[] {
  const modelsMax = Math.ceil((modelCount / podCount) * roomRatio);
  const fleet = new SimulatedFleet({ podCount, modelsMax, serviceMs, loadMs, coldMs, key });
  fleet.settle(Array.from({ length: modelCount }, (_, model) => targetOf(model)));
  const settled = fleet.modelsPerPod();
  const durationMs = (requestCount * 1000) / perSecond;
  const arrivals = zipfArrivals({ perSecond, durationMs, modelCount, random: seededRandom(5) });
  const responses: SimulatedResponse[] = [];
  let before: readonly number[] = [];
  const routingUs: number[] = [];
  for (const { atMs, model } of arrivals)
    fleet.timeline.at(atMs, () => {
      const startMs = performance.now();
      fleet.request(targetOf(model), (response) => {
        if (atMs >= durationMs * warmUpShare) responses.push(response);
      });
      routingUs.push((performance.now() - startMs) * 1000);
    });
  fleet.timeline.at(durationMs * warmUpShare, () => (before = fleet.servedPerPod()));
  fleet.timeline.run();
  const served = fleet.servedPerPod().map((count, pod) => count - (before[pod] ?? 0));
  const latency = (share: number) =>
    weightedQuantile(
      responses.map(({ tookMs }) => ({ value: tookMs, weight: 1 })),
      share,
    );
  const addedCount = Math.ceil(podCount * addedShare);
  const moved = movedShare(
    Array.from({ length: movableCount }, (_, model) => targetOf(model)),
    { podCount, addedCount, key },
  );
  const measure = measurer(`${podCount} pods, ${modelCount} models, ${perSecond} requests a second`);
  return [
    measure("models of the fullest pod, relative to the mean", "x", maxToMean(settled)),
    ...(total(served) < podCount * servedMin
      ? []
      : [measure("requests of the busiest pod, relative to the mean", "x", maxToMean(served))]),
    measure(
      "requests that waited for a load",
      "%",
      (responses.filter(({ isMiss }) => isMiss).length * 100) / responses.length,
    ),
    measure("additional copies of models", "", fleet.additionalCopyCount),
    measure("simulated p50", "ms", latency(0.5)),
    measure("simulated p99", "ms", latency(0.99)),
    measure(
      `models moved by ${addedCount} further pods, relative to their share`,
      "x",
      (moved * (podCount + addedCount)) / addedCount,
      1.25,
    ),
    measure("routing decision, median", "us", median(routingUs)),
  ];
}

/** Places the pods on nodes, one after another. */
function nodePlacement(podCount: number): Measure[] {
  const nodeCount = Math.ceil(podCount / podsPerNode);
  const capacity = { ...noResources, memoryBytes: (podBytes * podsPerNode) / nodeFill };
  const nodes = Array.from({ length: nodeCount }, (_, index) => ({
    id: parseNodeId(`node-${index}`),
    labels: {},
    capacity,
    reserved: noResources,
  }));
  const startMs = performance.now();
  const placed = placeInstances(
    nodes,
    Array.from({ length: podCount }, () => podBytes),
  );
  const tookUs = (performance.now() - startMs) * 1000;
  if (placed.first !== null) throw new Error("the nodes have room for every pod");
  const measure = measurer(`${podCount} pods on ${nodeCount} nodes`);
  return [
    measure(
      "memory of the fullest node, relative to the mean",
      "x",
      maxToMean(placed.nodes.map((node) => node.reserved.memoryBytes)),
    ),
    measure("placement of one pod", "us", tookUs / podCount),
  ];
}

function maxToMean(values: readonly number[]): number {
  return (Math.max(...values) * values.length) / total(values);
}

const total = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0);

const measurer =
  (scale: string) =>
  (what: string, unit: string, value: number, atMost: number | null = null): Measure => ({
    what: `${scale}: ${what}`,
    unit,
    ours: [value],
    oracle: [],
    goal: atMost === null ? null : { kind: "at most", of: "ours", value: atMost },
  });
