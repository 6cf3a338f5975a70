/** Invalid frames of a worker: only that worker is killed, no block of the arena stays lent, and the event loop is not blocked. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { InferenceError } from "@galatea/base";
import {
  encodeSpaceRequest,
  encodeReleased,
  encodeResult,
  execute,
  output,
  outputResponse,
  send,
  withinTime,
} from "./hostile-wire.ts";
import { openHostileInstance, openHostileWorker } from "./hostile-worker.ts";
import { LogRate } from "./log-rate.ts";
import { encodeFrame, kinds } from "./wire.ts";

const deepJson = (depth: number) => `${"[".repeat(depth)}${"]".repeat(depth)}`;
const raisedOf = (body: string) => encodeFrame(kinds.raised, Buffer.from(body));
const logOf = (body: string) => encodeFrame(kinds.log, Buffer.from(body));

/** Frames that are sent while execution 1 is running. It has one request, whose input is lent block 1. */
const attacks: readonly [what: string, frame: () => Buffer, told: RegExp][] = [
  ["parameters that are null", () => encodeResult(1, [outputResponse("null")]), /not a JSON object of strings/],
  ["parameters that are a list", () => encodeResult(1, [outputResponse("[1]")]), /not a JSON object of strings/],
  ["parameters that nest", () => encodeResult(1, [outputResponse('{"a":{}}')]), /not a JSON object of strings/],
  [
    "an integer of 40 million digits",
    () => encodeResult(1, [outputResponse(`{"a":${"9".repeat(40_000_000)}}`)]),
    /not a JSON object of strings/,
  ],
  [
    "parameters of millions of members",
    () => encodeResult(1, [outputResponse(`{${'"":1,'.repeat(6_000_000)}"":1}`)]),
    /too many members/,
  ],
  [
    "parameters that are nested 20 million deep",
    () => encodeResult(1, [outputResponse(`{"a":${deepJson(20_000_000)}}`)]),
    /not a JSON object of strings/,
  ],
  ["a LOG whose message is an object", () => logOf('{"message":{"toString":1}}'), /not a JSON object of strings/],
  ["a LOG nested a million deep", () => logOf(`{"message":${deepJson(1_000_000)}}`), /not a JSON object of strings/],
  ["a LOG of 60 MB", () => logOf(`{"message":"${"x".repeat(60_000_000)}"}`), /bytes of a text/],
  ["a LOG that is no JSON", () => logOf("{"), /not a JSON object of strings/],
  ["a RAISED without its requests", () => raisedOf('{"message":"why"}'), /without its text or its requests/],
  ["a RAISED of 60 MB", () => raisedOf(`{"message":"${"x".repeat(60_000_000)}"}`), /bytes of a text/],
  ["a SPACE_REQUEST of 2^63 bytes", () => encodeSpaceRequest(1, [2n ** 63n]), /beyond 2\^53/],
  ["a SPACE_REQUEST for an execution that is not running", () => encodeSpaceRequest(7, [8n]), /not running/],
  [
    "a SPACE_REQUEST that ends before its sizes",
    () => encodeFrame(kinds.spaceRequest, new Uint8Array(8), { id: 1, count: 9 }),
    /ends/,
  ],
  ["a RESULT of an execution that is not running", () => encodeResult(9, [outputResponse("")]), /not running/],
  [
    "a RESULT of more responses than requests",
    () => encodeResult(1, [outputResponse(""), outputResponse("")]),
    /2 responses/,
  ],
  [
    "a RESULT of 65535 responses that it does not contain",
    () => encodeResult(1, [outputResponse("")], { count: 65_535 }),
    /ends|status|run into/,
  ],
  [
    "more outputs than the reader accepts",
    () =>
      encodeResult(
        1,
        Array.from({ length: 3 }, () =>
          outputResponse(
            "",
            Array.from({ length: 60_000 }, () => output()),
          ),
        ),
      ),
    /\d+ outputs/,
  ],
  [
    "an output with an unknown name",
    () => encodeResult(1, [outputResponse("", [output({ nameIndex: 2 })])]),
    /output 2/,
  ],
  [
    "a tensor of 255 dimensions",
    () => encodeResult(1, [outputResponse("", [output({ rank: 255, shape: Array.from({ length: 255 }, () => 1n) })])]),
    /255 dimensions/,
  ],
  [
    "a tensor of negative dimensions",
    () => encodeResult(1, [outputResponse("", [output({ rank: 2, shape: [-1n, -1n] })])]),
    /beyond 2\^53/,
  ],
  [
    "a tensor whose dimensions overflow",
    () => encodeResult(1, [outputResponse("", [output({ rank: 3, shape: [2n ** 52n, 2n ** 52n, 2n ** 52n] })])]),
    /shape/,
  ],
  [
    "a tensor in a block that was not lent",
    () => encodeResult(1, [outputResponse("", [output({ blockRef: 99, shape: [1n], byteLength: 4n })])]),
    /not lent/,
  ],
  [
    "a tensor outside its block",
    () =>
      encodeResult(
        1,
        [outputResponse("", [output({ blockRef: 1, shape: [1024n], byteOffset: 1n, byteLength: 4096n })])],
        {
          released: [1],
        },
      ),
    /outside its block/,
  ],
  [
    "a tensor in an input that is not released",
    () => encodeResult(1, [outputResponse("", [output({ blockRef: 1, shape: [1024n], byteLength: 4096n })])]),
    /not released/,
  ],
  [
    "a tensor past the end of the frame",
    () => encodeResult(1, [outputResponse("", [output({ shape: [1n], byteOffset: 2n ** 40n, byteLength: 4n })])]),
    /outside the frame/,
  ],
  [
    "durations that overflow",
    () => encodeResult(1, [outputResponse("")], { durations: [2n ** 53n - 1n, 1n, 1n] }),
    /nanosec/,
  ],
  [
    "an error of no known code",
    () => encodeResult(1, [{ status: 1, count: 8, text: "", outputs: [] }]),
    /error code 8/,
  ],
  [
    "an error of 60 MB",
    () => encodeResult(1, [{ status: 1, count: 1, text: "x".repeat(60_000_000), outputs: [] }]),
    /bytes of an error/,
  ],
  ["a release of what was not lent", () => encodeReleased([77]), /not lent/],
  ["a release of one loan twice", () => encodeReleased([1, 1]), /not lent/],
  [
    "a release of 16 million",
    () => encodeReleased(Array.from({ length: 16_000_000 }, () => 1)),
    /16000000 released blocks/,
  ],
  ["a frame shorter than its header", () => Buffer.from([15, 0, 0, 0]), /a frame of 15 bytes/],
  ["a frame of 4 GiB", () => Buffer.from([255, 255, 255, 255]), /a frame of 4294967295 bytes/],
  ["a frame of no known kind", () => encodeFrame(200, new Uint8Array()), /kind 200/],
  ["a response to a step that was not requested", () => encodeFrame(kinds.initialized, Buffer.from("{}")), /kind 68/],
];

for (const [what, frame, pattern] of attacks) {
  test(`${what}: the worker is terminated, its execution fails, all memory is released`, async () => {
    const bytes = frame();
    await using hostile = await openHostileInstance();
    const running = execute(hostile, 1);
    const execution = await withinTime(async () => {
      await send(hostile, bytes);
      return await running.settled;
    });
    const [outcome] = execution.outcomes;
    assert.ok(outcome instanceof InferenceError);
    assert.match(outcome.message, /ended because of: malformed record from a worker: /);
    assert.match(outcome.message, pattern);
    assert.deepEqual([hostile.arena.usedBytes, hostile.worker.lent.count], [0, 0]);
  });
}

test("an output too large for the arena is rejected and the worker survives; one that requests memory too often is terminated", async () => {
  await using hostile = await openHostileInstance();
  const running = execute(hostile, 1);
  const received: Buffer[] = [];
  hostile.socket.on("data", (chunk: Buffer) => received.push(chunk));
  await send(hostile, encodeSpaceRequest(1, [2n ** 52n]));
  const refused = "shared memory arena is full: 4503599627370496 bytes requested, ";
  while (!Buffer.concat(received).includes(refused)) await new Promise((resolve) => setImmediate(resolve));
  assert.ok(hostile.worker.alive);
  for (let count = 0; count < 16; count++) await send(hostile, encodeSpaceRequest(1, [65_536n]));
  const { outcomes } = await running.settled;
  assert.match((outcomes[0] as InferenceError).message, /requests space too often/);
  assert.equal(hostile.arena.usedBytes, 0);
});

test("too many outputs over the same elements fail the execution quickly", async () => {
  await using hostile = await openHostileInstance();
  const running = execute(hostile, 1);
  await send(hostile, encodeSpaceRequest(1, [32n * 2n ** 20n]));
  // Block 1 is the input. Block 2 is the output memory, which is filled with empty elements.
  const text = output({ nameIndex: 1, datatype: 13, blockRef: 2, shape: [2n ** 23n], byteLength: 2n ** 25n });
  const execution = await withinTime(async () => {
    await send(
      hostile,
      encodeResult(
        1,
        [
          outputResponse(
            "",
            Array.from({ length: 60_000 }, () => text),
          ),
        ],
        { released: [1] },
      ),
    );
    return await running.settled;
  });
  assert.match((execution.outcomes[0] as InferenceError).message, /the same elements too often/);
  assert.equal(hostile.arena.usedBytes, 0);
});

for (const [step, kind, reply] of [
  ["load", kinds.load, kinds.loaded],
  ["complete", kinds.complete, kinds.completed],
  ["initialize", kinds.initialize, kinds.initialized],
] as const) {
  const bodies: readonly [string, number, string][] = [
    ["no JSON", reply, "{"],
    ["null", reply, "null"],
    ["a list", reply, "[]"],
    ["nesting without end", reply, `{"a":${deepJson(1_500_000)}}`],
    ["20 MB", reply, `{"a":"${"x".repeat(20_000_000)}"}`],
    ["a failure without a text", kinds.failed, '{"message":7}'],
    ["a failure whose text is an object", kinds.failed, '{"message":{"toString":null}}'],
    ["a failure nested a million deep", kinds.failed, `{"message":${deepJson(1_000_000)}}`],
    ["a result before there is a model", kinds.result, ""],
  ];
  for (const [what, sent, body] of bodies) {
    test(`the response to the step '${step}' of a worker is ${what}: the step fails and the worker is terminated`, async () => {
      await using hostile = await openHostileWorker();
      const call = hostile.worker.call(kind, reply, {}, null);
      await withinTime(async () => {
        await send(hostile, encodeFrame(sent, Buffer.from(body)));
        await assert.rejects(call, { code: "INTERNAL", message: /ended because of: malformed record from a worker/ });
      });
      assert.equal(hostile.worker.alive, false);
    });
  }
}

test("a worker that logs endlessly is logged at a limited rate, and left-out lines are counted", () => {
  const lines: string[] = [];
  let nowNs = 0;
  const clock = { epochMs: () => 0, monotonicNs: () => nowNs, timer: () => ({ [Symbol.dispose]: () => {} }) };
  const rate = new LogRate(clock, 3, (count) => lines.push(`${count} not shown`));
  for (let index = 0; index < 10; index++) if (rate.admits()) lines.push(`line ${index}`);
  nowNs = 1e9;
  if (rate.admits()) lines.push("next second");
  rate.end();
  assert.deepEqual(lines, ["line 0", "line 1", "line 2", "7 not shown", "next second"]);
});
