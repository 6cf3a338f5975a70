import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { test } from "node:test";
import * as fc from "fast-check";
import {
  decodeCall,
  decodeControl,
  encodeCallResponse,
  encodeCallSpace,
  encodeControlResponse,
  type WireCallResponse,
} from "./call-codec.ts";
import { ExecuteEncoder } from "./execute-encoder.ts";
import {
  decodeSpaceRequest,
  decodeJson,
  decodeReleased,
  decodeResponse,
  decodeResult,
  readHeader,
} from "./frame-decoder.ts";
import { frameLimits } from "./frame-limits.ts";
import {
  decodeMetric,
  decodeMetricFamily,
  encodeFamilyResponse,
  encodeMetricResponse,
  encodeMetricError,
  encodeMetricValueResponse,
} from "./metric-codec.ts";
import {
  encodeCredit,
  encodeSpace,
  frameBytesMax,
  kinds,
  MalformedRecord,
  responseFrameBytesMax,
  type WireExecute,
} from "./wire.ts";

const vectorsPath = fileURLToPath(new URL("../../../../../conformance/vectors/python-wire.json", import.meta.url));
const vectors = JSON.parse(await readFile(vectorsPath, "utf8")) as Record<
  | "execute"
  | "space"
  | "result"
  | "failure"
  | "spaceRequest"
  | "released"
  | "response"
  | "finalResponse"
  | "spaceRequestOfResponse"
  | "spaceOfResponse"
  | "noSpaceOfResponse"
  | "credit"
  | "call"
  | "callSpaceRequest"
  | "callCancel"
  | "callCredit"
  | "callResponse"
  | "callFailed"
  | "callSpace"
  | "noCallSpace"
  | "control"
  | "controlResult"
  | "limits"
  | "metricFamily"
  | "metric"
  | "metricValue"
  | "metricsReleased"
  | "metricCreated"
  | "metricCells"
  | "metricNumber"
  | "metricRejected"
  | "kinds",
  string
>;

const golden: WireExecute = {
  executionId: 7,
  nextIsNear: true,
  loans: [{ lentId: 3, isShared: true, byteOffset: 5 * 2 ** 32, byteLength: 2 ** 20 }],
  spaces: [{ lentId: 4, isShared: false, byteOffset: 4096, byteLength: 512 }],
  requests: [
    {
      requestId: "ü",
      parametersJson: '{"a":1}',
      correlation: 42n,
      flags: 3,
      timeoutUs: 2 ** 40,
      requested: [1],
      inputs: [
        {
          nameIndex: 0,
          datatype: 11,
          shape: [1, 2],
          blockRef: null,
          byteOffset: 0,
          byteLength: 8,
          data: Uint8Array.from([1, 2, 3, 4, 5, 6, 7, 8]),
        },
        { nameIndex: 1, datatype: 11, shape: [1], blockRef: 0, byteOffset: 64, byteLength: 4, data: null },
      ],
    },
    {
      requestId: "",
      parametersJson: "",
      correlation: "seq",
      flags: 0,
      timeoutUs: 0,
      requested: null,
      inputs: [
        {
          nameIndex: 0,
          datatype: 13,
          shape: [],
          blockRef: null,
          byteOffset: 0,
          byteLength: 3,
          data: Uint8Array.from([9, 8, 7]),
        },
      ],
    },
  ],
};

test("the server's frames equal the golden bytes", () => {
  assert.equal(new ExecuteEncoder().encode(golden).toString("hex"), vectors.execute);
  assert.equal(encodeSpace(7, golden.spaces).toString("hex"), vectors.space);
  assert.equal(encodeSpace(7, golden.spaces, 9).toString("hex"), vectors.spaceOfResponse);
  assert.equal(encodeSpace(7, "full", 9).toString("hex"), vectors.noSpaceOfResponse);
  assert.equal(encodeCredit(7, 1, 8).toString("hex"), vectors.credit);
});

test("both sides use the same numbers for frames and records", () => {
  assert.equal(Buffer.from(Uint16Array.from(Object.values(kinds)).buffer).toString("hex"), vectors.kinds);
});

test("a worker's golden bytes are decoded to their values", () => {
  const result = decodeResult(Buffer.from(vectors.result, "hex"));
  assert.deepEqual(result, {
    executionId: 7,
    released: [3],
    inputNs: 1,
    inferNs: 2 ** 33,
    outputNs: 3,
    message: "",
    isOutOfMemory: false,
    responses: [
      { kind: "error", code: 3, message: "bad" },
      {
        kind: "outputs",
        parametersJson: '{"p": 1}',
        outputs: [
          {
            nameIndex: 0,
            datatype: 11,
            shape: [2],
            blockRef: null,
            byteOffset: 0,
            byteLength: 8,
            data: new Uint8Array(Buffer.from("12345678")),
          },
          { nameIndex: 1, datatype: 1, shape: [1, 3], blockRef: 4, byteOffset: 64, byteLength: 3, data: null },
        ],
      },
    ],
  });
  const failure = decodeResult(Buffer.from(vectors.failure, "hex"));
  assert.deepEqual([failure.responses, failure.message, failure.released], [null, "ValueError: x", []]);
  assert.deepEqual(decodeSpaceRequest(Buffer.from(vectors.spaceRequest, "hex")), [4096, 2 ** 34]);
  assert.deepEqual(decodeReleased(Buffer.from(vectors.released, "hex")), [1, 2, 3]);
});

test("golden bytes of a decoupled model's worker are decoded to their values", () => {
  const { response, ...said } = decodeResponse(Buffer.from(vectors.response, "hex"));
  assert.deepEqual(said, { executionId: 7, requestIndex: 1, isFinal: false, spaceRequestId: 9 });
  assert.deepEqual(
    response,
    decodeResult(Buffer.from(vectors.result, "hex")).responses?.[1] && {
      ...decodeResult(Buffer.from(vectors.result, "hex")).responses![1],
      parametersJson: "",
    },
  );
  assert.deepEqual(decodeResponse(Buffer.from(vectors.finalResponse, "hex")), {
    executionId: 7,
    requestIndex: 1,
    isFinal: true,
    spaceRequestId: 0,
    response: null,
  });
  const request = Buffer.from(vectors.spaceRequestOfResponse, "hex");
  assert.deepEqual([decodeSpaceRequest(request), readHeader(request).extra], [[4096], 9]);
});

const callResponse: WireCallResponse = {
  callId: 5,
  isLast: false,
  loans: golden.loans,
  response: {
    kind: "outputs",
    names: ["OUT", "LARGE"],
    parametersJson: "",
    outputs: [
      golden.requests[0]!.inputs[0]!,
      { nameIndex: 1, datatype: 1, shape: [3], blockRef: 0, byteOffset: 64, byteLength: 3, data: null },
    ],
  },
};

test("the server's responses to a call equal the golden bytes", () => {
  assert.equal(encodeCallResponse(callResponse).toString("hex"), vectors.callResponse);
  const failed = { kind: "error", code: 4, message: "full" } as const;
  assert.equal(
    encodeCallResponse({ callId: 5, isLast: true, loans: [], response: failed }).toString("hex"),
    vectors.callFailed,
  );
  assert.equal(encodeCallSpace(5, golden.spaces).toString("hex"), vectors.callSpace);
  assert.equal(encodeCallSpace(5, "full").toString("hex"), vectors.noCallSpace);
  assert.equal(encodeControlResponse(6, { ready: true }).toString("hex"), vectors.controlResult);
});

test("metric frames equal the golden bytes, encoded and decoded", () => {
  const positions = { id: 7, byteOffset: 2 ** 33, sharedByteOffset: 512, bounds: [0.5, 1] };
  assert.equal(encodeFamilyResponse(5).toString("hex"), vectors.metricCreated);
  assert.equal(encodeMetricResponse(6, positions).toString("hex"), vectors.metricCells);
  assert.equal(encodeMetricValueResponse(7, 1.5).toString("hex"), vectors.metricNumber);
  assert.equal(encodeMetricError(5, "full").toString("hex"), vectors.metricRejected);
  assert.deepEqual(decodeMetricFamily(Buffer.from(vectors.metricFamily, "hex")), {
    requestId: 5,
    familyId: 9,
    kind: "histogram",
    name: "m",
    description: "ü",
  });
  assert.deepEqual(decodeMetric(Buffer.from(vectors.metric, "hex")), {
    requestId: 6,
    metricId: 3,
    familyId: 9,
    bounds: [0.5, 1],
    labels: new Map([
      ["a", "ü"],
      ["b", ""],
    ]),
  });
  assert.deepEqual(readHeader(Buffer.from(vectors.metricValue, "hex")), { kind: 83, count: 0, id: 7, extra: 3 });
  assert.deepEqual(readHeader(Buffer.from(vectors.metricsReleased, "hex")), { kind: 84, count: 0, id: 0, extra: 9 });
});

test("golden bytes of a model that calls others are decoded to their values", () => {
  const { inputs, ...call } = decodeCall(Buffer.from(vectors.call, "hex"));
  assert.deepEqual(call, {
    callId: 5,
    isStreamed: true,
    executionId: 7,
    modelName: "m",
    modelVersion: "2",
    requestId: "ü",
    correlation: 2n ** 64n - 1n,
    flags: 3,
    timeoutUs: 2 ** 40,
    requested: ["OUT"],
    parametersJson: '{"a": 1}',
    names: ["A", "B"],
  });
  const response = decodeResult(Buffer.from(vectors.result, "hex")).responses?.[1];
  assert.deepEqual(inputs, response?.kind === "outputs" ? response.outputs : null);
  const request = Buffer.from(vectors.callSpaceRequest, "hex");
  assert.deepEqual([decodeSpaceRequest(request), readHeader(request).id], [[4096, 2 ** 34], 5]);
  const [cancel, received] = [Buffer.from(vectors.callCancel, "hex"), Buffer.from(vectors.callCredit, "hex")];
  assert.deepEqual([readHeader(cancel).id, readHeader(received).id, readHeader(received).extra], [5, 5, 8]);
  assert.deepEqual(decodeControl(Buffer.from(vectors.control, "hex")), {
    controlId: 6,
    verb: 1,
    modelName: "m",
    modelVersion: "",
    configJson: "{}",
    unloadDependents: true,
    files: new Map([
      ["file:1/model.py", new Uint8Array(Buffer.from("x = 1"))],
      ["file:1/empty", new Uint8Array()],
    ]),
  });
});

test("the worker's encoder obeys the server's decoding limits", () => {
  const limits = [
    frameBytesMax,
    responseFrameBytesMax,
    frameLimits.jsonBytesMax,
    frameLimits.callNamesMax,
    frameLimits.parameterMembersMax,
    frameLimits.tensorsMax,
  ];
  const reported = Buffer.from(vectors.limits, "hex");
  assert.deepEqual(
    limits,
    limits.map((_, index) => Number(reported.readBigUInt64LE(8 * index))),
  );
});

test("the worker encodes and decodes the same golden bytes", async () => {
  const script = fileURLToPath(new URL("../../../python/wire_test.py", import.meta.url));
  await promisify(execFile)("python3", ["-B", script, vectorsPath]);
});

test("property: decoding any bytes of a worker gives a value or MalformedRecord", () => {
  const seeds = [
    vectors.result,
    vectors.failure,
    vectors.spaceRequest,
    vectors.released,
    vectors.response,
    vectors.call,
    vectors.control,
  ].map((hex) => Buffer.from(hex, "hex"));
  const change = fc.record({ at: fc.nat(400), value: fc.nat(255) });
  fc.assert(
    fc.property(fc.nat(6), fc.array(change, { maxLength: 12 }), fc.nat(400), (which, changes, cut) => {
      const seed = Buffer.from(seeds[which]!);
      for (const { at, value } of changes) if (at >= 4 && at < seed.length) seed[at] = value;
      const frame = seed.subarray(0, Math.max(16, seed.length - (cut % 50)));
      for (const decode of [
        decodeResult,
        decodeResponse,
        decodeSpaceRequest,
        decodeReleased,
        decodeJson,
        decodeCall,
        decodeControl,
      ]) {
        try {
          decode(frame);
        } catch (error) {
          assert.ok(error instanceof MalformedRecord, String(error));
        }
      }
    }),
    { numRuns: 3000 },
  );
});
