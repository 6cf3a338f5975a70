import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, test } from "node:test";
import { existsSync } from "node:fs";
import { silentLogger, systemClock } from "@galatea/base";
import { openDocuments } from "./sqlite-documents.ts";
import { copyRecords, type CopyTarget } from "./record-copy.ts";
import { openSqliteSource, openSqliteTarget } from "./sqlite-copy.ts";
import { openMetrics } from "./sqlite-metrics.ts";

const directory = mkdtempSync(join(tmpdir(), "galatea-copy-"));
after(() => rmSync(directory, { recursive: true }));

for (const [release, sql, advice] of [
  ["newer", "INSERT INTO applied_migration VALUES ('of-a-newer-release')", "Copy it with that release"],
  [
    "older",
    "DELETE FROM applied_migration",
    "Run 'galatea up' of this release with its data directory once, then repeat the copy",
  ],
] as const) {
  test(`a database file of ${release === "older" ? "an" : "a"} ${release} release is rejected as the source of a copy, with what to do`, async () => {
    const path = join(directory, `${release}.db`);
    const documents = await openDocuments({ path, snapshots: null, logger: silentLogger });
    await documents[Symbol.asyncDispose]();
    const database = new DatabaseSync(path);
    database.exec(sql);
    database.close();
    assert.throws(() => openSqliteSource({ records: path, metrics: join(directory, "none.db") }, { isInUse: false }), {
      message: `'${path}' was written by ${release === "older" ? "an" : "a"} ${release} release of Galatea. ${advice}`,
    });
  });
}

const pathsOf = (name: string) => ({
  records: join(directory, `${name}-records.db`),
  metrics: join(directory, `${name}-metrics.db`),
});
const key = { namespace: "N", metricName: "M", dimensions: [{ name: "A", value: "ä" }], unit: "Count" } as const;
const clock = systemClock;

const openMetricsOf = (path: string) =>
  openMetrics({
    path,
    clock,
    seriesMax: 10_000,
    bytesMax: 1e8,
    logger: silentLogger,
    isWritableByClients: () => true,
    namesBytesMax: 1e6,
  });

async function totals(path: string): Promise<readonly [count: number, sum: number]> {
  await using metrics = await openMetricsOf(path);
  const points = await metrics.query(key, { startMs: 0, endMs: clock.epochMs() + 1e6, periodMs: 60_000, unit: null });
  return points.reduce(([samples, sum], each) => [samples + each.sampleCount, sum + each.sum], [0, 0]);
}

async function filled(name: string) {
  const paths = pathsOf(name);
  await using documents = await openDocuments({ path: paths.records, snapshots: null, logger: silentLogger });
  await documents.write([{ do: "put", kind: "k", key: "a", body: "text", orders: { o: "1" }, expects: "absent" }]);
  await using metrics = await openMetricsOf(paths.metrics);
  // The series need more than one page.
  for (let count = 0; count < 700; count += 1) metrics.recorder({ ...key, metricName: `M${count}` }).record(count);
  for (let value = 1; value <= 100; value += 1) metrics.recorder(key).record(value);
  return paths;
}

test("a copy has the documents and the metrics of the source, with equal checksums, and its target has to be empty", async () => {
  const from = await filled("from");
  const to = pathsOf("to");
  const copy = async (source: typeof from, target: typeof to) => {
    await using opened = openSqliteSource(source, { isInUse: false });
    await using empty = await openSqliteTarget(target);
    return await copyRecords(opened, empty);
  };
  const copied = await copy(from, to);
  assert.deepEqual(
    [...copied.documents, ...copied.metrics].map(({ kind, count }) => [kind, count]),
    [
      ["k", 1],
      ["metric series", 701],
      ["metric blocks", copied.metrics[1]?.count],
    ],
  );
  assert.deepEqual(await totals(from.metrics), [100, 5050]);
  assert.deepEqual(await totals(to.metrics), [100, 5050]);
  assert.deepEqual(await copy(to, pathsOf("third")), copied);
  await assert.rejects(
    copy(from, to),
    /to-records\.db' has records; choose another data directory, or move the file away/,
  );
  rmSync(to.records);
  await assert.rejects(copy(from, to), /to-metrics\.db' has metrics; choose another data directory/);
});

test("a copy whose metrics differ from the source is rejected, and nothing of it is kept", async () => {
  const from = await filled("differing");
  const to = pathsOf("damaged");
  await using source = openSqliteSource(from, { isInUse: false });
  {
    await using target = await openSqliteTarget(to);
    const damaging: CopyTarget = {
      ...target,
      metrics: {
        rows: (sql, ...values) => target.metrics.rows(sql, ...values),
        insert: ({ sql, values }) =>
          target.metrics.insert({
            sql,
            values: values.map((value) => (typeof value === "string" ? `${value} ` : value)),
          }),
      },
    };
    await assert.rejects(
      copyRecords(source, damaging),
      /the copy of metric series differs: 701 of 701; nothing was copied/,
    );
  }
  for (const path of [to.records, to.metrics, `${to.records}.copy`, `${to.metrics}.copy`]) assert.ok(!existsSync(path));
});
