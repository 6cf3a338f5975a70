import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import * as fc from "fast-check";
import { InferenceError } from "@galatea/base";
import { releaseResponse, type InferenceRequest, DeferredResponses, type Released } from "../../inference/index.ts";
import type { Tensor } from "../../tensor/index.ts";
import { ExecuteEncoder } from "./execute-encoder.ts";
import { LoanCollector } from "./execution-codec.ts";
import { planFrames, requestsBytesMax, spacesMax } from "./frame-plan.ts";
import { LentBlocks } from "./lent-blocks.ts";
import { floats, header, inArena, only, openFixture, request, tensor, type PythonFixture } from "./python-fixture.ts";
import { frameBytesMax, headerBytes } from "./wire.ts";

let fixture: PythonFixture;

before(async () => {
  fixture = await openFixture();
});

after(() => fixture[Symbol.asyncDispose]());

const mebibyte = 2 ** 20;
const withText = (text: string) => new Map([["text", text]]);
const sequence = (id: string) => ({ id, start: false, end: false });

/** A model that returns the number of requests, the size of their texts, and the size of the input. */
const countingModel = `${header}import json
class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for r in requests:
            text = len(json.loads(r.parameters() or "{}").get("text", "")) + len(r.request_id()) + len(str(r.correlation_id()))
            told = np.array([len(requests), text, r.inputs()[0].as_numpy().size], np.float32)
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("OUT", told)]))
        return responses
`;

/** A large input in the arena, which is lent to the worker. */
function large(): Tensor {
  return inArena(
    fixture.arena,
    floats(
      "IN",
      Array.from({ length: 5000 }, () => 1),
    ),
  );
}

function told(outcome: Released): number[] | string {
  if (outcome instanceof DeferredResponses) return "sent";
  if (outcome instanceof InferenceError) return `${outcome.code}: ${outcome.message}`;
  const numbers = [...new Float32Array(outcome.outputs[0]!.data.slice().buffer)];
  releaseResponse(outcome);
  return numbers;
}

async function execute(batch: readonly InferenceRequest[]): Promise<(number[] | string)[]> {
  await using loaded = await fixture.load("counting", countingModel);
  const { outcomes } = await only(loaded).execute(batch);
  const seen = outcomes.map(told);
  for (const one of batch) for (const input of one.inputs) input.block?.release();
  return seen;
}

const refusals: readonly [what: string, more: Partial<InferenceRequest>, message: string][] = [
  [
    "a sequence id",
    { sequence: sequence("x".repeat(65_536)) },
    "INVALID_ARG: the request's sequence id has 65536 bytes; the Python backend accepts at most 65535",
  ],
  [
    "an id",
    { id: "é".repeat(34 * mebibyte) },
    `INVALID_ARG: the request's id has ${68 * mebibyte} bytes; the Python backend accepts at most ${requestsBytesMax}`,
  ],
  [
    "parameters",
    { parameters: withText("x".repeat(64 * mebibyte)) },
    `INVALID_ARG: the request's parameters have ${64 * mebibyte + 4} bytes or more as JSON; the Python backend accepts at most ${requestsBytesMax}`,
  ],
  [
    "parameters that JSON makes longer",
    { parameters: withText("\u0001".repeat(11 * mebibyte)) },
    `INVALID_ARG: the request's parameters have ${66 * mebibyte + 11} bytes or more as JSON; the Python backend accepts at most ${requestsBytesMax}`,
  ],
  [
    "id and parameters together",
    { id: "x".repeat(40 * mebibyte), parameters: withText("x".repeat(40 * mebibyte)) },
    `INVALID_ARG: the request's id, parameters and small tensors have ${80 * mebibyte + 11 + 40 + 8 + 24 + 8 + 24} bytes together; the Python backend accepts at most ${requestsBytesMax}`,
  ],
  [
    "requested outputs",
    { requestedOutputs: Array.from({ length: 65_535 }, () => "OUT") },
    "INVALID_ARG: the request's list of requested outputs has 65535 names; the Python backend accepts at most 65534",
  ],
];

for (const [what, more, message] of refusals) {
  test(`${what} too large for a frame fails its own request of a batch; the others succeed and all memory is released`, async () => {
    const batch = [request([large()]), request([large()], more), request([large()])];
    assert.deepEqual(await execute(batch), [[2, 1, 5000], message, [2, 1, 5000]]);
    assert.equal(fixture.arena.usedBytes, 0);
  });
}

test("a tensor with more dimensions than the protocol allows fails only its request", async () => {
  const deep = tensor(
    "IN",
    "FP32",
    Array.from({ length: 33 }, () => 1),
    new Uint8Array(4),
  );
  const seen = await execute([request([deep]), request([floats("IN", [1])])]);
  const message = "INVALID_ARG: the request's input 'IN' has 33 dimensions; the Python backend accepts at most 32";
  assert.deepEqual(seen, [message, [1, 1, 1]]);
});

test("a batch too large for one frame is executed in several parts", async () => {
  const text = "x".repeat(30 * mebibyte - 1);
  const batch = Array.from({ length: 5 }, () => request([large()], { parameters: withText(text) }));
  const result = [2, 30 * mebibyte, 5000];
  assert.deepEqual(await execute(batch), [result, result, result, result, [1, 30 * mebibyte, 5000]]);
  assert.equal(fixture.arena.usedBytes, 0);
});

test("the maximum values of the fields are executed", async () => {
  const fits = { sequence: sequence("x".repeat(65_535)), id: "y".repeat(60 * mebibyte - 65_535) };
  const seen = await execute([request([large()], fits)]);
  assert.deepEqual(seen, [[1, 60 * mebibyte, 5000]]);
  assert.equal(fixture.arena.usedBytes, 0);
});

test("property: each planned part fits a frame, and no request is lost or duplicated", () => {
  // The test uses a frame of a sixtieth of the real size. It holds the same kinds of requests, and a thousand such cases are generated in
  // the time of one.
  const roomBytes = mebibyte;
  // Texts with lengths around the limits. Each repeats one character, so that generating it is cheap.
  const text = (most: number) =>
    fc.tuple(fc.constantFrom("x", "é", "\u0001", "漢", "\ud800"), fc.oneof(fc.nat(50), fc.nat(most)));
  const drawn = fc.record({
    id: text((3 * roomBytes) / 8),
    parameters: text((3 * roomBytes) / 8),
    correlation: text(70_000),
    outputs: fc.constantFrom(0, 3, 65_534, 65_535),
    inputBytes: fc.constantFrom(4, 4096),
  });
  const context = {
    modelName: "m",
    modelVersion: "1",
    inputIndex: new Map([["IN", 0]]),
    outputIndex: new Map([["OUT", 0]]),
    outputNames: ["OUT"],
    arena: fixture.arena,
    isDecoupled: false,
    inlineBytesMax: 4096,
  };
  const encoder = new ExecuteEncoder();
  const spaces = Array.from({ length: spacesMax }, () => ({
    lentId: 1,
    isShared: false,
    byteOffset: 0,
    byteLength: 1,
  }));
  fc.assert(
    fc.property(fc.array(drawn, { minLength: 1, maxLength: 5 }), (requests) => {
      const batch = requests.map((one) =>
        request([tensor("IN", "UINT8", [one.inputBytes], new Uint8Array(one.inputBytes))], {
          id: one.id[0].repeat(one.id[1]),
          parameters: one.parameters[1] === 0 ? new Map() : withText(one.parameters[0].repeat(one.parameters[1])),
          sequence: sequence(one.correlation[0].repeat(one.correlation[1])),
          requestedOutputs: Array.from({ length: one.outputs }, () => "OUT"),
        }),
      );
      const plan = planFrames(batch, { inlineBytesMax: context.inlineBytesMax, requestsBytesMax: roomBytes }) ?? {
        parts: [batch.keys().toArray()],
        refused: new Map(),
      };
      const locations = [...plan.parts.flat(), ...plan.refused.keys()].sort((a, b) => a - b);
      assert.deepEqual(locations, batch.keys().toArray());
      for (const part of plan.parts) {
        const collector = new LoanCollector(context, new LentBlocks(), 1);
        const wired = part.map((position) => collector.request(batch[position]!));
        const frame = encoder.encode({ executionId: 1, loans: [], spaces, nextIsNear: false, requests: wired });
        assert.ok(
          frame.byteLength <= roomBytes + (frameBytesMax - requestsBytesMax) &&
            frame.readUInt32LE(0) === frame.byteLength,
        );
        assert.ok(frame.byteLength > headerBytes);
      }
    }),
    { numRuns: 150 },
  );
});
