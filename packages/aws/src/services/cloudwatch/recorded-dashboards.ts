import type { Logger } from "@galatea/base";
import { RecordedValues, type Documents } from "@galatea/hosting/records";
import type { DashboardRecord, DashboardStore } from "./dashboards.ts";

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
