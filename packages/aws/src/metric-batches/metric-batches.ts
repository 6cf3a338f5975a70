import type { MetricStore } from "@galatea/base/metrics";
import type { MetricBatch } from "./metric-batch.ts";

/** Maximum number of gateways whose last batch is remembered. */
const gatewaysMax = 1000;

/** Records the metrics of gateways. A batch that was already recorded is ignored. */
export class MetricBatches {
  readonly #store: Pick<MetricStore, "record">;
  /** Number of the last batch, by gateway; the gateway that reported last is at the end. */
  readonly #last = new Map<string, number>();

  constructor(store: Pick<MetricStore, "record">) {
    this.#store = store;
  }

  record({ gateway, number, series }: MetricBatch): void {
    const last = this.#last.get(gateway) ?? 0;
    if (number <= last) return;
    this.#last.delete(gateway);
    this.#last.set(gateway, number);
    const [oldest] = this.#last.keys();
    if (this.#last.size > gatewaysMax && oldest !== undefined) this.#last.delete(oldest);
    for (const { key, resolutionMs, samples } of series) {
      for (const { startMs: timestampMs, values } of samples) {
        for (const [value, count] of values) this.#store.record(key, { value, count }, { timestampMs, resolutionMs });
      }
    }
  }
}
