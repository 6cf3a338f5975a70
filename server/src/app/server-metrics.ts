import type { ByteBudget, Clock } from "../base/index.ts";
import type { EngineMetrics } from "../engine/index.ts";
import {
  createHostMetrics,
  createInferenceMetrics,
  createPinnedMemoryMetrics,
  MetricRegistry,
} from "../metrics/index.ts";

export interface ServerMetrics {
  readonly registry: MetricRegistry;
  readonly engine: EngineMetrics;
}

/** The instruments of one server: the families of inference, and the machine's gauges when asked for. */
export function createServerMetrics(options: {
  readonly hostGauges: boolean;
  readonly intervalMs: number;
  readonly clock: Clock;
  readonly budget: ByteBudget;
}): ServerMetrics {
  const registry = new MetricRegistry({ rowsMax: 200_000 });
  const engine = createInferenceMetrics(registry, { histogramLatencies: false });
  createPinnedMemoryMetrics(registry);
  const { budget } = options;
  registry
    .gauge("galatea_request_memory_used_bytes", "Memory that requests and answers in flight take, in bytes")
    .readFrom({}, () => budget.usedBytes);
  registry
    .gauge("galatea_request_memory_total_bytes", "Memory that requests and answers in flight may take, in bytes")
    .readFrom({}, () => budget.bytesMax);
  if (options.hostGauges) createHostMetrics(registry, options);
  return { registry, engine };
}
