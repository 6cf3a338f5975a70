/** Metrics, log lines and failure objects of asynchronous invocations. */
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { eventually } from "@galatea/base/core/eventually-fixture.ts";
import { AsyncFixture, bucket, paths } from "./async-fixture.ts";

/** Returns the lines of the data logs of all instances. */
const logged = ({ logs }: AsyncFixture) =>
  [...logs].flatMap(([stream, text]) => (/^v\/[^/]+\/data-log$/.test(stream) ? text.trimEnd().split("\n") : []));

test("each invocation is a line of its instance's data-log, in SageMaker's format", async () => {
  await using bench = await AsyncFixture.open();
  await bench.deploy("q");
  await bench.result(await bench.call("q", "fine", { inferenceId: "good" }));
  await eventually(() => logged(bench).length === 1);
  assert.match(
    logged(bench)[0] ?? "",
    /^\d{4}-\d\d-\d\dT[\d:.]{12}:\[sagemaker logs\] \[good\] Inference request succeeded\. ModelLatency: \d+ us, RequestDownloadLatency: 0 us, ResponseUploadLatency: \d+ us, TimeInBacklog: \d+ ms, TotalProcessingTime: \d+ ms$/,
  );
  await bench.result(await bench.call("q", "fail", { inferenceId: "bad" }));
  await eventually(() => logged(bench).length === 2);
  assert.match(
    logged(bench)[1] ?? "",
    /\[bad\] Received server error \(500\) from primary with message "the model is not well"\. See .* in account 000000000000/,
  );
  await bench.result(await bench.call("q", "die", { inferenceId: "ends" }));
  await eventually(() => logged(bench).length === 5);
  const ends = logged(bench).slice(2);
  assert.match(ends[0] ?? "", /\[ends\] .* The request is repeated \(2 of 3\)\.$/);
  assert.match(ends[1] ?? "", /\[ends\] .* The request is repeated \(3 of 3\)\.$/);
  assert.doesNotMatch(ends[2] ?? "", /made again/);
  // The log stream of a request that has not reached an instance contains no instance.
  const inputUrl = `s3://${bucket}/nothing`;
  await bench.result(await bench.call("q", "", { inputUrl }));
  await eventually(() => bench.logs.has("v/data-log"));
  assert.match(bench.logs.get("v/data-log") ?? "", /Unable to download the input s3:\/\/results\/nothing: NoSuchKey/);
});

test("each metric of a request is counted once", async () => {
  await using bench = await AsyncFixture.open();
  const topics = { SuccessTopic: "arn:aws:sns:us-east-1:000000000000:absent" };
  await bench.deploy("q", { OutputConfig: { ...paths, NotificationConfig: topics } });
  const inputUrl = await bench.put("in/one", "fine");
  await bench.result(await bench.call("q", "", { inputUrl }));
  await bench.result(await bench.call("q", "fail"));
  await bench.result(await bench.call("q", "", { inputUrl: "s3://elsewhere/x" }));
  const sum = (name: string) => bench.sums.get(`q v ${name}`);
  await eventually(() => sum("InvocationsProcessed") === 3);
  const counts = {
    InvocationFailures: 2,
    ExpiredRequests: 0,
    RequestDownloadFailures: 1,
    ResponseUploadFailures: undefined,
    NotificationFailures: 1,
    Invocation4XXErrors: 0,
    Invocation5XXErrors: 1,
    Invocations: undefined,
    OverheadLatency: undefined,
  };
  for (const [name, count] of Object.entries(counts)) assert.equal(sum(name), count, name);
  for (const name of ["ModelLatency", "RequestDownloadLatency", "ResponseUploadLatency"]) {
    assert.ok((sum(name) ?? 0) > 0, name);
  }
  assert.ok((sum("TotalProcessingTime") ?? -1) >= (sum("TimeInBacklog") ?? 0));
});

test("a queue has no metrics without requests, and backlog metrics while no instance processes it", async () => {
  await using bench = await AsyncFixture.open();
  await bench.deploy("q");
  await bench.resize("q", 0);
  const sum = (name: string) => bench.sums.get(`q ${name}`) ?? 0;
  assert.equal(sum("ApproximateBacklogSize"), 0);
  assert.equal(sum("HasBacklogWithoutCapacity"), 0);
  const perInstance = sum("ApproximateBacklogSizePerInstance");
  await bench.call("q", "fine");
  await bench.call("q", "fine");
  await eventually(() => sum("ApproximateAgeOfOldestRequest") > 0 && sum("HasBacklogWithoutCapacity") > 0);
  assert.equal(sum("ApproximateBacklogSize") % 2, 0);
  // The metric is not recorded while there is no instance.
  assert.equal(sum("ApproximateBacklogSizePerInstance"), perInstance);
});

test("two requests with one InferenceId are separate, each with its own output locations", async () => {
  await using bench = await AsyncFixture.open();
  await bench.deploy("q");
  const tickets = await Promise.all(["one", "two"].map((word) => bench.call("q", word, { inferenceId: "same" })));
  assert.notEqual(tickets[0]?.outputUrl, tickets[1]?.outputUrl);
  const said = await Promise.all(
    tickets.map(async (ticket) => JSON.parse((await bench.result(ticket)).text) as object),
  );
  assert.deepEqual(
    said.map((each) => (each as { word: string }).word),
    ["one", "two"],
  );
  assert.ok(tickets.every(({ inferenceId }) => inferenceId === "same"));
});

test("an input that is too long and a missing output bucket fail only their request", async () => {
  await using bench = await AsyncFixture.open({ limits: { bodyBytesMax: 1000 } });
  await bench.deploy("q");
  await bench.deploy("nowhere", { OutputConfig: { ...paths, S3OutputPath: "s3://no-such-bucket/out" } });
  const inputUrl = await bench.put("in/long", "x".repeat(1001));
  const long = await bench.result(await bench.call("q", "", { inputUrl }));
  assert.match(long.text, /^Unable to download the input s3:\/\/results\/in\/long: 413: /);
  const response = await bench.result(await bench.call("q", "long 2000"));
  assert.match(response.text, /1000 bytes/);
  const lost = await bench.result(await bench.call("nowhere", "fine"));
  assert.match(lost.text, /^Unable to upload the output to s3:\/\/no-such-bucket\/out\/.*: NoSuchBucket: /);
  assert.equal(bench.sums.get("nowhere v ResponseUploadFailures"), 1);
  assert.equal((await bench.result(await bench.call("q", "fine"))).ok, true);
});

test("an instance removed by a scale-in finishes its requests; none runs twice", async () => {
  await using bench = await AsyncFixture.open();
  await bench.deploy("q", { OutputConfig: paths, ClientConfig: { MaxConcurrentInvocationsPerInstance: 1 } }, 2);
  const tickets = await Promise.all([bench.call("q", "hold go"), bench.call("q", "hold go")]);
  const runs = async () =>
    (await readFile(join(bench.directory, "runs"), "utf8").catch(() => "")).split("hold").length - 1;
  await eventually(async () => (await runs()) === 2);
  await bench.resize("q", 1);
  await writeFile(join(bench.directory, "go"), "");
  const instances = new Set<string>();
  for (const ticket of tickets) assert.equal((await bench.result(ticket)).ok, true);
  await eventually(() => logged(bench).length === 2);
  for (const stream of bench.logs.keys()) if (stream.endsWith("/data-log")) instances.add(stream);
  assert.deepEqual([instances.size, await runs()], [2, 2]);
});
