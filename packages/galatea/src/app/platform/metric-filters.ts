import type { MetricFilterRecord, MetricFilterStore } from "@galatea/aws";
import type { Logger } from "@galatea/base";
import type { Documents } from "@galatea/hosting/records";
import { RecordedValues } from "./recorded-values.ts";

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
