import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { captureLine, type CapturedCall } from "./capture-record.ts";

const types = { csvTypes: new Set(["text/csv"]), jsonTypes: new Set(["application/json"]) };
const call: CapturedCall = {
  eventId: "5fee9d7b-8e35-4d2c-8d3a-7c7f4c6e9a01",
  inferenceId: null,
  customAttributes: null,
  timeMs: Date.UTC(2026, 1, 3, 4, 5, 6, 789),
  input: { contentType: "text/csv", pieces: [Buffer.from("1,2,3\n")] },
  output: { contentType: "application/json; charset=utf-8", pieces: [Buffer.from('{"score":0.5}')] },
};
const lineOf = (more: Partial<CapturedCall>) => [...captureLine({ ...call, ...more }, types)].join("");

test("a captured line is a record in Model Monitor's format", () => {
  assert.equal(
    lineOf({}),
    '{"captureData":{"endpointInput":{"observedContentType":"text/csv","mode":"INPUT","data":"1,2,3\\n","encoding":"CSV"},' +
      '"endpointOutput":{"observedContentType":"application/json; charset=utf-8","mode":"OUTPUT","data":"{\\"score\\":0.5}","encoding":"JSON"}},' +
      '"eventMetadata":{"eventId":"5fee9d7b-8e35-4d2c-8d3a-7c7f4c6e9a01","inferenceTime":"2026-02-03T04:05:06Z"},"eventVersion":"0"}\n',
  );
});

test("a record may have only its input or output, an inference id and custom attributes", () => {
  const record = JSON.parse(lineOf({ input: null, inferenceId: "i-1", customAttributes: "trace=1" })) as {
    captureData: object;
    eventMetadata: object;
  };
  assert.deepEqual(Object.keys(record.captureData), ["endpointOutput"]);
  assert.deepEqual(record.eventMetadata, {
    eventId: call.eventId,
    customAttributes: ["trace=1"],
    inferenceId: "i-1",
    inferenceTime: "2026-02-03T04:05:06Z",
  });
  assert.deepEqual(Object.keys((JSON.parse(lineOf({ output: null })) as typeof record).captureData), ["endpointInput"]);
});

function sideOf(contentType: string | null, chunks: readonly Buffer[]): { data: string; encoding: string } {
  const line = lineOf({ output: null, input: { contentType, pieces: chunks } });
  assert.equal(line.indexOf("\n"), line.length - 1);
  return (JSON.parse(line) as { captureData: { endpointInput: { data: string; encoding: string } } }).captureData
    .endpointInput;
}

test("a body is captured as base64 if its content type is not listed or it is not text", () => {
  assert.deepEqual(
    [
      sideOf("TEXT/CSV ; header=absent", [Buffer.from("ä")]),
      sideOf("application/x-npy", [Buffer.from("ä")]),
      sideOf(null, [Buffer.from("ab")]),
      sideOf("text/csv", [Buffer.from([0xff, 0xfe])]),
      sideOf("text/csv", [Buffer.from([0x61, 0xc3]), Buffer.from([0x28])]),
      sideOf("application/json", []),
    ].map(({ data, encoding }) => `${encoding} ${data}`),
    ["CSV ä", "BASE64 w6Q=", "BASE64 YWI=", "BASE64 //4=", "BASE64 YcMo", "JSON "],
  );
});

test("property: captured bodies decode to the original bytes, however they were chunked", () => {
  const cut = (bytes: Buffer, at: readonly number[]) => {
    const marks = [0, ...at.map((each) => each % (bytes.length + 1)).toSorted((a, b) => a - b), bytes.length];
    return marks.slice(1).map((end, index) => bytes.subarray(marks[index], end));
  };
  const cuts = fc.array(fc.nat(), { maxLength: 5 });
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), cuts, (bytes, at) => {
      const { data, encoding } = sideOf("image/png", cut(Buffer.from(bytes), at));
      assert.equal(encoding, "BASE64");
      assert.deepEqual(Buffer.from(data, "base64"), Buffer.from(bytes));
    }),
  );
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 100 }), cuts, (text, at) => {
      const { data, encoding } = sideOf("text/csv", cut(Buffer.from(text), at));
      assert.deepEqual([data, encoding], [Buffer.from(text).toString(), "CSV"]);
    }),
  );
});

test("a long body is encoded in short steps", () => {
  const long = Buffer.alloc(1_000_000, "x,");
  for (const contentType of ["text/csv", "image/png"]) {
    const steps = [...captureLine({ ...call, input: { contentType, pieces: [long] } }, types)];
    assert.ok(Math.max(...steps.map(({ length }) => length)) <= 65_536);
    assert.ok(steps.length > 20);
  }
});
