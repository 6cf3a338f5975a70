import assert from "node:assert/strict";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { AwsError } from "@galatea/base";
import { eventually } from "@galatea/base/core/eventually-fixture.ts";
import type { TransformJobRecord } from "../src/index.ts";
import { owner } from "./hosting-fixture.ts";
import { input, TransformFixture } from "./transforms-fixture.ts";

const lines = { TransformInput: input({ SplitType: "Line" }) };
const single = { ...lines, BatchStrategy: "SingleRecord" } as const;
const assembled = { S3OutputPath: "s3://bkt/out", AssembleWith: "Line" };
const sourceOf = (uri: string) =>
  ({ S3DataSource: { S3Uri: uri, S3DataType: "S3Prefix", CompressionType: "None" } }) as const;
const reasonOf = ({ state }: TransformJobRecord) => (state.at === "Failed" ? state.reason : state.at);

test("an object without SplitType is one request, and its response is stored under the object's name", async () => {
  await using bench = await TransformFixture.open();
  await bench.put("in/a/x.csv", "one\ntwo\n");
  await bench.put("in/y.csv", "");
  await bench.put("in/folder/", "");
  const { state } = await bench.run("whole", "echo", {
    TransformOutput: { S3OutputPath: "s3://bkt/out", Accept: "text/csv" },
  });
  assert.equal(state.at, "Completed");
  assert.deepEqual(await bench.keys("out"), ["out/a/x.csv.out", "out/y.csv.out"]);
  assert.equal(await bench.get("out/a/x.csv.out"), "one\ntwo\n");
  const [first] = bench.asked("whole");
  assert.deepEqual([first?.type, first?.accept], ["text/csv", "text/csv"]);
});

test("lines are sent one by one or in batches, and their responses are assembled with or without line feeds", async () => {
  await using bench = await TransformFixture.open();
  await bench.put("in/x", "a\nb\r\n\nc");
  await bench.run("together", "upper", { ...lines, TransformOutput: assembled });
  assert.deepEqual(
    bench.asked("together").map(({ text }) => text),
    ["a\nb\r\nc"],
  );
  assert.equal(await bench.get("out/x.out"), "A\nB\r\nC\n");
  await bench.run("alone", "upper", { ...single, TransformOutput: assembled });
  assert.deepEqual(
    bench.asked("alone").map(({ text }) => text),
    ["a", "b", "c"],
  );
  assert.equal(await bench.get("out/x.out"), "A\nB\nC\n");
  await bench.run("bare", "upper", single);
  assert.equal(await bench.get("out/x.out"), "ABC");
});

test("payloads are filled to the limit, a longer record fails only its object, and the outputs of others remain", async () => {
  await using bench = await TransformFixture.open();
  const row = "r".repeat(400_000);
  await bench.put("in/good", `${row}\n${row}\n${row}\n`);
  await bench.put("in/long", "r".repeat(1_100_000));
  const job = await bench.run("bounded", "length", { ...lines, MaxPayloadInMB: 1, TransformOutput: assembled });
  assert.equal(
    reasonOf(job),
    "ClientError: s3://bkt/in/long: line 1 is longer than the 1048576 bytes of a payload (1 of 2 objects failed)",
  );
  assert.deepEqual(
    bench.asked("bounded").map(({ bytes }) => bytes),
    [800_002, 400_001],
  );
  assert.equal(await bench.get("out/good.out"), "400000\n400000\n400000\n");
  assert.deepEqual(await bench.keys("out"), ["out/good.out"]);
});

test("responses keep the order of their records in any order of arrival, and MaxConcurrentTransforms is obeyed", async () => {
  await using bench = await TransformFixture.open();
  const rows = Array.from({ length: 20 }, (_, at) => `row${at}`);
  await bench.put("in/x", rows.join("\n"));
  await bench.put("in/y", rows.toReversed().join("\n"));
  const job = await bench.run("many", "shuffled", {
    ...single,
    MaxConcurrentTransforms: 4,
    TransformOutput: assembled,
  });
  assert.equal(job.state.at, "Completed");
  assert.equal(await bench.get("out/x.out"), `${rows.join("\n").toUpperCase()}\n`);
  assert.equal(await bench.get("out/y.out"), `${rows.toReversed().join("\n").toUpperCase()}\n`);
  assert.equal(Math.max(...bench.asked("many").map(({ underWay }) => underWay)), 4);
});

test("settings that a job omits come from its container's execution parameters", async () => {
  await using bench = await TransformFixture.open();
  await bench.put("in/x", "a\nb\nc\nd");
  const parameters = JSON.stringify({ MaxConcurrentTransforms: 2, BatchStrategy: "SINGLE_RECORD", MaxPayloadInMB: 1 });
  await bench.run("told", "slow", lines, parameters);
  assert.deepEqual(
    bench
      .asked("told")
      .map(({ text }) => text)
      .toSorted(),
    ["a", "b", "c", "d"],
  );
  assert.equal(Math.max(...bench.asked("told").map(({ underWay }) => underWay)), 2);
  await bench.run("asked", "slow", { ...lines, BatchStrategy: "MultiRecord" }, parameters);
  assert.equal(bench.asked("asked").length, 1);
});

test("objects are distributed over the instances", async () => {
  await using bench = await TransformFixture.open();
  for (const key of ["a", "b", "c", "d"]) await bench.put(`in/${key}`, key);
  const resources = { InstanceType: "ml.m5.xlarge", InstanceCount: 2 };
  const { state } = await bench.run("shared", "slow", { TransformResources: resources });
  assert.equal(state.at, "Completed");
  const streams = [...bench.logs].filter(([stream, text]) => stream.startsWith("shared/i-") && text.includes("asked"));
  assert.equal(streams.length, 2);
  assert.deepEqual(await bench.keys("out"), ["out/a.out", "out/b.out", "out/c.out", "out/d.out"]);
});

test("a manifest names the objects", async () => {
  await using bench = await TransformFixture.open();
  for (const key of ["a", "b", "sub/c"]) await bench.put(`in/${key}`, key);
  await bench.put("list.json", JSON.stringify([{ prefix: "s3://bkt/in/" }, "sub/c", "a", "a"]));
  const source = { S3DataSource: { S3DataType: "ManifestFile", S3Uri: "s3://bkt/list.json" } };
  await bench.run("named", "echo", { TransformInput: { DataSource: source } });
  assert.deepEqual(await bench.keys("out"), ["out/a.out", "out/sub/c.out"]);
  await bench.put("list.json", "{}");
  const job = await bench.run("misnamed", "echo", { TransformInput: { DataSource: source } });
  assert.equal(reasonOf(job), 'ClientError: the manifest does not begin with {"prefix": "s3://..."}');
});

test("compressed objects are inflated, and an object that is not gzip fails", async () => {
  await using bench = await TransformFixture.open();
  await bench.put("in/x.gz", gzipSync("a\nb\n"));
  await bench.run("gz", "upper", { TransformInput: input({ SplitType: "Line", CompressionType: "Gzip" }) });
  assert.equal(await bench.get("out/x.gz.out"), "A\nB");
  await bench.run("gz-whole", "echo", { TransformInput: input({ CompressionType: "Gzip" }) });
  assert.equal(await bench.get("out/x.gz.out"), "a\nb\n");
  await bench.put("in/y.gz", "plain");
  const job = await bench.run("plain", "upper", {
    TransformInput: input({ SplitType: "Line", CompressionType: "Gzip" }),
  });
  assert.match(reasonOf(job), /^ClientError: s3:\/\/bkt\/in\/y.gz: CompressionType is Gzip, and the object is not: /);
});

test("with MaxPayloadInMB 0 an object of any length is streamed in bounded memory", async () => {
  await using bench = await TransformFixture.open();
  const complete = Buffer.alloc(40 * 2 ** 20, "0123456789abcdef");
  await bench.put("in/x", complete);
  const { state } = await bench.run("endless", "stream", { MaxPayloadInMB: 0 });
  assert.equal(state.at, "Completed");
  assert.equal((await bench.store.head("bkt", "out/x.out")).etag, (await bench.store.head("bkt", "in/x")).etag);
  const job = await bench.run("bounded", "stream", {});
  assert.match(reasonOf(job), /the object is longer than the 6291456 bytes of MaxPayloadInMB, and SplitType is None$/);
});

test("RecordIO records are sent framed in batches and unframed one by one", async () => {
  await using bench = await TransformFixture.open();
  const record = (text: string) =>
    Buffer.concat([Buffer.from([0x0a, 0x23, 0xd7, 0xce, text.length, 0, 0, 0]), Buffer.from(text.padEnd(4, "\0"))]);
  const complete = Buffer.concat([record("abc"), record("defg")]);
  await bench.put("in/x", complete);
  const split = { TransformInput: input({ SplitType: "RecordIO" }) };
  await bench.run("framed", "echo", split);
  assert.deepEqual(
    bench.asked("framed").map(({ bytes }) => bytes),
    [complete.toString().length],
  );
  await bench.run("alone", "echo", { ...split, BatchStrategy: "SingleRecord", TransformOutput: assembled });
  assert.equal(await bench.get("out/x.out"), "abc\ndefg\n");
  await bench.put("in/x", complete.subarray(0, 20));
  assert.match(reasonOf(await bench.run("cut", "echo", split)), /in\/x: record 2 ends before its end$/);
});

test("a job of an inference pipeline runs through its containers, and an error names the one that failed", async () => {
  await using bench = await TransformFixture.open();
  const containers = [
    { ContainerHostname: "first", Environment: { DOES: "upper" } },
    { ContainerHostname: "second", Environment: { DOES: "echo" } },
  ] as const;
  await bench.put("in/x", "a\nb\n");
  await bench.begin("serial", "", { ...lines, TransformOutput: assembled }, "", containers);
  assert.equal((await bench.ended("serial")).state.at, "Completed");
  assert.equal(await bench.get("out/x.out"), "A\nB\n");
  await bench.put("in/x", "bad");
  await bench.begin("failing", "", lines, "", containers);
  assert.match(reasonOf(await bench.ended("failing")), /Received client error \(400\) from first with message/);
});

test("InputFilter, OutputFilter and JoinSource apply to CSV row by row", async () => {
  await using bench = await TransformFixture.open();
  await bench.put("in/x", 'id1,"a,b",2\nid2,c,3\n');
  const processing = { InputFilter: "$[1:]", JoinSource: "Input", OutputFilter: "$[0,-1]" };
  const job = await bench.run("csv", "length", { ...lines, TransformOutput: assembled, DataProcessing: processing });
  assert.equal(job.state.at, "Completed");
  assert.deepEqual(
    bench.asked("csv").map(({ text }) => text),
    ['"a,b",2\nc,3\n'],
  );
  assert.equal(await bench.get("out/x.out"), "id1,7\nid2,3\n");
  const few = await bench.run("few", "few", { ...lines, DataProcessing: { JoinSource: "Input" } });
  assert.match(reasonOf(few), /the container returned 1 rows for 2: the input cannot be joined to its output$/);
});

test("InputFilter, OutputFilter and JoinSource apply to JSON and JSON lines, and numbers keep their text", async () => {
  await using bench = await TransformFixture.open();
  await bench.put("in/x", '{"id":12345678901234567890,"v":1.50}\n[1]\n');
  const split = {
    TransformInput: input({ SplitType: "Line", ContentType: "application/jsonlines" }),
    TransformOutput: assembled,
  };
  await bench.run("rows", "echo", { ...split, DataProcessing: { JoinSource: "Input" } });
  const joined = [
    '{"id":12345678901234567890,"v":1.50,"SageMakerOutput":{"id":12345678901234567890,"v":1.50}}',
    '{"SageMakerInput":[1],"SageMakerOutput":[1]}',
  ];
  assert.equal(await bench.get("out/x.out"), `${joined.join("\n")}\n`);
  await bench.put("in/x", '{"id":7,"features":[1,2,3]}');
  const complete = { TransformInput: input({ ContentType: "application/json" }) };
  const filters = { InputFilter: "$.features", JoinSource: "Input", OutputFilter: "$['id','SageMakerOutput']" };
  await bench.run("document", "echo", { ...complete, DataProcessing: filters });
  assert.equal(await bench.get("out/x.out"), '{"id":7,"SageMakerOutput":[1,2,3]}');
});

test("a request is retried after retryable errors, and the failure has the container's message", async () => {
  await using bench = await TransformFixture.open();
  await bench.put("in/x", "a");
  assert.equal((await bench.run("unsure", "unsure")).state.at, "Completed");
  assert.match(bench.logs.get("unsure/data-log") ?? "", /a request is repeated \(2 of 3\)/);
  assert.equal((await bench.run("dies", "dies")).state.at, "Completed");
  const never = { ModelClientConfig: { InvocationsMaxRetries: 0 } };
  assert.match(
    reasonOf(await bench.run("never", "unsure", never)),
    /^AlgorithmError: s3:\/\/bkt\/in\/x: Received server error \(503\) from primary with message "busy"/,
  );
  assert.match(
    reasonOf(
      await bench.run("hang", "hang", {
        ModelClientConfig: { InvocationsMaxRetries: 0, InvocationsTimeoutInSeconds: 1 },
      }),
    ),
    /no response within the 1 s of InvocationsTimeoutInSeconds$/,
  );
  await bench.put("in/x", "bad");
  assert.match(
    reasonOf(await bench.run("bad", "upper")),
    /^ClientError: s3:\/\/bkt\/in\/x: Received client error \(400\) from primary with message "no such row"/,
  );
  assert.equal(bench.asked("bad").length, 1);
});

test("a response that is too long fails its object at once with what to do, without retries", async () => {
  await using bench = await TransformFixture.open();
  await bench.put("in/x", "a\nb");
  const job = await bench.run("vast", "vast", { ...single, MaxConcurrentTransforms: 10 });
  assert.match(
    reasonOf(job),
    /^ClientError: s3:\/\/bkt\/in\/x: the container's response is longer than \d+ bytes; lower MaxPayloadInMB or MaxConcurrentTransforms/,
  );
  assert.doesNotMatch(bench.logs.get("vast/data-log") ?? "", /is repeated/);
});

test("the data of a running job's model counts as model data until the job ends, also after the model is deleted", async () => {
  await using bench = await TransformFixture.open();
  await bench.put("in/x", "a");
  const data = { bucket: "bkt", key: "models/m" };
  const containers = [{ Environment: { DOES: "hang" }, ModelDataSource: sourceOf("s3://bkt/models/") }] as const;
  await bench.put("models/m", "weights");
  await bench.begin("data", "hang", {}, "", containers);
  await bench.hosting.catalog.deleteModel("data", owner);
  assert(bench.hosting.isModelData(data));
  await bench.hosting.transforms.stop("data");
  await bench.ended("data");
  assert(!bench.hosting.isModelData(data));
});

test("a stopped job ends, keeps its finished outputs, and writes no more", async () => {
  await using bench = await TransformFixture.open();
  await bench.put("in/x", "a");
  await bench.begin("held", "hang");
  await bench.hosting.transforms.stop("held");
  const job = await bench.ended("held");
  assert.equal(job.state.at, "Stopped");
  assert.deepEqual(await bench.keys("out"), []);
  await assert.rejects(bench.hosting.transforms.stop("held"), /is in status Stopped/);
});

test("after a restart a job continues after its finished objects", async () => {
  await using bench = await TransformFixture.open();
  const keys = Array.from({ length: 8 }, (_, at) => `o${at}`);
  for (const key of keys) await bench.put(`in/${key}`, key);
  await bench.begin("resumed", "slow");
  await eventually(() => bench.doneCount() >= 3);
  await bench.startAgain();
  const job = await bench.ended("resumed");
  assert.equal(job.state.at, "Completed");
  assert.deepEqual(
    await bench.keys("out"),
    keys.map((key) => `out/${key}.out`),
  );
  const counts = keys.map((key) => bench.asked("resumed").filter(({ text }) => text === key).length);
  assert.deepEqual(counts.slice(0, 3), [1, 1, 1]);
  assert(
    counts.every((count) => count <= 2),
    String(counts),
  );
});

test("invalid jobs are rejected with SageMaker's codes", async () => {
  await using bench = await TransformFixture.open();
  await bench.put("in/x", "a");
  await bench.run("one", "echo");
  const { transforms } = bench.hosting;
  const { request } = await transforms.find("one");
  const refusal = async (more: object) => {
    const error = await transforms
      .create({ ...request, TransformJobName: "two", ...more }, owner, [])
      .catch((thrown: unknown) => thrown);
    assert(error instanceof AwsError, String(error));
    return `${error.code}: ${error.message}`;
  };
  assert.match(await refusal({ TransformJobName: "ONE" }), /^ResourceInUse: Transform job names must be unique/);
  assert.match(await refusal({ ModelName: "none" }), /^ValidationException: Could not find model/);
  assert.match(await refusal({ TransformOutput: { S3OutputPath: "s3://bkt/in/out" } }), /is within the input/);
  assert.match(await refusal({ MaxConcurrentTransforms: 20, MaxPayloadInMB: 6 }), /cannot exceed 100 MB/);
  assert.match(
    await refusal({ DataProcessing: { InputFilter: "$..a" } }),
    /InputFilter '\$\.\.a' is not a supported JSONPath/,
  );
  assert.match(
    await refusal({ TransformResources: { InstanceType: "ml.m5.xlarge", InstanceCount: 65 } }),
    /^ResourceLimitExceeded: .*'ml.m5.xlarge for transform job usage' is 64/,
  );
  await assert.rejects(transforms.find("none"), /Could not find requested job with name: none/);
  assert.match(
    reasonOf(await bench.run("empty", "echo", { TransformInput: input({}, "s3://bkt/nothing/") })),
    /No S3 objects found/,
  );
  assert.match(
    reasonOf(await bench.run("nowhere", "echo", { TransformOutput: { S3OutputPath: "s3://nowhere/" } })),
    /The bucket nowhere cannot be listed/,
  );
});
