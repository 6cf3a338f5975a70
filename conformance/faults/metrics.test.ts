/** Metrics survive a stop of the platform, and kill -9 after their minute was written. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, test } from "node:test";
import {
  CloudWatchClient,
  GetMetricDataCommand,
  GetMetricStatisticsCommand,
  ListMetricsCommand,
  PutMetricDataCommand,
} from "@aws-sdk/client-cloudwatch";
import { credentials, Platform } from "./platform.ts";
import { until } from "./until.ts";

const Namespace = "Faults";
const Dimensions = [{ Name: "TargetModel", Value: "m.tar.gz" }];
const minuteMs = 60_000;

let platform: Platform;
before(async () => {
  platform = await Platform.open();
});
after(async () => {
  await platform[Symbol.asyncDispose]();
});

async function cloudWatch<Reply>(request: (client: CloudWatchClient) => Promise<Reply>): Promise<Reply> {
  const client = new CloudWatchClient({ endpoint: platform.url, region: "us-east-1", credentials, maxAttempts: 1 });
  try {
    return await request(client);
  } finally {
    client.destroy();
  }
}

const put = (MetricName: string, ...Values: number[]) =>
  cloudWatch((client) =>
    client.send(
      new PutMetricDataCommand({
        Namespace,
        MetricData: [{ MetricName, Dimensions, Unit: "Microseconds", Values, Timestamp: new Date() }],
      }),
    ),
  );

/** Count, sum and 90th percentile of the last hour. */
const statistics = (MetricName: string) =>
  cloudWatch(async (client) => {
    const StartTime = new Date(Date.now() - 60 * minuteMs);
    const EndTime = new Date(Date.now() + minuteMs);
    const requested = { Namespace, MetricName, Dimensions };
    const simple = await client.send(
      new GetMetricStatisticsCommand({
        ...requested,
        StartTime,
        EndTime,
        Period: 60,
        Statistics: ["SampleCount", "Sum", "Maximum"],
      }),
    );
    const total = (read: "SampleCount" | "Sum") =>
      (simple.Datapoints ?? []).reduce((sum, point) => sum + (point[read] ?? 0), 0);
    const data = await client.send(
      new GetMetricDataCommand({
        StartTime,
        EndTime,
        MetricDataQueries: [{ Id: "p", MetricStat: { Metric: requested, Period: 7200, Stat: "p90" } }],
      }),
    );
    return [total("SampleCount"), total("Sum"), Math.round(data.MetricDataResults?.[0]?.Values?.at(-1) ?? 0)];
  });

test("after a stop the statistics are kept, including those of the open minute, and continue", async () => {
  await put("Stopped", 10, 20, 30);
  const before = await statistics("Stopped");
  assert.deepEqual(before.slice(0, 2), [3, 60]);
  await platform.stop();
  await platform.startAgain();
  assert.deepEqual(await statistics("Stopped"), before);
  const { Metrics = [] } = await cloudWatch((client) =>
    client.send(new ListMetricsCommand({ Namespace, RecentlyActive: "PT3H" })),
  );
  assert.deepEqual(Metrics, [{ Namespace, MetricName: "Stopped", Dimensions }]);
  await put("Stopped", 40);
  assert.deepEqual((await statistics("Stopped")).slice(0, 2), [4, 100]);
});

test("after kill -9 the statistics of all written minutes are kept", async () => {
  await put("Killed", 1, 2, 3, 4);
  const before = await statistics("Killed");
  {
    using database = new DatabaseSync(join(platform.workspace.data, "records", "metrics.db"), { readOnly: true });
    // A series is written with its first minute.
    const written = database.prepare("SELECT 1 FROM metric_series WHERE body LIKE '%\"Killed\"%'");
    await until("the minute is over and written", () => written.get() !== undefined, 2 * minuteMs);
  }
  await platform.kill();
  await platform.startAgain();
  assert.deepEqual(before.slice(0, 2), [4, 10]);
  assert.deepEqual(await statistics("Killed"), before);
});
