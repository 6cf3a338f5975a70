import assert from "node:assert/strict";
import { test } from "node:test";
import { ByteBudget, ByteLease, EventLoopQueue, systemClock } from "@galatea/base";
import { FakeArena } from "../fake-arena.ts";
import { FakeEngine } from "../fake-engine.ts";
import type { InferMessage, MessageInput } from "./infer-message.ts";
import { decodeInferRequest, decodeInChunks, isLongMessage } from "./infer-request.ts";
import { eventually } from "@galatea/base/core/eventually-fixture.ts";

const refused: readonly [what: string, input: Partial<MessageInput>][] = [
  ["more elements than there can be", { shape: [2 ** 40, 2 ** 40] }],
  ["a datatype that does not exist", { datatype: "FP33" }],
];
for (const [what, input] of refused) {
  test(`an input of ${what} leaves nothing of its raw contents in the arena`, () => {
    const budget = new ByteBudget(2 ** 20);
    const arena = new FakeArena(2 ** 20, budget);
    const engine = new FakeEngine();
    engine.add("m", { inputs: { IN: ["FP32", [-1]] }, outputs: { OUT: ["FP32", [-1]] }, run: () => [] });
    const block = arena.allocate(4);
    const message: InferMessage = {
      modelName: "m",
      modelVersion: "",
      id: "",
      parameters: new Map(),
      inputs: [{ name: "IN", datatype: "FP32", shape: [1], parameters: new Map(), contents: [], ...input }],
      outputs: [],
      raw: [{ bytes: block.bytes, block }],
      memory: new ByteLease(budget),
    };
    const model = { ...engine.open({ namespace: "", modelName: "m", modelVersion: "" }), arena };
    const { signal } = new AbortController();
    const options = { model, signal, clock: systemClock, receivedNs: 0, forwarded: { rawHeaders: [], pattern: null } };
    assert.throws(() => decodeInferRequest(message, options), { code: "INVALID_ARG" });
    assert.equal(arena.usedBytes, 0);
  });
}

/** Returns a message with `count` booleans, each one byte of `bool_contents`, and the decoder's arguments. */
function longMessage(count: number) {
  const budget = new ByteBudget(2 ** 26);
  const arena = new FakeArena(2 ** 26, budget);
  const engine = new FakeEngine();
  engine.add("m", { inputs: { IN: ["BOOL", [-1]] }, outputs: { OUT: ["BOOL", [-1]] }, run: () => [] });
  const packed = Buffer.concat([Buffer.from([0x0a, 0x80, 0x80, 0x80, 0x02]), Buffer.alloc(count, 1)]);
  assert.equal(count, 2 * 128 ** 3);
  const contents = [{ bytes: packed, at: 0, end: packed.length }];
  const message: InferMessage = {
    modelName: "m",
    modelVersion: "",
    id: "",
    parameters: new Map(),
    inputs: [{ name: "IN", datatype: "BOOL", shape: [count], parameters: new Map(), contents }],
    outputs: [],
    raw: [],
    memory: new ByteLease(budget),
  };
  const model = { ...engine.open({ namespace: "", modelName: "m", modelVersion: "" }), arena };
  const disconnect = new AbortController();
  const options = {
    model,
    signal: disconnect.signal,
    clock: systemClock,
    receivedNs: 0,
    forwarded: { rawHeaders: [], pattern: null },
  };
  return { message, options, leaving: disconnect, arena };
}

const longCount = 2 * 128 ** 3;

test("a long message is decoded in chunks of less than a millisecond, each in its own event loop tick", async () => {
  const { message, options } = longMessage(longCount);
  assert.ok(isLongMessage(message));
  let turnCount = 0;
  let isOver = false;
  const release = () => {
    turnCount++;
    if (!isOver) setImmediate(release);
  };
  setImmediate(release);
  const { request } = await decodeInChunks(message, options, new EventLoopQueue());
  isOver = true;
  // The decoder reads the elements twice (once to count them), 32 KiB in each event loop tick.
  assert.ok(turnCount >= (2 * longCount) / 2 ** 15, `${turnCount} turns`);
  assert.deepEqual(Buffer.from(request.inputs[0]!.data), Buffer.alloc(longCount, 1));
  request.inputs[0]!.block!.release();
});

test("a client that disconnects while its long message is decoded leaves nothing in the arena", async () => {
  const { message, options, leaving, arena } = longMessage(longCount);
  const decoded = decodeInChunks(message, options, new EventLoopQueue());
  await eventually(() => arena.usedBytes > 0);
  leaving.abort(new Error("gone"));
  await assert.rejects(decoded, /gone/);
  assert.equal(arena.usedBytes, 0);
});
