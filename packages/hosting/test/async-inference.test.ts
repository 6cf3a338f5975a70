/** Asynchronous requests over real processes: their order, results, failures and limits. */
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { AwsError } from "@galatea/base";
import { eventually } from "@galatea/base/core/eventually-fixture.ts";
import { AsyncFixture, bucket, paths } from "./async-fixture.ts";
import { owner } from "./hosting-fixture.ts";

const topics = {
  SuccessTopic: "arn:aws:sns:us-east-1:000000000000:good",
  ErrorTopic: "arn:aws:sns:us-east-1:000000000000:bad",
};

test("responses to an input object and to an inline request are stored in S3 with their content type, and the topic is notified", async () => {
  await using bench = await AsyncFixture.open();
  await bench.deploy("q", { OutputConfig: { ...paths, NotificationConfig: topics } });
  const inputUrl = await bench.put("in/one", "hello from S3");
  const first = await bench.call("q", "", { inputUrl, inferenceId: "mine" });
  assert.equal(first.inferenceId, "mine");
  assert.match(first.outputUrl ?? "", /^s3:\/\/results\/out\/[0-9a-f-]{36}\.out$/);
  assert.match(first.failureUrl ?? "", /^s3:\/\/results\/bad\/[0-9a-f-]{36}-error\.out$/);
  const { ok, text, contentType } = await bench.result(first);
  const { word, headers } = JSON.parse(text) as { word: string; headers: Record<string, string> };
  assert.deepEqual([ok, contentType, word], [true, "text/x-said", "hello"]);
  assert.deepEqual(
    [headers["content-type"], headers["accept"], headers["x-amzn-sagemaker-inference-id"]],
    ["text/x-asked", "text/x-said", "mine"],
  );
  const second = await bench.call("q", "inline", { extension: "deep/er", fileName: "x.json" });
  assert.equal(second.outputUrl, "s3://results/out/deep/er/x.json");
  assert.equal((await bench.result(second)).ok, true);
  await eventually(() => bench.messages.length === 2);
  const [{ topic, message }] = bench.messages as [(typeof bench.messages)[number]];
  assert.equal(topic, topics.SuccessTopic);
  const { eventTime, receivedTime, ...rest } = message;
  assert.match(
    `${String(eventTime)} ${String(receivedTime)}`,
    /^\d{4}-\d\d-\d\dT[\d:.]{12}Z \d{4}-\d\d-\d\dT[\d:.]{12}Z$/,
  );
  assert.deepEqual(rest, {
    awsRegion: "us-east-1",
    invocationStatus: "Completed",
    requestParameters: {
      accept: "text/x-said",
      contentType: "text/x-asked",
      endpointName: "q",
      inputLocation: `s3://${bucket}/in/one`,
    },
    responseParameters: { contentType: "text/x-said", outputLocation: first.outputUrl },
    inferenceId: "mine",
    eventVersion: "1.0",
    eventSource: "aws:sagemaker",
    eventName: "InferenceResult",
  });
  await eventually(() => bench.sums.get("q v InvocationsProcessed") === 2);
  assert.equal(bench.sums.get("q v InvocationFailures"), 0);
  assert.equal(bench.sums.get("q v Invocations"), undefined);
});

test("an input's content type is the call's, or else its object's; S3's default type counts as none", async () => {
  await using bench = await AsyncFixture.open();
  await bench.deploy("q");
  const received = async (inputUrl: string, headers: Record<string, string>) => {
    const { ok, text } = await bench.result(await bench.call("q", "", { inputUrl, headers }));
    assert.equal(ok, true, text);
    return (JSON.parse(text) as { headers: Record<string, string> }).headers["content-type"];
  };
  const csv = await bench.put("in/csv", "some 1,2", "text/csv");
  assert.equal(await received(csv, {}), "text/csv");
  assert.equal(await received(csv, { "content-type": "" }), "text/csv");
  assert.equal(await received(csv, { "content-type": "application/json" }), "application/json");
  assert.equal(await received(await bench.put("in/untyped", "some 1,2"), {}), undefined);
  const long = await bench.put("in/long", `some ${"1,".repeat(4 * 2 ** 20)}`, "text/csv; header=absent");
  assert.equal(await received(long, {}), "text/csv; header=absent");
});

test("a failed request has a failure object with the model's response, and its topic is notified with the reason", async () => {
  await using bench = await AsyncFixture.open();
  const included = { IncludeInferenceResponseIn: ["ERROR_NOTIFICATION_TOPIC", "SUCCESS_NOTIFICATION_TOPIC"] };
  await bench.deploy("q", { OutputConfig: { ...paths, NotificationConfig: { ...topics, ...included } } });
  const failed = await bench.result(await bench.call("q", "fail"));
  assert.deepEqual([failed.ok, failed.text], [false, "the model is not well"]);
  await eventually(() => bench.messages.length === 1);
  const [{ topic, message }] = bench.messages as [(typeof bench.messages)[number]];
  assert.equal(topic, topics.ErrorTopic);
  assert.equal(message["invocationStatus"], "Failed");
  assert.equal(
    message["failureReason"],
    "ClientError: Received server error (500) from model. See the SageMaker Endpoint logs in your account for more information.",
  );
  const { content, encoding } = message["responseBody"] as { content: string; encoding: string };
  assert.deepEqual([Buffer.from(content, "base64").toString(), encoding], ["the model is not well", "BASE64"]);
  const absent = await bench.result(await bench.call("q", "", { inputUrl: `s3://${bucket}/nothing` }));
  assert.match(absent.text, /^Unable to download the input s3:\/\/results\/nothing: NoSuchKey/);
  const errors5xx = () => bench.sums.get("q v Invocation5XXErrors");
  assert.equal(errors5xx(), 1);
  const late = await bench.result(await bench.call("q", "hang", { timeLimitSeconds: 0.1 }));
  assert.match(late.text, /^Your invocation timed out while waiting for a response from container primary/);
  await eventually(() => errors5xx() === 2);
  assert.equal((await bench.result(await bench.call("q", "fine"))).ok, true);
  await eventually(() => bench.messages.length === 4);
  const reported = bench.messages[3]?.message["responseBody"] as { content: string };
  assert.equal((JSON.parse(Buffer.from(reported.content, "base64").toString()) as { word: string }).word, "fine");
});

test("a request whose container ends runs again, and fails when the third container ends", async () => {
  await using bench = await AsyncFixture.open();
  await bench.deploy("q");
  const failed = await bench.result(await bench.call("q", "die"));
  assert.match(failed.text, /The container did not respond/);
  const runs = await readFile(join(bench.directory, "runs"), "utf8");
  assert.equal(runs.split("die").length - 1, 3);
  assert.equal((await bench.result(await bench.call("q", "fine"))).ok, true);
});

test("an instance runs as many requests as its endpoint allows, and long responses are streamed", async () => {
  await using bench = await AsyncFixture.open();
  await bench.deploy("q", { OutputConfig: paths, ClientConfig: { MaxConcurrentInvocationsPerInstance: 3 } });
  const tickets = await Promise.all(Array.from({ length: 12 }, () => bench.call("q", "hold go")));
  const runs = async () => (await readFile(join(bench.directory, "runs"), "utf8")).trim().split("\n").length;
  await eventually(async () => (await runs().catch(() => 0)) === 3);
  assert.ok((bench.sums.get("q ApproximateBacklogSize") ?? 0) >= 0);
  await writeFile(join(bench.directory, "go"), "");
  const most = await Promise.all(
    tickets.map(async (ticket) => (JSON.parse((await bench.result(ticket)).text) as { most: number }).most),
  );
  assert.equal(Math.max(...most), 3);
  const long = await bench.result(await bench.call("q", `long ${5 * 2 ** 20}`));
  assert.equal(long.text.length, 5 * 2 ** 20);
});

test("an endpoint without instances keeps its queue and reports its backlog, which is processed once it has one", async () => {
  await using bench = await AsyncFixture.open();
  await bench.deploy("q");
  await bench.resize("q", 0);
  const { record } = await bench.hosting.endpoints.describe("q", owner);
  assert.equal(record.state.at, "InService");
  const tickets = await Promise.all(Array.from({ length: 5 }, () => bench.call("q", "fine")));
  await eventually(() => (bench.sums.get("q HasBacklogWithoutCapacity") ?? 0) > 0);
  await bench.resize("q", 1);
  for (const ticket of tickets) assert.equal((await bench.result(ticket)).ok, true);
});

test("queued requests expire, those of a deleted endpoint are notified as failed, and a full queue rejects", async () => {
  await using bench = await AsyncFixture.open({ limits: { requestsMax: 3 } });
  await bench.deploy("q");
  await bench.resize("q", 0);
  const expired = await bench.result(await bench.call("q", "fine", { ttlSeconds: 0.02 }));
  assert.match(expired.text, /^The request expired/);
  // The request is counted and leaves the queue only after its failure has been stored.
  await eventually(() => bench.sums.get("q v ExpiredRequests") === 1);
  const left = await Promise.all(Array.from({ length: 3 }, () => bench.call("q", "fine")));
  await assert.rejects(bench.call("q", "fine"), { code: "ThrottlingException" });
  await bench.hosting.endpoints.delete("q", owner);
  await bench.settled("q");
  for (const ticket of left) {
    assert.equal((await bench.result(ticket)).text, "The endpoint was deleted before the request was processed.");
  }
  await assert.rejects(bench.call("q", "fine"), /Endpoint q of account 000000000000 not found/);
});

test("an asynchronous endpoint rejects real-time requests and names InvokeEndpointAsync", async () => {
  await using bench = await AsyncFixture.open();
  await bench.deploy("q");
  await assert.rejects(
    bench.hosting.invoke("q", owner.accountId, {} as never),
    /Endpoint q of account 000000000000 is an asynchronous endpoint: use InvokeEndpointAsync/,
  );
});

test("queues are served in rotation: a long queue does not delay another", async () => {
  await using bench = await AsyncFixture.open({ limits: { runningMax: 1 } });
  await Promise.all([bench.deploy("long"), bench.deploy("short")]);
  const first = await bench.call("long", "hold go");
  const runs = async () =>
    (await readFile(join(bench.directory, "runs"), "utf8").catch(() => ""))
      .trim()
      .split("\n")
      .map((line) => line[0]);
  await eventually(async () => (await runs())[0] === "h");
  const tickets = [first];
  for (let index = 0; index < 5; index += 1) tickets.push(await bench.call("long", "long 1"));
  for (let index = 0; index < 2; index += 1) tickets.push(await bench.call("short", "short 1"));
  await writeFile(join(bench.directory, "go"), "");
  for (const ticket of tickets) assert.equal((await bench.result(ticket)).ok, true);
  // The order depends on which queue was created first.
  const order = (await runs()).join("");
  assert.ok(["hslsllll", "hlslslll"].includes(order), order);
});

test("a request whose response finds the disk full runs again later", async () => {
  await using bench = await AsyncFixture.open();
  await bench.deploy("q");
  const refusalsLeft = refusePuts(bench, 2);
  const ticket = await bench.call("q", "fine");
  assert.equal((await bench.result(ticket)).ok, true);
  const runs = (await readFile(join(bench.directory, "runs"), "utf8")).trim().split("\n").length;
  assert.deepEqual([refusalsLeft(), runs], [0, 3]);
});

test("a disk that is full when a failure is stored delays it, and neither loses it nor miscounts it", async () => {
  const absent = { ErrorTopic: "arn:aws:sns:us-east-1:000000000000:absent" };
  await using bench = await AsyncFixture.open();
  await bench.deploy("q", { OutputConfig: { ...paths, NotificationConfig: absent } });
  const refusalsLeft = refusePuts(bench, 2);
  const result = await bench.result(await bench.call("q", "fail"));
  assert.equal(result.ok, false);
  assert.match(result.text, /the model is not well/);
  const sum = (name: string) => bench.sums.get(`q v ${name}`);
  await eventually(() => sum("InvocationsProcessed") === 1);
  assert.deepEqual([refusalsLeft(), sum("ResponseUploadFailures"), sum("NotificationFailures")], [0, undefined, 1]);
});

/**
 * Makes the next writes of objects fail as on a full disk. Returns a function that returns the remaining number of
 * failures.
 */
function refusePuts(bench: AsyncFixture, count: number): () => number {
  const put = bench.store.put.bind(bench.store);
  let left = count;
  bench.store.put = (...args) => {
    if (left === 0) return put(...args);
    left -= 1;
    return Promise.reject(fullDisk());
  };
  return () => left;
}

/** Returns the error of the object store on a full disk. */
function fullDisk(): AwsError {
  const cause = Object.assign(new Error("no space left"), { code: "ENOSPC", syscall: "write" });
  const text = "There is no space left where the objects are kept";
  return new AwsError("InsufficientStorage", text, { cause, statusFallback: 507 });
}
