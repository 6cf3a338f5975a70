import { setImmediate } from "node:timers/promises";
import type { ByteBudget, Clock } from "@galatea/base";
import type { EngineMetrics } from "@galatea/server/engine";
import type { GpuWatch } from "@galatea/server/gpus";
import {
  createGpuMetrics,
  createHostMetrics,
  createInferenceMetrics,
  createPinnedMemoryMetrics,
  type CustomMetricLimits,
  MetricRegistry,
  CustomMetricFamilies,
  type AllocateSharedCells,
} from "@galatea/base/metrics";
import type { BlockSource } from "@galatea/server/tensor";

export interface ServerMetrics {
  readonly engine: EngineMetrics;
  /** Resolves with the text of a scrape: the server's own metrics, then those that models create. */
  readonly text: () => Promise<string>;
}

/** Limits of custom metrics: for all models of the operator together, and for the models of each tenant. */
const ownLimits: CustomMetricLimits = {
  linesMax: 100_000,
  textLengthMax: 2 ** 24,
  writersMax: 100_000,
  bytesMax: 2 ** 26,
  boundsMax: 1000,
};
const tenantLimits: CustomMetricLimits = {
  linesMax: 5000,
  textLengthMax: 2 ** 20,
  writersMax: 10_000,
  bytesMax: 2 ** 22,
  boundsMax: 1000,
};

/** Length of the text that is printed in one event loop tick. */
const textInTurn = 2 ** 16;

/**
 * Creates the metrics of a server: inference metrics, metrics that models create, and optionally gauges of the machine.
 */
export function createServerMetrics(options: {
  readonly hostGauges: boolean;
  readonly intervalMs: number;
  readonly clock: Clock;
  readonly budget: ByteBudget;
  /** The GPUs to report; null: no GPU metrics. */
  readonly gpus: GpuWatch | null;
}): ServerMetrics {
  const registry = new MetricRegistry({ rowsMax: 200_000 });
  const inference = createInferenceMetrics(registry, { histogramLatencies: false });
  createPinnedMemoryMetrics(registry);
  const { budget } = options;
  registry
    .gauge("galatea_request_memory_used_bytes", "Memory used by requests and responses in flight, in bytes")
    .readFrom({}, () => budget.usedBytes);
  registry
    .gauge("galatea_request_memory_total_bytes", "Limit of the memory for requests and responses in flight, in bytes")
    .readFrom({}, () => budget.bytesMax);
  if (options.hostGauges) createHostMetrics(registry, options);
  const { gpus } = options;
  const refreshGpus =
    gpus === null
      ? () => {}
      : createGpuMetrics(registry, () =>
          gpus.readings().map((reading) => ({ ...reading, energyJoules: gpus.energySinceStart(reading) })),
        );
  const families = new CustomMetricFamilies((name) => name.startsWith("galatea_") || registry.has(name));
  return {
    engine: {
      open: (source) => inference.open(source),
      ofModels: (namespace, arena) =>
        families.open(namespace, namespace === "" ? ownLimits : tenantLimits, cellsIn(arena)),
    },
    async text() {
      refreshGpus();
      let text = registry.print();
      let inTurn = 0;
      for (const segment of families.print()) {
        text += segment;
        inTurn += segment.length;
        if (inTurn < textInTurn) continue;
        inTurn = 0;
        await setImmediate();
      }
      return text;
    },
  };
}

function cellsIn(arena: BlockSource): AllocateSharedCells {
  return (count) => {
    const block = arena.allocate(count * Float64Array.BYTES_PER_ELEMENT);
    const cells = new Float64Array(block.bytes.buffer, block.bytes.byteOffset, count).fill(0);
    return { cells, byteOffset: block.byteOffset, [Symbol.dispose]: () => block.release() };
  };
}
