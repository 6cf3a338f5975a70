import assert from "node:assert/strict";
import { test } from "node:test";
import { ByteBudget, ByteLease, EventLoopQueue } from "@galatea/base";
import { noParameters } from "../../inference/index.ts";
import { FakeArena } from "../fake-arena.ts";
import { readChunkBytes, scanInChunks } from "./in-chunks.ts";
import { parseInferHeader } from "./infer-header.ts";
import { ResponseEncoder } from "./infer-response.ts";
import { placeInputsInChunks } from "./place-inputs.ts";

const picture = Array.from({ length: 3 * 224 * 224 }, (_, index) => ((index * 7919) % 256) / 255);
const body = Buffer.from(
  JSON.stringify({
    inputs: [
      { name: "A", datatype: "FP32", shape: [1, picture.length], data: [picture] },
      { name: "B", datatype: "INT8", shape: [2], data: [1, 2] },
    ],
  }),
);

/** Returns the number of event loop ticks that pass until `work` has completed. */
async function turnsOf(work: () => Promise<unknown>): Promise<number> {
  let count = 0;
  let ended = false;
  const release = () => {
    count++;
    if (!ended) setImmediate(release);
  };
  setImmediate(release);
  await work();
  ended = true;
  return count;
}

function setUp() {
  const budget = new ByteBudget(64 * 2 ** 20);
  const memory = new ByteLease(budget);
  const arena = new FakeArena(16 * 2 ** 20, budget);
  const options = { modelName: "m", tailBytes: 0, arena, memory } as const;
  const disconnect = new AbortController();
  return {
    memory,
    arena,
    options,
    leaving: disconnect,
    of: { loopQueue: new EventLoopQueue(), signal: disconnect.signal },
  };
}

test("an image's numbers, and the JSON around them, are read in chunks, one for each event loop tick", async () => {
  const { memory, arena, options, of } = setUp();
  const chunkCount = Math.floor(body.length / readChunkBytes);
  let tensors: readonly { readonly data: Uint8Array; readonly block: { release(): void } | null }[] = [];
  const tickCount = await turnsOf(async () => {
    const header = parseInferHeader(await scanInChunks(body, of), 2 ** 26, memory);
    tensors = (await placeInputsInChunks(header, options, of)).tensors;
  });
  assert.ok(tickCount >= 2 * chunkCount, `${tickCount} ticks for ${chunkCount} chunks, each checked and read`);
  const [a, b] = tensors;
  assert.deepEqual(new Float32Array(a!.data.slice().buffer), Float32Array.from(picture));
  assert.deepEqual([...b!.data], [1, 2]);
  for (const { block } of tensors) block?.release();
  assert.equal(arena.usedBytes, 0);
});

test("long JSON that is truncated is rejected with the same text as short JSON", async () => {
  const { of } = setUp();
  await assert.rejects(scanInChunks(body.subarray(0, -3), of), /failed to parse the request JSON buffer: .* at \d+$/);
});

test("a client that disconnects while its numbers are read leaves nothing allocated", async () => {
  const { memory, arena, options, leaving, of } = setUp();
  const header = parseInferHeader(await scanInChunks(body, of), 2 ** 26, memory);
  const placed = placeInputsInChunks(header, options, of);
  assert.ok(arena.usedBytes > 0);
  leaving.abort(new Error("gone"));
  await assert.rejects(placed, /gone/);
  assert.equal(arena.usedBytes, 0);
});

test("an image's numbers are printed in chunks, interleaved with small responses, with the same text as at once", async () => {
  const { of } = setUp();
  const encoder = new ResponseEncoder();
  const data = new Uint8Array(Float32Array.from(picture).buffer);
  const output = { name: "O", datatype: "FP32", shape: [picture.length], data, block: null } as const;
  const response = { modelName: "m", modelVersion: "1", outputs: [output], parameters: noParameters };
  const requested = { id: "", outputs: null, binaryOutputs: false, outputLabels: () => [], batches: () => false };
  const small = { ...response, outputs: [] };
  let small1: unknown;
  let encoded: Awaited<ReturnType<ResponseEncoder["encodeInChunks"]>> | null = null;
  const tickCount = await turnsOf(async () => {
    const printed = encoder.encodeInChunks(response, requested, of);
    await of.loopQueue.next(of.signal);
    small1 = encoder.encode(small, requested).json;
    encoded = await printed;
  });
  assert.ok(tickCount > 30, `${tickCount} turns`);
  assert.deepEqual(small1, encoder.encode(small, requested).json);
  assert.deepEqual(encoded, encoder.encode(response, requested));
});
