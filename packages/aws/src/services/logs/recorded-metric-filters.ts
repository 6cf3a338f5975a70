import type { Logger } from "@galatea/base";
import { RecordedValues, type Documents } from "@galatea/hosting/records";
import type { MetricFilterRecord, MetricFilterStore } from "./metric-filters/index.ts";

/** Metric filters of log groups as documents: they outlive the platform. */
export function recordedMetricFilters(documents: Documents, logger: Logger): MetricFilterStore {
  const filters = new RecordedValues<MetricFilterRecord>(documents, "metric-filter", logger);
  const keyOf = ({ group, name }: MetricFilterRecord) => JSON.stringify([group, name]);
  return {
    all: () => filters.all(),
    put: (filter) => filters.put(keyOf(filter), filter),
    delete: (gone) => filters.deleteAll(gone.map(keyOf)),
  };
}
