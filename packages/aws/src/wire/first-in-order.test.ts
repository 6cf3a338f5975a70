import assert from "node:assert/strict";
import { test } from "node:test";
import { EventLoopQueue } from "@galatea/base";
import { firstInOrder } from "./first-in-order.ts";

const signal = new AbortController().signal;

test("the first rows in order are found within a limited number of rows per tick of the event loop, for any number of concurrent listings", async () => {
  const loopQueue = new EventLoopQueue();
  let touched = 0;
  let touchedBefore = 0;
  let mostInARound = 0;
  let isOver = false;
  const look = () => {
    mostInARound = Math.max(mostInARound, touched - touchedBefore);
    touchedBefore = touched;
    if (!isOver) setImmediate(look);
  };
  look();
  const count = 10_000;
  const rowsPerBatch = 1000;
  async function* batches(): AsyncGenerator<readonly number[]> {
    for (let from = 0; from < count; from += rowsPerBatch) {
      touched += rowsPerBatch;
      yield Array.from({ length: rowsPerBatch }, (_, at) => ((from + at) * 7919) % count);
    }
  }
  const list = (after: number) =>
    firstInOrder(
      batches(),
      { entryOf: (row) => (row > after ? row : null), order: (a, b) => a - b, countMax: 101 },
      () => loopQueue.next(signal),
    );
  const pages = await Promise.all([list(-1), list(99), list(9_949), list(count)]);
  isOver = true;
  const numbered = (from: number, length: number) => Array.from({ length }, (_, at) => from + at);
  assert.deepEqual(pages, [numbered(0, 101), numbered(100, 101), numbered(9_950, 50), []]);
  assert.equal(touched, 4 * count);
  assert.ok(mostInARound <= rowsPerBatch, `${mostInARound} rows in one tick of the event loop`);
});

test("entries that cannot be among the first are dropped: each entry is compared a few times, for any number of rows", async () => {
  const count = 50_000;
  let compared = 0;
  const order = (a: number, b: number) => {
    compared += 1;
    return a - b;
  };
  async function* batches() {
    yield Array.from({ length: count }, (_, at) => (at * 7919) % count);
  }
  const first = await firstInOrder(batches(), { entryOf: (row) => row, order, countMax: 10 }, async () => {});
  assert.deepEqual(first, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  assert.ok(compared < 2 * count, `${compared} comparisons`);
});
