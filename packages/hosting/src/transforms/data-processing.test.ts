import assert from "node:assert/strict";
import { test } from "node:test";
import { EventLoopQueue } from "@galatea/base";
import { filterRows, processResponse, type DataProcessing } from "./data-processing.ts";
import { parseJsonPath } from "./json-path.ts";

const chunkBytes = 64 * 1024;

const joining: DataProcessing = {
  format: "jsonlines",
  inputFilter: parseJsonPath("$.x"),
  outputFilter: parseJsonPath("$['id','SageMakerOutput']"),
  joinsInput: true,
};
const rowsOf = (count: number, row: (index: number) => string) =>
  Buffer.from(Array.from({ length: count }, (_, index) => `${row(index)}\n`).join(""));
const inputs = (count: number) => rowsOf(count, (index) => `{"id":${index},"x":[${index},"${"a".repeat(40)}"]}`);
const responses = (count: number) => rowsOf(count, (index) => `{"label":"ä${index}"}`);

function turnsOf() {
  const loopQueue = new EventLoopQueue();
  const abort = new AbortController();
  return { loopQueue, signal: abort.signal, abort };
}

/** Returns the number of event loop ticks during a task. */
async function roundsOf<Result>(task: Promise<Result>): Promise<{ result: Result; rounds: number }> {
  let rounds = 0;
  let isOver = false;
  const round = () => {
    if (isOver) return;
    rounds += 1;
    setImmediate(round);
  };
  setImmediate(round);
  const result = await task;
  isOver = true;
  return { result, rounds };
}

test("the rows of a long response are joined in order, in chunks that yield to the event loop", async () => {
  const count = 30_000;
  const [reply, rows] = [responses(count), inputs(count)];
  const { result, rounds } = await roundsOf(processResponse(reply, rows, joining, turnsOf()));
  const lines = result.toString("utf8").trimEnd().split("\n");
  assert.equal(lines.length, count);
  for (const index of [0, 1, 12_345, count - 1])
    assert.deepEqual(JSON.parse(lines[index]!), { id: index, SageMakerOutput: { label: `ä${index}` } });
  const chunkCount = (reply.length + rows.length) / chunkBytes;
  assert.ok(rounds >= chunkCount - 3, `${rounds} ticks of the event loop for ${chunkCount} chunks`);
});

test("an unsplit payload is filtered in chunks, and without filters its bytes are unchanged", async () => {
  const count = 30_000;
  const payload = inputs(count);
  const { result, rounds } = await roundsOf(filterRows(payload, joining, turnsOf()));
  assert.equal(result.recordCount, count);
  assert.deepEqual(result.body.toString().split("\n")[12_345], `[12345,"${"a".repeat(40)}"]`);
  assert.ok(rounds >= payload.length / chunkBytes - 3, `${rounds} rounds of the event loop`);
  const bytes = Buffer.from([0xff, 0x2c, 0xc3, 0x0a]);
  const csv: DataProcessing = { format: "csv", inputFilter: null, outputFilter: null, joinsInput: true };
  assert.deepEqual((await filterRows(bytes, csv, turnsOf())).body, bytes);
});

test("joining stops at the next chunk when the job is aborted", async () => {
  const of = turnsOf();
  const processed = processResponse(responses(30_000), inputs(30_000), joining, of);
  of.abort.abort(new Error("stopped"));
  await assert.rejects(processed, /stopped/);
});

test("a response with another number of rows than its payload is rejected", async () => {
  await assert.rejects(
    processResponse(responses(2), inputs(3), joining, turnsOf()),
    /the container returned 2 rows for 3: the input cannot be joined to its output/,
  );
});
