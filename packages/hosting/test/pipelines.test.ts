/**
 * Serial and direct invocation of several containers on one instance, with real processes that implement only the
 * contract.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { AwsError, ByteBudget } from "@galatea/base";
import { owner } from "./hosting-fixture.ts";
import { PipelineFixture } from "./pipelines-fixture.ts";
import { until } from "./traffic-fixture.ts";

const three = ["clean", "featurize", "score"].map((name) => ({ ContainerHostname: name, Environment: { NAME: name } }));
const unnamed = ["a", "b"].map((name) => ({ Environment: { NAME: name } }));

interface Reported {
  readonly name: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly length?: number;
}
const told = (text: string) => JSON.parse(text) as Reported[];

/** Returns the error with which an invocation fails. */
async function refusal(pending: Promise<unknown>): Promise<AwsError> {
  return await pending.then(
    () => assert.fail("the call succeeded"),
    (error: AwsError) => error,
  );
}

test("each container's response is the next one's request, with its content type", async () => {
  await using bench = await PipelineFixture.open();
  await bench.deploy("serial", three);
  const reply = await bench.call("serial", {
    headers: {
      "content-type": "application/json; charset=ascii",
      accept: "text/csv",
      "x-amzn-sagemaker-inference-id": "7",
    },
    does: { nobody: {} },
  });
  const [clean, featurize, score] = told(reply.text);
  assert.ok(clean !== undefined && featurize !== undefined && score !== undefined);
  assert.deepEqual([clean.name, featurize.name, score.name], ["clean", "featurize", "score"]);
  const types = [clean, featurize, score].map(({ headers }) => headers["content-type"]);
  assert.deepEqual(types, [
    "application/json; charset=ascii",
    "text/x-clean; charset=utf-8",
    "text/x-featurize; charset=utf-8",
  ]);
  assert.equal(reply.contentType, "text/x-score; charset=utf-8");
  assert.equal(reply.customAttributes, "from score");
  const accepts = [clean, featurize, score].map(({ headers }) => headers["accept"]);
  assert.deepEqual(accepts, [undefined, undefined, "text/csv"]);
  for (const { headers, path } of [clean, featurize, score]) {
    assert.equal(path, "/invocations");
    assert.equal(headers["x-amzn-sagemaker-custom-attributes"], '{"nobody":{}}');
    assert.equal(headers["x-amzn-sagemaker-inference-id"], "7");
  }
});

test("a response without a content type is passed on without one, and an empty response as an empty body", async () => {
  await using bench = await PipelineFixture.open();
  await bench.deploy("serial", three);
  const { text } = await bench.call("serial", { does: { clean: { type: null } } });
  assert.equal(told(text)[1]?.headers["content-type"], undefined);
  const empty = await bench.call("serial", { does: { clean: { status: 204 }, score: { length: true } } });
  assert.equal(told(empty.text)[0]?.name, "score");
});

test("the error names the failed container, and later containers get no request", async () => {
  await using bench = await PipelineFixture.open();
  await bench.deploy("serial", three);
  const error = await refusal(bench.call("serial", { does: { featurize: { status: 418, text: "no tea" } } }));
  assert.equal(error.code, "ModelError");
  assert.equal(error.statusFallback, 424);
  assert.equal(
    error.message,
    'Received client error (418) from featurize with message "no tea". See http://here/aws/sagemaker/Endpoints/serial ' +
      "in account 000000000000 for more information.",
  );
  const {
    OriginalStatusCode: status,
    OriginalMessage: message,
    LogStreamArn: stream,
  } = error.members as Record<string, string>;
  assert.deepEqual([status, message], [418, "no tea"]);
  assert.match(String(stream), /:log-stream:all\/i-[0-9a-f]{16}\/featurize$/);
  const count = (container: string, metric: string) =>
    bench.samples.filter((each) => each.container === container && each.metric === metric).map(({ value }) => value);
  assert.deepEqual(count("clean", "Invocations"), [1]);
  assert.deepEqual(count("clean", "Invocation4XXErrors"), [0]);
  assert.deepEqual(count("featurize", "Invocation4XXErrors"), [1]);
  assert.deepEqual(count("score", "Invocations"), []);
  // The variant's metrics count the error, too, even if the previous container is still sending its response.
  const ofVariant = (metric: string) =>
    bench.samples.findLast((each) => each.container === undefined && each.metric === metric)?.value;
  assert.equal(ofVariant("Invocation4XXErrors"), 1);
  const early = { clean: { sends: 3_000_000, trickle: 5 }, featurize: { deaf: true, status: 500, text: "full" } };
  const full = await refusal(bench.call("serial", { does: early }));
  assert.match(full.message, /^Received server error \(500\) from featurize with message "full"/);
  assert.deepEqual([ofVariant("Invocation4XXErrors"), ofVariant("Invocation5XXErrors")], [0, 1]);
  const failing = await refusal(bench.call("serial", { does: { clean: { status: 500, text: "oops" } } }));
  assert.match(failing.message, /^Received server error \(500\) from clean with message "oops"/);
});

test("containers without names are named by their positions", async () => {
  await using bench = await PipelineFixture.open();
  await bench.deploy("serial", unnamed);
  const error = await refusal(bench.call("serial", { does: { b: { status: 400, text: "bad" } } }));
  assert.match(error.message, /^Received client error \(400\) from container-2 with message "bad"/);
  const streams = new Set([...bench.logs.keys()].map((stream) => stream.split("/")[2]));
  assert.deepEqual(streams, new Set(["container-1", "container-2"]));
});

test("each container has its latency metric, and their sum is the model latency", async () => {
  await using bench = await PipelineFixture.open();
  await bench.deploy("serial", three);
  await bench.call("serial");
  const value = (metric: string, container?: string) =>
    bench.samples.find((each) => each.metric === metric && each.container === container)?.value ?? Number.NaN;
  const latencies = three.map(({ ContainerHostname: name }) => value("ContainerLatency", name));
  assert.ok(
    latencies.every((us) => us > 0),
    String(latencies),
  );
  const sum = latencies.reduce((total, us) => total + us, 0);
  assert.ok(Math.abs(value("ModelLatency") - sum) < 1, `${value("ModelLatency")} ${sum}`);
  assert.ok(value("OverheadLatency") > 0);
  // The second container runs while the first one still sends its response. ModelLatency counts this time only once.
  bench.samples.length = 0;
  await bench.call("serial", { does: { clean: { sends: 2_000_000, trickle: 30 }, featurize: { length: true } } });
  const [first, second] = three.map(({ ContainerHostname: name }) => value("ContainerLatency", name));
  assert.ok(first !== undefined && second !== undefined && first > 200_000 && second > 200_000, `${first} ${second}`);
  assert.ok(value("ModelLatency") < first + second / 2, `${value("ModelLatency")} of ${first} and ${second}`);
});

test("the response time limit covers all containers, and the error names the one that was late", async () => {
  await using bench = await PipelineFixture.open({ responseMsMax: 3000 });
  await bench.deploy("serial", three);
  await bench.call("serial");
  const error = await refusal(bench.call("serial", { does: { featurize: { hangs: true } } }));
  assert.match(
    error.message,
    /^Received server error \(0\) from featurize with message "Your invocation timed out while waiting for a response from container featurize\. /,
  );
  // If a stream is slow, the error names the container that sends it, not the one that reads it.
  const does = { clean: { sends: 2 ** 21, trickle: 200 }, featurize: { length: true }, score: {} };
  assert.match((await refusal(bench.call("serial", { does }))).message, /from container clean\./);
});

test("each container gets the remaining time of the request's limit", async () => {
  await using bench = await PipelineFixture.open({ responseMsMax: 10_000 });
  await bench.deploy("serial", three);
  const { text } = await bench.call("serial", { does: { clean: { after: 300 } } });
  const [clean, featurize] = told(text).map(({ headers }) => Number(headers["x-galatea-call-limit-ms"]));
  assert.ok(clean !== undefined && clean > 9000 && clean <= 10_000, String(clean));
  assert.ok(featurize !== undefined && featurize > 8000 && featurize <= clean - 300, `${clean}, then ${featurize}`);
});

test("a long response streams to the next container, and memory of short ones is released at each step", async () => {
  await using bench = await PipelineFixture.open();
  await bench.deploy("serial", three);
  for (const chunked of [false, true]) {
    const does = { clean: { sends: 5_000_000, chunked }, featurize: { length: true } };
    const reply = await bench.call("serial", { does });
    const [featurize] = told(reply.text);
    assert.deepEqual([featurize?.name, featurize?.length], ["featurize", 5_000_000]);
  }
  const short = await bench.call("serial", { does: { clean: { sends: 1_000_000 }, featurize: { length: true } } });
  assert.equal(short.heldBytes, short.text.length);
  assert.equal(bench.memory.usedBytes, 0);
});

test("a response too long for the next container is rejected as an error of its own container", async () => {
  await using bench = await PipelineFixture.open({ responseBytesMax: 1_500_000 });
  await bench.deploy("serial", three);
  for (const does of [
    { clean: { sends: 1_500_001 }, featurize: { length: true } },
    { clean: { sends: 1_500_001, chunked: true }, featurize: { length: true } },
    { clean: { endless: true }, featurize: { length: true } },
  ]) {
    const error = await refusal(bench.call("serial", { does }));
    assert.equal(error.code, "413", error.message);
    assert.equal(
      error.message,
      "HTTP content length exceeded 1500000 bytes. They are the response of container clean.",
    );
  }
  const last = await refusal(bench.call("serial", { does: { score: { sends: 1_500_001 } } }));
  assert.equal(last.message, "HTTP content length exceeded 1500000 bytes.");
  await bench.call("serial");
});

test("a container that reads nothing applies back-pressure to the one before, and is named in the timeout", async () => {
  await using bench = await PipelineFixture.open({ responseMsMax: 3000, responseBytesMax: 2 ** 30 });
  await bench.deploy("serial", three);
  const does = { clean: { endless: true }, featurize: { deaf: true, hangs: true } };
  const error = await refusal(bench.call("serial", { does }));
  assert.match(error.message, /from container featurize\./);
  const log = () => [...bench.logs].find(([stream]) => stream.endsWith("/clean"))?.[1] ?? "";
  await until("the endless response is aborted", () => log().includes("closed cut"));
  const sent = Number(/closed cut after (\d+)/.exec(log())?.[1]);
  assert.ok(sent < 4 * 2 ** 20, `${sent} bytes were sent to a container that read none`);
  await bench.call("serial");
});

test("a client that disconnects cancels the request in whichever container it is", async () => {
  await using bench = await PipelineFixture.open();
  await bench.deploy("serial", three);
  for (const { ContainerHostname: name } of three) {
    const log = () => [...bench.logs].find(([stream]) => stream.endsWith(`/${name}`))?.[1] ?? "";
    const client = new AbortController();
    const call = bench.call("serial", { does: { [name]: { hangs: true } }, signal: client.signal });
    await Promise.all([
      assert.rejects(call, /the client disconnected/),
      until(`${name} hangs`, () => log().includes("hangs")).then(() =>
        client.abort(new Error("the client disconnected")),
      ),
    ]);
    await until(`${name} is told`, () => log().includes("closed cut"));
  }
});

test("a container that dies during a request is named in the error, and is restarted", async () => {
  await using bench = await PipelineFixture.open();
  await bench.deploy("serial", three);
  const dead = await refusal(bench.call("serial", { does: { featurize: { dies: "before" } } }));
  assert.match(
    dead.message,
    /^Received server error \(503\) from featurize with message "The container did not respond: /,
  );
  assert.equal(told((await bench.call("serial")).text).length, 3);
  // The first container terminates while it sends its response. The error does not name the second container, which
  // reads it.
  const does = { clean: { sends: 4_000_000, dies: "amidst" }, featurize: { length: true } };
  const amidst = await refusal(bench.call("serial", { does }));
  assert.match(
    amidst.message,
    /^Received server error \(503\) from clean with message "The container did not respond: /,
  );
  assert.equal(told((await bench.call("serial")).text).length, 3);
});

test("an endpoint comes into service once every container is healthy; a failure names the container that is not", async () => {
  // The time limit must also suffice for the first container, which starts.
  await using bench = await PipelineFixture.open({}, { startMsMax: 10_000 });
  const [first, second] = three;
  assert.ok(first !== undefined && second !== undefined);
  const sick = { ...second, Environment: { ...second.Environment, PING: "500" } };
  await bench.deploy("sick", [first, sick]);
  const { record } = await bench.hosting.endpoints.describe("sick", owner);
  assert.ok(record.state.at === "Failed");
  assert.match(
    record.state.reason,
    /^The featurize for production variant all did not pass the ping health check\. Please check CloudWatch logs for this endpoint\. /,
  );
  const absent = { ...second, ModelDataUrl: "s3://none/model.tar.gz" };
  await bench.deploy("absent", [first, absent]);
  const described = await bench.hosting.endpoints.describe("absent", owner);
  assert.ok(described.record.state.at === "Failed");
  assert.match(described.record.state.reason, /^Failed to download model data for container "featurize" from URL/);
});

test("an endpoint whose model cannot be read because the object store is away says so, and the next attempt succeeds", async () => {
  await using bench = await PipelineFixture.open();
  const { store } = bench;
  const [container] = three;
  const ModelDataUrl = `${await bench.put("model.tar.gz")}model.tar.gz`;
  const containers = [{ ...container, ModelDataUrl }];
  const get = store.get.bind(store);
  const text = "The object store does not respond";
  store.get = () => Promise.reject(new AwsError("ServiceUnavailable", text, { statusFallback: 503 }));
  await bench.deploy("during", containers);
  const { record } = await bench.hosting.endpoints.describe("during", owner);
  assert.ok(record.state.at === "Failed");
  assert.match(record.state.reason, /^Failed to download model data .*\(The object store does not respond\)$/);
  store.get = get;
  await bench.deploy("after", containers);
  const { record: after } = await bench.hosting.endpoints.describe("after", owner);
  assert.equal(after.state.at, "InService");
});

test("in Direct mode only the named container is invoked, whatever state the others are in", async () => {
  await using bench = await PipelineFixture.open();
  await bench.deploy("direct", three, "Direct");
  for (const { ContainerHostname: name } of three) {
    const { text } = await bench.call("direct", { targetContainer: name, headers: { accept: "text/csv" } });
    const [only, ...more] = told(text);
    assert.deepEqual([only?.name, only?.headers["accept"], more], [name, "text/csv", []]);
  }
  const failed = await refusal(
    bench.call("direct", { targetContainer: "score", does: { score: { status: 400, text: "no" } } }),
  );
  assert.match(failed.message, /from score with message "no"/);
  // The other containers respond while one is restarted.
  const dead = await refusal(
    bench.call("direct", { targetContainer: "featurize", does: { featurize: { dies: "before" } } }),
  );
  assert.match(dead.message, /^Received server error \(503\) from featurize/);
  assert.equal(told((await bench.call("direct", { targetContainer: "clean" })).text)[0]?.name, "clean");
  const metrics = bench.samples.filter(({ metric }) => metric === "Invocations").map(({ container }) => container);
  assert.deepEqual(
    metrics.filter((container) => container !== undefined),
    ["clean", "featurize", "score", "score", "featurize", "clean"],
  );
});

test("TargetContainerHostname is required in Direct mode and rejected elsewhere", async () => {
  await using bench = await PipelineFixture.open();
  await bench.deploy("direct", three, "Direct");
  await bench.deploy("serial", three);
  for (const [endpoint, targetContainer, sentence] of [
    [
      "direct",
      null,
      "Endpoint direct is a multi-container endpoint with direct invocation, and requires a target container hostname header.",
    ],
    ["direct", "nobody", "Container nobody not found for Request of endpoint direct."],
    [
      "serial",
      "score",
      "Endpoint serial is not a multi-container endpoint with direct invocation and does not support target container hostname header.",
    ],
  ] as const) {
    const error = await refusal(bench.call(endpoint, { targetContainer }));
    assert.deepEqual([error.code, error.message], ["ValidationError", sentence]);
  }
  const model = await refusal(bench.call("serial", { targetModel: "a.tar.gz" }));
  assert.equal(
    model.message,
    "Endpoint serial is not a multi-model endpoint and does not support target model header.",
  );
});

test("in a pipeline TargetModel goes to the multi-model container, at any position", async () => {
  await using bench = await PipelineFixture.open();
  const ModelDataUrl = await bench.put("team/one.tar.gz");
  const many = (name: string) => ({
    ContainerHostname: name,
    Environment: { NAME: name },
    Mode: "MultiModel" as const,
    ModelDataUrl,
  });
  for (const offset of [0, 1, 2]) {
    const name = `place-${offset}`;
    await bench.deploy(
      name,
      three.map((each, index) => (index === offset ? many(each.ContainerHostname) : each)),
    );
    const headers = { "x-amzn-sagemaker-target-model": "team/one.tar.gz" };
    const { text } = await bench.call(name, { targetModel: "team/one.tar.gz", headers });
    for (const [index, { path, headers: sent }] of told(text).entries()) {
      const isMany = index === offset;
      assert.match(path, isMany ? /^\/models\/[0-9a-f]{32}\/invoke$/ : /^\/invocations$/);
      assert.equal(sent["x-amzn-sagemaker-target-model"], isMany ? "team/one.tar.gz" : undefined);
    }
    const without = await refusal(bench.call(name));
    assert.equal(without.message, `Endpoint ${name} is a multi-model endpoint, and requires a target model header.`);
    const absent = await refusal(bench.call(name, { targetModel: "none.tar.gz", does: { clean: { hangs: true } } }));
    assert.match(absent.message, /^Failed to download model data\(bucket: models, key: none\.tar\.gz\)/);
  }
});

test("in Direct mode each multi-model container has its own models", async () => {
  await using bench = await PipelineFixture.open();
  const ModelDataUrl = await bench.put("a.tar.gz");
  const many = { Mode: "MultiModel", ModelDataUrl } as const;
  await bench.deploy("direct", [{ ...three[0], ...many }, { ...three[1], ...many }, three[2] ?? {}], "Direct");
  for (const name of ["clean", "featurize"]) {
    const { text } = await bench.call("direct", { targetContainer: name, targetModel: "a.tar.gz" });
    assert.deepEqual([told(text)[0]?.name, told(text).length], [name, 1]);
    assert.match(
      (await refusal(bench.call("direct", { targetContainer: name }))).message,
      /requires a target model header/,
    );
  }
  const single = await refusal(bench.call("direct", { targetContainer: "score", targetModel: "a.tar.gz" }));
  assert.match(single.message, /does not support target model header/);
});

test("a content type that is no valid header is an error of the container that returned it", async () => {
  await using bench = await PipelineFixture.open();
  await bench.deploy("serial", three);
  assert.equal(told((await bench.call("serial", { does: { clean: { type: "text/caf\u00e9" } } })).text).length, 3);
  const long = await refusal(bench.call("serial", { does: { clean: { type: `text/${"x".repeat(1020)}` } } }));
  assert.match(long.message, /^Received server error \(502\) from clean with message "The container's content type /);
});

test("a response that finds no memory is rejected and released at any step, and affects no other request", async () => {
  await using bench = await PipelineFixture.open();
  await bench.deploy("serial", three);
  for (const does of [{ clean: { sends: 2000 } }, { clean: { sends: 200_000 } }, { score: { sends: 2000 } }]) {
    const error = await refusal(bench.call("serial", { does, budget: new ByteBudget(1000) }));
    assert.equal(error.statusFallback, 413, error.message);
    assert.match(error.message, /exceed the memory for all requests in flight/);
    assert.equal(told((await bench.call("serial")).text).length, 3);
  }
});
