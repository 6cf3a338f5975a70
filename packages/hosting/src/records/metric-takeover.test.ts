import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { createLogger, silentLogger } from "@galatea/base";
import { metricMigrations } from "./metric-tables.ts";
import { takeOverMetrics } from "./metric-takeover.ts";
import { recordMigrations } from "./record-migrations.ts";
import { openRecords, recordsDefaults } from "./records.ts";

const root = mkdtempSync(join(tmpdir(), "galatea-takeover-"));
after(() => rmSync(root, { recursive: true, force: true }));

const paths = (name: string) => ({ records: join(root, `${name}.db`), metrics: join(root, `${name}-metrics.db`) });

test("metrics that an earlier release kept among the records move to their own database, and the records stay", async () => {
  const { records, metrics } = paths("older");
  const logger = silentLogger;
  // An earlier release's migrations were the first two of today's.
  const before = await openRecords({
    ...recordsDefaults,
    path: records,
    migrations: recordMigrations.slice(0, 2),
    logger,
  });
  await before.write([
    { sql: "INSERT INTO hosting_record VALUES ('model', 'a', '{}')", values: [] },
    { sql: "INSERT INTO metric_series VALUES (7, '{}')", values: [] },
    { sql: "INSERT INTO metric_block VALUES (1, 60000, 0, 1, x'01')", values: [] },
  ]);
  await before[Symbol.asyncDispose]();
  takeOverMetrics({ records, metrics }, logger);
  const told: string[] = [];
  const listening = createLogger((_, message) => told.push(message));
  await using kept = await openRecords({
    ...recordsDefaults,
    path: records,
    migrations: recordMigrations,
    logger: listening,
  });
  await using moved = await openRecords({
    ...recordsDefaults,
    path: metrics,
    migrations: metricMigrations,
    logger: listening,
  });
  assert.deepEqual(told, []);
  assert.equal((await kept.rows("SELECT key FROM document")).length, 1);
  assert.deepEqual(await kept.rows("SELECT name FROM sqlite_master WHERE name LIKE 'metric%'"), []);
  assert.equal((await moved.rows("SELECT number FROM metric_series"))[0]?.["number"], 7);
  assert.equal((await moved.rows("SELECT id FROM metric_block")).length, 1);
  assert.deepEqual(await moved.rows("SELECT name FROM sqlite_master WHERE name = 'hosting_record'"), []);
});

test("records that cannot be read give no metrics, and say so", () => {
  const { records, metrics } = paths("garbage");
  writeFileSync(records, "garbage");
  const told: string[] = [];
  takeOverMetrics(
    { records, metrics },
    createLogger((_, message) => told.push(message)),
  );
  assert.deepEqual(told, ["the metrics of an earlier release cannot be read and are left out"]);
});
