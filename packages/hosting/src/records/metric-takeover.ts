import { existsSync, renameSync, rmSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import type { Logger } from "@galatea/base";
import { metricMigrations } from "./metric-tables.ts";

/**
 * Metrics once lay in the database of the records. Where they still do, the database of metrics is begun with them; the records drop
 * them when they are opened. Metrics that cannot be read there are told and given up: they keep nothing else from opening.
 */
export function takeOverMetrics(paths: { readonly records: string; readonly metrics: string }, logger: Logger): void {
  if (existsSync(paths.metrics) || !existsSync(paths.records)) return;
  const made = `${paths.metrics}.new`;
  rmSync(made, { force: true });
  try {
    using records = new DatabaseSync(paths.records, { readOnly: true });
    const ids = metricMigrations.map(({ id }) => `'${id}'`).join(", ");
    const [found] = records.prepare("SELECT 1 FROM sqlite_master WHERE name = 'metric_block'").all();
    if (found === undefined) return;
    records.exec(`VACUUM INTO '${made.replaceAll("'", "''")}'`);
    using metrics = new DatabaseSync(made);
    metrics.exec(`DROP TABLE IF EXISTS hosting_record; DROP TABLE IF EXISTS commit_count;
      DELETE FROM applied_migration WHERE id NOT IN (${ids})`);
  } catch (error) {
    rmSync(made, { force: true });
    logger.error("the metrics of an earlier release cannot be read and are left out", { error: String(error) });
    return;
  }
  renameSync(made, paths.metrics);
}
