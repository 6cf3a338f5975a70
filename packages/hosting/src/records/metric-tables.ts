import type { Migration } from "./statement.ts";

/**
 * Tables of metrics. A block has the points of many series, from one write and one time range. Blocks are never
 * changed, and are deleted when all their points have expired. If a point is in two blocks, the later block is valid.
 */
export const metricMigrations: readonly Migration[] = [
  {
    id: "metrics-1",
    sql: `CREATE TABLE metric_series (number INTEGER PRIMARY KEY AUTOINCREMENT, body TEXT NOT NULL) STRICT;
    CREATE TABLE metric_block (
      id INTEGER PRIMARY KEY, period_ms INTEGER NOT NULL, start_ms INTEGER NOT NULL, byte_count INTEGER NOT NULL,
      points BLOB NOT NULL
    ) STRICT;
    CREATE INDEX metric_block_by_time ON metric_block (period_ms, start_ms, byte_count)`,
  },
];
