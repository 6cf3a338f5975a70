import assert from "node:assert/strict";
import { test } from "node:test";
import { discardChunk, discardChunks } from "./body.ts";

test("a discarded chunk frees its memory, unless other chunks share it", () => {
  const complete = Buffer.allocUnsafeSlow(64 * 1024).fill(7);
  const segment = complete.subarray(0, 32 * 1024);
  discardChunk(segment);
  assert.equal(
    segment.every((byte) => byte === 7),
    true,
  );
  discardChunk(complete);
  assert.equal(complete.byteLength, 0);
  const pooled = Buffer.from("small");
  discardChunk(pooled);
  assert.equal(pooled.toString(), "small");
});

test("chunks with their own buffers free all of their memory, full or not", () => {
  const full = Buffer.allocUnsafeSlow(64 * 1024);
  const chunk = Buffer.allocUnsafeSlow(64 * 1024).subarray(0, 100);
  discardChunks([full, chunk]);
  assert.deepEqual([full.byteLength, chunk.byteLength], [0, 0]);
});
