import assert from "node:assert/strict";
import { Writable } from "node:stream";
import { test } from "node:test";
import { setImmediate as endOfTurn } from "node:timers/promises";
import { modelOutput } from "./model-output.ts";

test("a line of model output is printed unchanged, and lines that a slow reader does not accept are dropped and counted", async () => {
  const written: string[] = [];
  let consumed: () => void = () => {};
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      written.push(chunk.toString());
      consumed = done;
    },
  });
  const print = modelOutput(stream);
  print('{"level": "info"}');
  await endOfTurn();
  assert.deepEqual(written, ['{"level": "info"}\n']);
  const long = "x".repeat(4000);
  for (let index = 0; index < 1000; index++) print(long);
  await endOfTurn();
  assert.ok(stream.writableLength < 1_100_000, String(stream.writableLength));
  while (stream.writableLength > 0) consumed();
  print("afterwards");
  await endOfTurn();
  consumed();
  assert.match(written.at(-2)!, /^\.\.\. \d{3} lines of model output dropped/);
  assert.equal(written.at(-1), "afterwards\n");
});

test("the lines of one event loop tick are printed in one write", async () => {
  const writes: number[] = [];
  const stream = new Writable({
    writev(chunks, done) {
      writes.push(chunks.length);
      done();
    },
  });
  const print = modelOutput(stream);
  for (const line of ["a", "b", "c"]) print(line);
  await endOfTurn();
  print("d");
  await endOfTurn();
  assert.deepEqual(writes, [3, 1]);
});
