/** `galatea up --records postgres://…`: kill -9 of the platform, a second one, a database that restarts under load, and `galatea records copy`. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { CloudWatchClient, GetMetricStatisticsCommand, PutMetricDataCommand } from "@aws-sdk/client-cloudwatch";
import { PutObjectCommand } from "@aws-sdk/client-s3";
import { AddTagsCommand, DescribeEndpointCommand, SageMakerClient } from "@aws-sdk/client-sagemaker";
import { startPostgres, type PostgresServer } from "../environments/index.ts";
import { faultyRequest } from "../faults/http-client.ts";
import { faultyConfig } from "../faults/faulty-model.ts";
import {
  bucket,
  createEndpoint,
  credentials,
  endpointIs,
  invoke,
  Platform,
  prefix,
  errorOfInvocation,
} from "../faults/platform.ts";
import { tarball } from "../faults/tarball.ts";
import { until } from "../faults/until.ts";

const main = fileURLToPath(new URL("../../packages/galatea/src/main.ts", import.meta.url));
const program = readFileSync(new URL("../faults/models/faulty.py", import.meta.url));
const password = "a-secret-word";
const target = "a.tar.gz";

let server: PostgresServer;
let platform: Platform;
const urlOf = (database: string) => server.url(database).replace("galatea@", `galatea:${password}@`);
before(async () => {
  server = await startPostgres("newest");
  await server.createDatabase("records");
  platform = await Platform.open(async () => {}, { flags: [`--records=${urlOf("records")}`] });
  const body = tarball([
    { path: "model/config.pbtxt", body: faultyConfig },
    { path: "model/1/model.py", body: program },
  ]);
  await platform.s3.send(new PutObjectCommand({ Bucket: bucket, Key: prefix + target, Body: body }));
  await createEndpoint(platform, { name: "kept" });
  await endpointIs(platform, "kept", "InService");
});
after(async () => {
  await platform[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
});

const described = () => platform.sagemaker.send(new DescribeEndpointCommand({ EndpointName: "kept" }));

async function galatea(...args: readonly string[]) {
  const child = spawn(process.execPath, [main, ...args]);
  let [stdout, stderr] = ["", ""];
  child.stdout.on("data", (chunk: Buffer) => (stdout += String(chunk)));
  child.stderr.on("data", (chunk: Buffer) => (stderr += String(chunk)));
  const [code] = (await once(child, "close")) as [number | null];
  return { code, stdout, stderr };
}

test("after kill -9 a new platform over the same records and data finds everything", async () => {
  const { CreationTime } = await described();
  assert.match(await invoke(platform, "kept", target, faultyRequest("echo")), /"OUT"/);
  await platform.kill();
  await platform.startAgain();
  await endpointIs(platform, "kept", "InService");
  assert.deepEqual((await described()).CreationTime, CreationTime);
  assert.match(await invoke(platform, "kept", target, faultyRequest("echo")), /"OUT"/);
});

test("a second platform over the same records does not start, and no log has the password", async () => {
  const second = await galatea(
    "up",
    "--port=0",
    `--data=${join(platform.workspace.directory, "second")}`,
    `--records=${urlOf("records")}`,
  );
  assert.equal(second.code, 1);
  assert.match(
    second.stderr,
    /galatea up: another platform from 127\.0\.0\.1 uses the records in postgres:\/\/galatea@127\.0\.0\.1/,
  );
  assert.ok(!second.stderr.includes(password) && !platform.log().includes(password));
});

test("while the database is away invocations succeed, control calls get 503, and everything recovers by itself", async (t) => {
  const over = new AbortController();
  let responseCount = 0;
  const load = Promise.all(
    Array.from({ length: 4 }, async () => {
      while (!over.signal.aborted) {
        assert.match(await invoke(platform, "kept", target, faultyRequest("echo")), /"OUT"/);
        responseCount += 1;
      }
    }),
  );
  await createEndpoint(platform, { name: "begun" });
  await server.stop();
  const error = await errorOfInvocation(described());
  assert.deepEqual([error.status, error.name], [503, "ServiceUnavailable"]);
  assert.match(error.message, /The database that holds the platform's data cannot be reached/);
  await delay(5000);
  await server.start();
  await until("a control call succeeds", () =>
    described().then(
      () => true,
      () => false,
    ),
  );
  await endpointIs(platform, "begun", "InService");
  for (let round = 0; round < 3; round += 1) {
    await server.kill();
    await server.start();
    await endpointIs(platform, "kept", "InService");
  }
  over.abort();
  await load;
  t.diagnostic(`${responseCount} invocations`);
  assert.ok(responseCount > 50);
});

test("kill -9 of the platform keeps the metrics of all minutes that had ended", async () => {
  const client = { endpoint: platform.url, region: "us-east-1", credentials };
  const cloudwatch = new CloudWatchClient(client);
  const MetricData = Array.from({ length: 50 }, (_, index) => ({
    MetricName: "Kept",
    // The minute of the sample has ended: the end of the current one writes it.
    Timestamp: new Date(Date.now() - 120_000),
    Value: index + 1,
  }));
  await cloudwatch.send(new PutMetricDataCommand({ Namespace: "Kills", MetricData }));
  // `galatea up` writes at the end of each minute: no more than 60 s are lost.
  await until("the samples are in the database", async () => {
    const rows = await server.query("SELECT 1 FROM galatea.metric_series WHERE body LIKE '%\"Kept\"%'", "records");
    return rows.length > 0;
  });
  await platform.kill();
  await platform.startAgain();
  const again = new CloudWatchClient({ ...client, endpoint: platform.url });
  const { Datapoints = [] } = await again.send(
    new GetMetricStatisticsCommand({
      Namespace: "Kills",
      MetricName: "Kept",
      StartTime: new Date(Date.now() - 3_600_000),
      EndTime: new Date(),
      Period: 3600,
      Statistics: ["Sum", "SampleCount"],
    }),
  );
  const sum = (values: readonly (number | undefined)[]) => values.reduce<number>((all, each) => all + (each ?? 0), 0);
  assert.equal(sum(Datapoints.map(({ SampleCount }) => SampleCount)), 50);
  assert.equal(sum(Datapoints.map(({ Sum }) => Sum)), 1275);
  for (const each of [cloudwatch, again]) each.destroy();
  await endpointIs(platform, "kept", "InService");
});

test("metrics are in the database and not in the data directory", async () => {
  await platform.stop();
  const [stored] = await server.query("SELECT count(*)::int AS count FROM galatea.metric_block", "records");
  assert.ok(Number(stored?.["count"]) > 0);
  assert.ok(!existsSync(join(platform.workspace.data, "records", "metrics.db")));
  await platform.startAgain();
  await endpointIs(platform, "kept", "InService");
});

test("records are copied to a data directory and back with equal checksums, and only to an empty destination", async () => {
  // A write shows that the platform holds the records again after the kills of the test before.
  const ResourceArn = (await described()).EndpointArn;
  const tagging = new AddTagsCommand({ ResourceArn, Tags: [{ Key: "copied", Value: "yes" }] });
  await until("a record is written", () =>
    platform.sagemaker.send(tagging).then(
      () => true,
      () => false,
    ),
  );
  const running = await galatea(
    "records",
    "copy",
    `--from=${urlOf("records")}`,
    `--to=${join(platform.workspace.directory, "copy")}`,
  );
  assert.deepEqual([running.code, running.stderr], [0, ""]);
  assert.match(running.stdout, /A platform uses the source/);
  await platform.stop();
  const { data } = platform.workspace;
  const without = await galatea("up", "--port=0", `--data=${data}`);
  assert.equal(without.code, 1);
  assert.match(
    without.stderr,
    /galatea up: the records of '.*' are in postgres:\/\/galatea@127\.0\.0\.1:\d+\/records: start with --records, copy them back/,
  );
  const out = await galatea("records", "copy", `--from=${urlOf("records")}`, `--to=${data}`);
  assert.deepEqual([out.code, out.stderr], [0, ""]);
  assert.match(
    out.stdout,
    /KIND +COUNT +BYTES +SHA256\n(?:\S.*? +\d+ +\d+ +[0-9a-f]{64}\n)+metric blocks +\d+ .*\n\d+ documents of version \d+, and the metrics, are copied/,
  );
  await server.createDatabase("again");
  const back = await galatea("records", "copy", `--from=${data}`, `--to=${urlOf("again")}`);
  assert.deepEqual(back, out);
  for (const [from, to, message] of [
    [
      data,
      urlOf("again"),
      /galatea records copy: postgres:\/\/galatea@127\.0\.0\.1:\d+\/again has records; use another database/,
    ],
    [urlOf("again"), data, /galatea records copy: '.*galatea\.db' has records; choose another data directory/],
  ] as const) {
    const { code, stderr } = await galatea("records", "copy", `--from=${from}`, `--to=${to}`);
    assert.equal(code, 1);
    assert.match(stderr, message);
  }
  await inServiceOverSqlite(data, "kept");
  await platform.startAgain();
});

/** Starts `galatea up` without `--records` over a data directory, and stops it when the endpoint is in service. */
async function inServiceOverSqlite(data: string, name: string): Promise<void> {
  const child = spawn(process.execPath, [main, "up", "--port=0", "--open", `--data=${data}`], {
    stdio: ["ignore", "pipe", "ignore"],
  });
  const ended = once(child, "close");
  try {
    let printed = "";
    child.stdout.on("data", (chunk: Buffer) => (printed += String(chunk)));
    const url = await until("it is up", () => /http:\/\/127\.0\.0\.1:\d+/.exec(printed)?.[0]);
    const sagemaker = new SageMakerClient({ endpoint: url, region: "us-east-1", credentials });
    await endpointIs({ sagemaker }, name, "InService");
    sagemaker.destroy();
  } finally {
    child.kill("SIGTERM");
    await ended;
  }
}
