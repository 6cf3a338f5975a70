/** Data capture of endpoints, with real processes and a real object store. */
import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import type { DataCaptureConfig } from "../src/index.ts";
import { owner } from "./hosting-fixture.ts";
import { PipelineFixture } from "./pipelines-fixture.ts";
import { TrafficFixture, until } from "./traffic-fixture.ts";

const all: DataCaptureConfig = {
  InitialSamplingPercentage: 100,
  DestinationS3Uri: "s3://captured/of",
  CaptureOptions: [{ CaptureMode: "Input" }, { CaptureMode: "Output" }],
  CaptureContentTypeHeader: { CsvContentTypes: ["text/csv"] },
};

interface CapturedLine {
  readonly captureData: {
    readonly endpointInput: { readonly data: string; readonly encoding: string };
    readonly endpointOutput: { readonly data: string; readonly encoding: string };
  };
  readonly eventMetadata: { readonly inferenceId: string; readonly eventId: string };
}

/** Returns the lines of all files below a prefix, by key. */
async function linesBelow(
  { store }: Pick<TrafficFixture, "store">,
  prefix: string,
): Promise<readonly (readonly [string, CapturedLine])[]> {
  const options = { prefix, delimiter: "", startAfter: "", keysMax: 1000 };
  const { objects } = await store.list("captured", options);
  const lines = objects.map(async ({ key }) => {
    const { body } = await store.get("captured", key);
    const all = (await text(body)).trimEnd().split("\n");
    return all.map((line) => [key, JSON.parse(line) as CapturedLine] as const);
  });
  return (await Promise.all(lines)).flat();
}

test("an endpoint's requests and responses are captured in files by variant and hour, until another configuration ends the capture", async () => {
  await using bench = await TrafficFixture.open();
  await bench.store.createBucket("captured");
  await bench.deploy("watched", [{ name: "a" }, { name: "b" }], { dataCapture: all });
  const requested = Array.from({ length: 20 }, (_, index) => `request ${index}`);
  const results = await Promise.all(requested.map((body) => bench.call("watched", body)));
  await bench.configure("plain", [{ name: "a" }]);
  await bench.update("watched", "plain");
  await bench.settled("watched");
  await bench.call("watched", "after");
  await until("all are written", () => bench.hosting.mirrorStatistics.callCount === 0);
  const lines = await linesBelow(bench, "of/");
  const expected = results.map(({ variant, container, instance, pid }, index) => {
    const request = requested[index] ?? "";
    return [variant, request, request, "CSV", [container, instance, pid].join(" "), "BASE64"].join("|");
  });
  const found = lines.map(([key, { captureData, eventMetadata }]) => {
    assert.match(key, /^of\/watched\/[ab]\/\d{4}\/\d\d\/\d\d\/\d\d\/\d\d-\d\d-\d{3}-[0-9a-f-]{36}\.jsonl$/);
    const { endpointInput: input, endpointOutput: output } = captureData;
    const response = Buffer.from(output.data, "base64").toString();
    const { inferenceId } = eventMetadata;
    return [key.split("/")[2], inferenceId, input.data, input.encoding, response, output.encoding].join("|");
  });
  assert.deepEqual(new Set(found), new Set(expected));
  assert.equal(new Set(lines.map(([, { eventMetadata }]) => eventMetadata.eventId)).size, 20);
  const none = { "no-room": 0, "shadow-busy": 0, "cut-short": 0, "not-written": 0 };
  assert.deepEqual(bench.hosting.mirrorStatistics, { callCount: 0, bytes: 0, lost: none });
});

test("data captured before an endpoint's deletion is written, and a missing bucket fails no request", async () => {
  await using bench = await TrafficFixture.open();
  await bench.deploy("early", [{ name: "a" }], { dataCapture: all });
  await bench.call("early", "before there is a bucket");
  await bench.hosting.endpoints.delete("early", owner);
  await bench.settled("early");
  await bench.store.createBucket("captured");
  await until("it is written", async () => (await linesBelow(bench, "of/early/a/")).length === 1);
});

test("a pipeline captures the first container's request and the last one's response; long bodies are captured completely", async () => {
  await using bench = await PipelineFixture.open();
  await bench.store.createBucket("captured");
  const containers = ["first", "last"].map((name) => ({ ContainerHostname: name, Environment: { NAME: name } }));
  const types = { CsvContentTypes: ["text/csv"], JsonContentTypes: ["application/json"] };
  const dataCapture = { ...all, CaptureContentTypeHeader: types };
  await bench.deploy("piped", containers, "Serial", { dataCapture });
  const json = { type: "application/json" };
  const short = await bench.call("piped", { body: "[1]", does: { last: json } });
  const long = await bench.call("piped", { body: "[2]", does: { last: { ...json, sends: 3 * 2 ** 20 } } });
  assert.equal(long.text.length, 3 * 2 ** 20);
  await assert.rejects(bench.call("piped", { does: { last: { ...json, sends: 3 * 2 ** 20, dies: "amidst" } } }));
  const chunks = Array.from({ length: 48 }, (_, index) => Buffer.alloc(65_536, String(index % 10)));
  const headers = { "content-type": "text/csv", "content-length": String(48 * 65_536) };
  const streamed = await bench.call("piped", {
    body: Readable.from(chunks, { objectMode: false }),
    headers,
    does: { first: { length: true }, last: json },
  });
  await bench.hosting.endpoints.delete("piped", owner);
  await until("all are written", () => bench.hosting.mirrorStatistics.callCount === 0);
  const sides = (await linesBelow(bench, "of/piped/all/")).map(([, { captureData }]) => captureData);
  const expected = [
    { input: "[1]", output: short.text },
    { input: "[2]", output: long.text },
    { input: Buffer.concat(chunks).toString(), output: streamed.text },
  ];
  const found = sides.map(({ endpointInput, endpointOutput }) => ({
    input: endpointInput.data,
    output: endpointOutput.data,
  }));
  assert.equal(found.length, 3);
  for (const pair of expected)
    assert.ok(found.some((each) => each.input === pair.input && each.output === pair.output));
  assert.equal(bench.hosting.mirrorStatistics.lost["cut-short"], 1);
});
