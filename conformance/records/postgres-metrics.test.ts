/** Metrics over PostgreSQL pass the same contract tests as metrics over SQLite, survive an outage of the database, and have one writer. */
import assert from "node:assert/strict";
import { mkdtempDisposableSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { createLogger, silentLogger, type Logger } from "@galatea/base";
import { InMemoryMetricStore, type MetricStore, type SeriesKey } from "@galatea/base/metrics";
import {
  durableMetricsContract,
  metricStoreContract,
  UpkeepClock,
  type DurableMetricsOptions,
} from "@galatea/hosting/records/contracts";
import {
  copyRecords,
  openMetrics,
  openSqliteSource,
  openSqliteTarget,
  type CopySource,
  type CopyTarget,
} from "@galatea/hosting/records";
import {
  openMetricDatabase,
  openPostgresDocuments,
  openPostgresMetrics,
  openPostgresSource,
  openPostgresTarget,
  parseDatabaseUrl,
  type DatabaseAddress,
} from "@galatea/hosting/records/postgres";
import { StoredMetrics, storedMetricLimits, type MetricDatabase } from "@galatea/hosting/records/stored-metrics.ts";
import { FaultyNetwork } from "../../packages/hosting/test/faulty-network-fixture.ts";
import { startPostgres, type PostgresServer } from "../environments/index.ts";

const minute = 60_000;
const afterMinuteMs = 250;
const start = Date.UTC(2026, 10, 21, 12);
const logger = silentLogger;
const limits = { seriesMax: 10_000, bytesMax: 1e8 };

let count = 0;
async function newDatabase(server: PostgresServer): Promise<DatabaseAddress> {
  const name = `metrics_${(count += 1)}`;
  await server.createDatabase(name);
  return parseDatabaseUrl(server.url(name));
}

/** Rejects writes of points that `mayWrite` does not permit, and every write after a kill. */
function guarded(database: MetricDatabase, mayWrite: (hasPoints: boolean) => boolean): MetricDatabase {
  return {
    write: (statements) => {
      const hasPoints = statements.some(({ sql }) => sql.startsWith("INSERT INTO metric_block"));
      return mayWrite(hasPoints) ? database.write(statements) : Promise.reject(new Error("could not extend file"));
    },
    rows: (sql, ...values) => database.rows(sql, ...values),
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  };
}

async function openDurable(address: DatabaseAddress, options: DurableMetricsOptions) {
  const { clock, pointsPerWrite, mayWrite } = options;
  const documents = await openPostgresDocuments({ address, logger });
  let isKilled = false;
  const open = async () => {
    const records = guarded(
      await openMetricDatabase(address, documents.holder),
      (hasPoints) => !isKilled && (!hasPoints || mayWrite()),
    );
    const series = new InMemoryMetricStore({ ...limits, ...options });
    return await StoredMetrics.open({
      records,
      series,
      limits: { ...storedMetricLimits, pointsPerWrite },
      clock,
      logger,
    });
  };
  let metrics = await open();
  const restart = async () => {
    await metrics[Symbol.asyncDispose]();
    isKilled = false;
    return (metrics = await open());
  };
  return {
    metrics: metrics as MetricStore,
    restart,
    kill: () => {
      isKilled = true;
      return restart();
    },
    async [Symbol.asyncDispose]() {
      await metrics[Symbol.asyncDispose]();
      await documents[Symbol.asyncDispose]();
    },
  };
}

for (const release of ["oldest", "newest"] as const) {
  let server: PostgresServer;
  before(async () => {
    server = await startPostgres(release);
  });
  after(() => server[Symbol.asyncDispose]());

  metricStoreContract(`metrics in the ${release} PostgreSQL`, async (options) => {
    const opening = new AsyncDisposableStack();
    const address = await newDatabase(server);
    const { holder } = opening.use(await openPostgresDocuments({ address, logger }));
    const metrics = opening.use(await openPostgresMetrics({ ...limits, ...options, address, holder, logger }));
    return { metrics, [Symbol.asyncDispose]: () => opening.disposeAsync() };
  });

  durableMetricsContract(`metrics in the ${release} PostgreSQL`, async (options) =>
    openDurable(await newDatabase(server), options),
  );
}

let server: PostgresServer;
before(async () => {
  server = await startPostgres("newest");
});
after(() => server[Symbol.asyncDispose]());

const key: SeriesKey = {
  namespace: "Galatea/Models",
  metricName: "ModelLatency",
  dimensions: [],
  unit: "Microseconds",
};

async function totals(metrics: MetricStore): Promise<readonly [count: number, sum: number]> {
  const points = await metrics.query(key, { startMs: 0, endMs: 2 * start, periodMs: minute, unit: null });
  return points.reduce(([samples, sum], each) => [samples + each.sampleCount, sum + each.sum], [0, 0]);
}

/** Opens documents and metrics of one platform; `logger` gets the lines about metrics. */
async function openPlatform(
  address: DatabaseAddress,
  options: { readonly clock: UpkeepClock; readonly logger?: Logger; readonly bytesMax?: number },
) {
  const opening = new AsyncDisposableStack();
  const documents = opening.use(await openPostgresDocuments({ address, logger }));
  const { holder } = documents;
  const metrics = opening.use(await openPostgresMetrics({ ...limits, logger, ...options, address, holder }));
  return { documents, metrics, [Symbol.asyncDispose]: () => opening.disposeAsync() };
}

function loggerOf(lines: string[]): Logger {
  return createLogger((level, message) => lines.push(`${level}: ${message}`));
}

test("recording continues while the database is away, and every sample is stored when it is back and after a restart", async () => {
  const address = await newDatabase(server);
  const clock = new UpkeepClock(start);
  const lines: string[] = [];
  let expected: [number, number] = [0, 0];
  {
    await using platform = await openPlatform(address, { clock, logger: loggerOf(lines) });
    const recorder = platform.metrics.recorder(key);
    for (let index = 0; index < 12; index += 1) {
      if (index === 2) await server.kill();
      if (index === 6) await server.start();
      for (let value = 1; value <= 100; value += 1) recorder.record(value + index);
      expected = [expected[0] + 100, expected[1] + 5050 + 100 * index];
      await clock.passTo(start + (index + 1) * minute + afterMinuteMs);
      assert.deepEqual(await totals(platform.metrics), expected);
    }
  }
  const failed = "error: metrics were not written; they are kept and written later";
  assert.ok(lines.filter((line) => line === failed).length >= 4, lines.join("\n"));
  assert.deepEqual(new Set(lines).difference(new Set([failed])), new Set());
  await using again = await openPlatform(address, { clock });
  assert.deepEqual(await totals(again.metrics), expected);
});

test("connections that break at any moment, also between a commit and its response, lose no sample and count none twice", async () => {
  const address = await newDatabase(server);
  await using network = await FaultyNetwork.open(server.port);
  const clock = new UpkeepClock(start);
  const proxied = parseDatabaseUrl(`postgres://galatea@127.0.0.1:${network.port}/metrics_${count}?sslmode=disable`);
  const documents = await openPostgresDocuments({ address, logger });
  const { holder } = documents;
  const metrics = await openPostgresMetrics({ ...limits, clock, logger, address: proxied, holder });
  const recorder = metrics.recorder(key);
  for (let index = 0; index < 20; index += 1) {
    recorder.record(index);
    if (index % 4 === 1) network.cut();
    if (index % 4 === 3) network.loseResponses();
    await clock.passTo(start + (index + 1) * minute + afterMinuteMs);
  }
  await metrics[Symbol.asyncDispose]();
  await documents[Symbol.asyncDispose]();
  await using again = await openPlatform(address, { clock });
  assert.deepEqual(await totals(again.metrics), [20, 190]);
});

test("samples over the memory limit are dropped while the database is away, and a warning says how many points", async () => {
  const address = await newDatabase(server);
  const clock = new UpkeepClock(start);
  const dropped: { readonly message: string; readonly points: unknown }[] = [];
  const warned = createLogger((level, message, fields) => {
    if (level === "warning") dropped.push({ message, points: fields?.["points"] });
  });
  await using platform = await openPlatform(address, { clock, logger: warned, bytesMax: 400 });
  const recorder = platform.metrics.recorder(key);
  await server.kill();
  for (let index = 0; index < 4; index += 1) {
    recorder.record(1);
    clock.ms += 60 * minute;
    await clock.passTo(clock.ms + afterMinuteMs);
  }
  await server.start();
  const warning = "metrics were dropped before they were written: the memory or the number of series is at its limit";
  assert.ok(dropped.length > 0);
  const [left] = await totals(platform.metrics);
  assert.equal(
    dropped.reduce((sum, { points }) => sum + Number(points), 0),
    4 - left,
  );
  assert.deepEqual(new Set(dropped.map(({ message }) => message)), new Set([warning]));
});

test("a platform whose records were taken over by another one writes no more metrics", async () => {
  const address = await newDatabase(server);
  const clock = new UpkeepClock(start);
  const lines: string[] = [];
  const first = await openPlatform(address, { clock, logger: loggerOf(lines) });
  first.metrics.recorder(key).record(1);
  await clock.passTo(start + minute + afterMinuteMs);
  await first.documents[Symbol.asyncDispose]();
  await using second = await openPlatform(address, { clock });
  await assert.rejects(
    openPostgresMetrics({ ...limits, clock, logger, address, holder: first.documents.holder }),
    /WriteLockLost: another platform uses the metrics/,
  );
  first.metrics.recorder(key).record(1000);
  second.metrics.recorder(key).record(2);
  await first.metrics[Symbol.asyncDispose]();
  assert.deepEqual(lines, ["error: metrics were not written; they are lost"]);
  await second[Symbol.asyncDispose]();
  await using third = await openPlatform(address, { clock });
  assert.deepEqual(await totals(third.metrics), [2, 3]);
});

test("metrics are copied to a data directory and back, and every sample is there", async () => {
  const [address, other] = [await newDatabase(server), await newDatabase(server)];
  const clock = new UpkeepClock(start);
  {
    await using platform = await openPlatform(address, { clock });
    for (let value = 1; value <= 100; value += 1) platform.metrics.recorder(key).record(value);
  }
  using folder = mkdtempDisposableSync(join(tmpdir(), "galatea-copy-"));
  const paths = { records: join(folder.path, "galatea.db"), metrics: join(folder.path, "metrics.db") };
  const copy = async (opening: readonly [Promise<CopySource> | CopySource, Promise<CopyTarget>]) => {
    await using source = await opening[0];
    await using target = await opening[1];
    return (await copyRecords(source, target)).metrics;
  };
  const out = await copy([openPostgresSource(address), openSqliteTarget(paths)]);
  assert.deepEqual(
    out.map(({ kind }) => kind),
    ["metric series", "metric blocks"],
  );
  {
    await using metrics = await openMetrics({ ...limits, clock, logger, path: paths.metrics });
    assert.deepEqual(await totals(metrics), [100, 5050]);
  }
  const back = await copy([openSqliteSource(paths, { isInUse: false }), openPostgresTarget(other, logger)]);
  assert.deepEqual(back, out);
  await using again = await openPlatform(other, { clock });
  assert.deepEqual(await totals(again.metrics), [100, 5050]);
  await assert.rejects(
    copy([openPostgresSource(address), openPostgresTarget(address, logger)]),
    /has metrics; use another/,
  );
});
