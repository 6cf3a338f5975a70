/** Invalid frames of a decoupled model's worker: responses, and requests for output memory. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { InferenceError } from "@galatea/base";
import { releaseResponse, type Execution, type Outcome, DeferredResponses } from "../../inference/index.ts";
import { inArena, request, tensor } from "./python-fixture.ts";
import {
  encodeDecoupledResponse,
  encodeSpaceRequest,
  encodeResult,
  output,
  outputResponse,
  send,
} from "./hostile-wire.ts";
import { openHostileInstance, type HostileInstance } from "./hostile-worker.ts";
import { kinds } from "./wire.ts";

interface Running {
  readonly execution: Promise<Execution>;
  readonly results: (Outcome | null)[];
  /** Callbacks that acknowledge the responses, none of which the test has called. */
  readonly untaken: (() => void)[];
  readonly request: ReturnType<typeof request>;
}

/** Starts execution 1 with one request, whose input is lent block 1. */
function run({ arena, instance }: HostileInstance): Running {
  const answers: (Outcome | null)[] = [];
  const untaken: (() => void)[] = [];
  const requested = request([inArena(arena, tensor("IN", "UINT8", [4096], new Uint8Array(4096)))], {
    responseSink: {
      respond(outcome, _isFinal, consumed) {
        answers.push(outcome);
        if (outcome !== null && !(outcome instanceof InferenceError)) releaseResponse(outcome);
        untaken.push(consumed);
      },
    },
  });
  const execution = instance.execute([requested]).then((input) => {
    for (const { block } of requested.inputs) block?.release();
    return input;
  });
  return { execution, results: answers, untaken, request: requested };
}

/** Returns the outcome with which the request ended. */
async function endOf({ execution }: Running): Promise<Outcome | null> {
  const [outcome] = (await execution).outcomes;
  return outcome instanceof DeferredResponses ? await outcome.ended : (outcome ?? null);
}

const plain = (isFinal = false) => encodeDecoupledResponse({ isFinal, response: outputResponse("") });
const final = encodeDecoupledResponse({ isFinal: true, response: null });
const released = encodeResult(1, [], { released: [1] });
const inSpace = (spaceRequestId: number, block: number) =>
  encodeDecoupledResponse({
    isFinal: false,
    spaceRequestId,
    response: outputResponse("", [output({ blockRef: block, shape: [16n], byteLength: 64n })]),
  });

const attacks: readonly [what: string, frames: readonly Buffer[], told: RegExp][] = [
  ["a response after the final flag", [final, plain()], /had its final response/],
  ["a second final flag", [final, final], /had its final response/],
  ["a response after the result", [final, released, plain()], /had all of its responses/],
  [
    "a response of an execution that is not running",
    [encodeDecoupledResponse({ executionId: 9, response: null, isFinal: true })],
    /9/,
  ],
  [
    "a response to a request index out of range",
    [encodeDecoupledResponse({ requestIndex: 1, response: null, isFinal: true })],
    /request 1/,
  ],
  ["an empty response", [encodeDecoupledResponse({ response: null, isFinal: false })], /0 responses/],
  ["more responses than the credit allows", Array.from({ length: 17 }, () => plain()), /credit/],
  ["a response in a block that was not lent to the worker", [inSpace(0, 1)], /not lent/],
  [
    "a response in a block lent for another request for space",
    [encodeSpaceRequest(1, [64n], 1), encodeSpaceRequest(1, [64n], 2), inSpace(1, 3)],
    /not lent/,
  ],
  [
    "one id for two requests for space",
    [encodeSpaceRequest(1, [64n], 1), encodeSpaceRequest(1, [64n], 1)],
    /too often/,
  ],
  [
    "too many requests for space",
    Array.from({ length: 17 }, (_, index) => encodeSpaceRequest(1, [64n], index + 1)),
    /too often/,
  ],
  ["a result with responses", [encodeResult(1, [outputResponse("")], { released: [1] })], /1 responses/],
  ["a second result", [released, released], /not running/],
  [
    "a response of 5 MB in its frame",
    [encodeDecoupledResponse({ isFinal: false, response: outputResponse(`{"a":"${"x".repeat(5_000_000)}"}`) })],
    /bytes of a response/,
  ],
  [
    "parameters that nest",
    [encodeDecoupledResponse({ isFinal: false, response: outputResponse('{"a":{}}') })],
    /not a JSON object/,
  ],
];

for (const [what, frames, pattern] of attacks) {
  test(`${what}: the worker is terminated, open responses end with an error, all memory is released`, async () => {
    await using hostile = await openHostileInstance({ isDecoupled: true });
    const running = run(hostile);
    await send(hostile, Buffer.concat(frames));
    assert.match(await hostile.worker.ended, pattern);
    await endOf(running);
    assert.deepEqual([hostile.arena.usedBytes, hostile.worker.lent.count], [0, 0]);
  });
}

const later = encodeResult(1, [{ status: 2, count: 0, text: "", outputs: [] }], { released: [1] });

const lateAttacks: readonly [what: string, frames: readonly Buffer[], told: RegExp][] = [
  ["a response before the result", [plain(true)], /had all of its responses/],
  ["a response that is not the last", [later, plain()], /not its only one/],
  ["a final flag alone", [later, final], /not its only one/],
  ["a second response", [later, plain(true), plain(true)], /had all of its responses/],
  ["a second result", [later, later], /not running/],
  [
    "a response marked as deferred",
    [later, encodeDecoupledResponse({ isFinal: true, response: { status: 2, count: 0, text: "", outputs: [] } })],
    /marked as deferred/,
  ],
  [
    "too many requests for space",
    [later, ...Array.from({ length: 17 }, (_, index) => encodeSpaceRequest(1, [64n], index + 1))],
    /too often/,
  ],
];

for (const [what, frames, pattern] of lateAttacks) {
  test(`${what} from a model that is not decoupled: the worker is terminated, the request ends, all memory is released`, async () => {
    await using hostile = await openHostileInstance();
    const running = run(hostile);
    await send(hostile, Buffer.concat(frames));
    assert.match(await hostile.worker.ended, pattern);
    const end = await endOf(running);
    if (end !== null && !(end instanceof InferenceError)) releaseResponse(end);
    assert.deepEqual([hostile.arena.usedBytes, hostile.worker.lent.count], [0, 0]);
  });
}

test("the request ends with its final response, sent after the result or before it", async () => {
  for (const frames of [
    [plain(), final, released],
    [plain(), released, final],
    [released, plain(true)],
  ]) {
    await using hostile = await openHostileInstance({ isDecoupled: true });
    const running = run(hostile);
    for (const frame of frames) await send(hostile, frame);
    assert.ok(!((await endOf(running)) instanceof InferenceError));
    assert.equal(running.results.filter((reply) => reply !== null).length, 1);
    assert.equal(hostile.arena.usedBytes, 0);
  }
});

test("consumed responses return credit, unconsumed ones do not", async () => {
  await using hostile = await openHostileInstance({ isDecoupled: true });
  const received: Buffer[] = [];
  hostile.socket.on("data", (chunk: Buffer) => received.push(chunk));
  const running = run(hostile);
  await send(hostile, Buffer.concat(Array.from({ length: 16 }, () => plain())));
  while (running.results.length < 16) await new Promise((resolve) => setImmediate(resolve));
  for (const consumed of running.untaken.splice(0, 8)) consumed();
  const credit = () => {
    const bytes = Buffer.concat(received);
    const at = bytes.length - 16;
    return at >= 0 && bytes.readUInt16LE(at + 4) === kinds.credit ? bytes.readUInt16LE(at + 6) : 0;
  };
  while (credit() === 0) await new Promise((resolve) => setImmediate(resolve));
  assert.equal(credit(), 8);
  await send(hostile, Buffer.concat(Array.from({ length: 9 }, () => plain())));
  assert.match(await hostile.worker.ended, /credit/);
  assert.equal(running.results.length, 24);
  await endOf(running);
});

test("the responses of a cancelled request are released, and it ends with the worker's final frame", async () => {
  await using hostile = await openHostileInstance({ isDecoupled: true });
  const running = run(hostile);
  await send(hostile, Buffer.concat([released, encodeSpaceRequest(1, [64n], 1)]));
  await running.execution;
  hostile.instance.abandonRequest(running.request);
  await send(hostile, Buffer.concat([inSpace(1, 2), final]));
  await endOf(running);
  assert.deepEqual(running.results, []);
  assert.equal(hostile.arena.usedBytes, 0);
});

test("memory reserved for a response that was never sent is released when its execution ends", async () => {
  await using hostile = await openHostileInstance({ isDecoupled: true });
  const running = run(hostile);
  await send(hostile, Buffer.concat([encodeSpaceRequest(1, [64n], 1), final, released]));
  await endOf(running);
  assert.deepEqual([hostile.arena.usedBytes, hostile.worker.lent.count], [0, 0]);
});
