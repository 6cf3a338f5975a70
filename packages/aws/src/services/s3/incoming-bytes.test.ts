import assert from "node:assert/strict";
import { test } from "node:test";
import { freeChunk } from "./incoming-bytes.ts";

test("a chunk that owns its memory is freed; a chunk that shares its memory is not", () => {
  const own = Buffer.allocUnsafeSlow(2 ** 16);
  freeChunk(own);
  assert.equal(own.byteLength, 0);
  const complete = Buffer.allocUnsafeSlow(10).fill(7);
  freeChunk(complete.subarray(0, 9));
  freeChunk(complete.subarray(1));
  const pooled = Buffer.from("pooled");
  freeChunk(pooled);
  assert.deepEqual([complete.toString("hex"), pooled.toString()], ["07".repeat(10), "pooled"]);
});
