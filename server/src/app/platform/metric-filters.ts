import type { MetricFilterRecord, MetricFilterStore } from "../../aws/index.ts";
import type { Logger } from "../../base/index.ts";
import type { Documents } from "../../records/index.ts";
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
