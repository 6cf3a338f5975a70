import assert from "node:assert/strict";
import { PassThrough, Readable } from "node:stream";
import { test } from "node:test";
import * as fc from "fast-check";
import { readToBuffer } from "./read-to-buffer.ts";

const tooLong = () => new RangeError("too long");

test("a body in any chunks is read completely, up to the limit and not a byte further", async () => {
  const segments = fc.array(fc.uint8Array({ maxLength: 20 }), { maxLength: 8 });
  await fc.assert(
    fc.asyncProperty(segments, fc.integer({ min: 0, max: 100 }), async (drawn, bytesMax) => {
      const complete = Buffer.concat(drawn);
      const source = new PassThrough();
      const reading = readToBuffer(source, bytesMax, tooLong);
      for (const chunk of drawn) source.write(chunk);
      source.end();
      if (complete.length > bytesMax) await assert.rejects(reading, RangeError);
      else assert.deepEqual(await reading, complete);
    }),
  );
});

test("a body that arrives as one chunk is not copied", async () => {
  const segment = Buffer.from("one piece");
  const found = await readToBuffer(Readable.from([segment], { objectMode: false }), 100, tooLong);
  assert.equal(found.buffer, segment.buffer);
});

test("a stream that fails, has failed, or was read before is an error, not an end", async () => {
  const failing = new PassThrough();
  const failed = readToBuffer(failing, 100, tooLong);
  failing.write("part");
  failing.destroy(new Error("reset"));
  await assert.rejects(failed, /^Error: reset$/);
  const cut = new PassThrough();
  const broken = readToBuffer(cut, 100, tooLong);
  cut.destroy();
  await assert.rejects(broken, /the body is incomplete/);
  await assert.rejects(readToBuffer(cut, 100, tooLong), /the body is incomplete/);
  const read = Readable.from(["all"], { objectMode: false });
  await readToBuffer(read, 100, tooLong);
  await assert.rejects(readToBuffer(read, 100, tooLong), /the body is incomplete/);
});

test("the rest of a body that is too long stays in its source, which is not read further", async () => {
  const source = new PassThrough();
  const reading = readToBuffer(source, 3, tooLong);
  source.write("four");
  await assert.rejects(reading, RangeError);
  assert.equal(source.isPaused(), true);
  assert.equal(source.destroyed, false);
  source.end("more");
  assert.equal(Buffer.concat(await source.toArray()).toString(), "more");
});
