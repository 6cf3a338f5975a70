import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { InferenceError, EventLoopQueue } from "@galatea/base";
import { JsonScanner } from "../../tensor/index.ts";
import { decodedBase64, decodeChunkBytes } from "./base64-text.ts";

const refusal = () => new InferenceError("INVALID_ARG", "no base64");

function decoded(json: string, signal = new AbortController().signal): Promise<Uint8Array> {
  return decodedBase64(new JsonScanner(Buffer.from(json)), { loopQueue: new EventLoopQueue(), signal }, refusal);
}

test("a long text is decoded completely, one chunk for each event loop tick", async () => {
  const content = randomBytes(2_000_003);
  const text = content.toString("base64");
  let tickCount = 0;
  let isOver = false;
  const release = () => {
    tickCount += 1;
    if (!isOver) setImmediate(release);
  };
  setImmediate(release);
  const complete = await decoded(JSON.stringify(text));
  isOver = true;
  assert.ok(Buffer.from(complete).equals(content));
  assert.ok(tickCount >= text.length / decodeChunkBytes, `${tickCount} turns`);
});

test("escapes are read at any end of a chunk, with and without padding", async () => {
  for (const shift of [0, 1, 2, 3, 4, 5, 6, 7]) {
    const content = randomBytes(decodeChunkBytes + shift);
    const text = content.toString("base64");
    const at = decodeChunkBytes - shift;
    const escaped = `\\u00${(text.codePointAt(at) as number).toString(16)}`;
    const mixed = `"${text.slice(0, at)}${escaped}${text.slice(at + 1).replaceAll("/", "\\/")}"`;
    assert.ok(Buffer.from(await decoded(mixed)).equals(content), `${shift}`);
    assert.ok(Buffer.from(await decoded(mixed.replace(/=+"$/, '"'))).equals(content), `${shift} without padding`);
  }
  assert.deepEqual([...(await decoded('""'))], []);
});

test("invalid base64 is rejected in every chunk", async () => {
  const text = "A".repeat(2 * decodeChunkBytes);
  for (const wrong of ["!", "=", "\\n", "\\u000a", "\\u00e9", "\\\\", "é"]) {
    for (const at of [0, decodeChunkBytes - 1, decodeChunkBytes + 4]) {
      const json = `"${text.slice(0, at)}${wrong}${text.slice(at)}"`;
      await assert.rejects(decoded(json), { code: "INVALID_ARG", message: "no base64" }, `${wrong} at ${at}`);
    }
  }
});

test("a client that disconnects stops the decoding", async () => {
  const disconnect = new AbortController();
  const complete = decoded(JSON.stringify("A".repeat(3 * decodeChunkBytes)), disconnect.signal);
  disconnect.abort(new Error("left"));
  await assert.rejects(complete, { message: "left" });
});
