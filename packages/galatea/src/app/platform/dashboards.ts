import type { DashboardRecord, DashboardStore } from "@galatea/aws";
import type { Logger } from "@galatea/base";
import type { Documents } from "@galatea/hosting/records";
import { RecordedValues } from "./recorded-values.ts";

/** CloudWatch's dashboards as documents: they outlive the platform. */
export function recordedDashboards(documents: Documents, logger: Logger): DashboardStore {
  const dashboards = new RecordedValues<DashboardRecord>(documents, "dashboard", logger);
  return {
    get: (name) => dashboards.get(name),
    all: () => dashboards.all(),
    put: (dashboard) => dashboards.put(dashboard.name, dashboard),
    delete: (name) => dashboards.delete(name),
  };
}
