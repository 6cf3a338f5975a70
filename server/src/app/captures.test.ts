/** Data capture of endpoints: real processes, and a real object store. */
import assert from "node:assert/strict";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import type { DataCaptureConfig } from "../hosting/index.ts";
import { owner } from "./hosting-fixture.ts";
import { TrafficBench, until } from "./traffic-fixture.ts";

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

/** Of all files below a prefix, by the file's key. */
async function linesBelow(
  { store }: TrafficBench,
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

test("what an endpoint is asked and answers is in files by variant and hour; another configuration ends it", async () => {
  await using bench = await TrafficBench.open();
  await bench.store.createBucket("captured");
  await bench.deploy("watched", [{ name: "a" }, { name: "b" }], { dataCapture: all });
  const asked = Array.from({ length: 20 }, (_, index) => `request ${index}`);
  const answered = await Promise.all(asked.map((body) => bench.ask("watched", body)));
  await bench.configure("plain", [{ name: "a" }]);
  await bench.update("watched", "plain");
  await bench.settled("watched");
  await bench.ask("watched", "after");
  await until("all are written", () => bench.hosting.mirrorFigures.callCount === 0);
  const lines = await linesBelow(bench, "of/");
  const wanted = answered.map(({ variant, container, instance, pid }, index) => {
    const request = asked[index] ?? "";
    return [variant, request, request, "CSV", [container, instance, pid].join(" "), "BASE64"].join("|");
  });
  const found = lines.map(([key, { captureData, eventMetadata }]) => {
    assert.match(key, /^of\/watched\/[ab]\/\d{4}\/\d\d\/\d\d\/\d\d\/\d\d-\d\d-\d{3}-[0-9a-f-]{36}\.jsonl$/);
    const { endpointInput: input, endpointOutput: output } = captureData;
    const answer = Buffer.from(output.data, "base64").toString();
    const { inferenceId } = eventMetadata;
    return [key.split("/")[2], inferenceId, input.data, input.encoding, answer, output.encoding].join("|");
  });
  assert.deepEqual(new Set(found), new Set(wanted));
  assert.equal(new Set(lines.map(([, { eventMetadata }]) => eventMetadata.eventId)).size, 20);
  const none = { "no-room": 0, "shadow-busy": 0, "cut-short": 0, "not-written": 0 };
  assert.deepEqual(bench.hosting.mirrorFigures, { callCount: 0, bytes: 0, lost: none });
});

test("what was captured before an endpoint is deleted is written, and a bucket that is not there fails nobody", async () => {
  await using bench = await TrafficBench.open();
  await bench.deploy("early", [{ name: "a" }], { dataCapture: all });
  await bench.ask("early", "before there is a bucket");
  await bench.hosting.deleteEndpoint("early", owner);
  await bench.settled("early");
  await bench.store.createBucket("captured");
  await until("it is written", async () => (await linesBelow(bench, "of/early/a/")).length === 1);
});
