import assert from "node:assert/strict";
import { test } from "node:test";
import { EventLoopQueue } from "@galatea/base";
import { filterRows, processResponse, type DataProcessing } from "./data-processing.ts";
import { parseJsonPath } from "./json-path.ts";

const pieceBytes = 64 * 1024;

const joining: DataProcessing = {
  format: "jsonlines",
  inputFilter: parseJsonPath("$.x"),
  outputFilter: parseJsonPath("$['id','SageMakerOutput']"),
  joinsInput: true,
};
const rowsOf = (count: number, row: (index: number) => string) =>
  Buffer.from(Array.from({ length: count }, (_, index) => `${row(index)}\n`).join(""));
const inputs = (count: number) => rowsOf(count, (index) => `{"id":${index},"x":[${index},"${"a".repeat(40)}"]}`);
const answers = (count: number) => rowsOf(count, (index) => `{"label":"ä${index}"}`);

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

test("rows of a long answer are joined in pieces, between which the event loop has its turn, and all in their order", async () => {
  const count = 30_000;
  const [answer, rows] = [answers(count), inputs(count)];
  const { result, rounds } = await roundsOf(processResponse(answer, rows, joining, turnsOf()));
  const lines = result.toString("utf8").trimEnd().split("\n");
  assert.equal(lines.length, count);
  for (const index of [0, 1, 12_345, count - 1])
    assert.deepEqual(JSON.parse(lines[index]!), { id: index, SageMakerOutput: { label: `ä${index}` } });
  const pieces = (answer.length + rows.length) / pieceBytes;
  assert.ok(rounds >= pieces - 3, `${rounds} rounds of the event loop for ${pieces} pieces`);
});

test("a payload that is not split is filtered in pieces, and its bytes stay what they are where no filter looks at them", async () => {
  const count = 30_000;
  const payload = inputs(count);
  const { result, rounds } = await roundsOf(filterRows(payload, joining, turnsOf()));
  assert.equal(result.recordCount, count);
  assert.deepEqual(result.body.toString().split("\n")[12_345], `[12345,"${"a".repeat(40)}"]`);
  assert.ok(rounds >= payload.length / pieceBytes - 3, `${rounds} rounds of the event loop`);
  const bytes = Buffer.from([0xff, 0x2c, 0xc3, 0x0a]);
  const csv: DataProcessing = { format: "csv", inputFilter: null, outputFilter: null, joinsInput: true };
  assert.deepEqual((await filterRows(bytes, csv, turnsOf())).body, bytes);
});

test("a job that is stopped goes on with no further piece", async () => {
  const of = turnsOf();
  const processed = processResponse(answers(30_000), inputs(30_000), joining, of);
  of.abort.abort(new Error("stopped"));
  await assert.rejects(processed, /stopped/);
});

test("an answer with another number of rows than the payload has is refused", async () => {
  await assert.rejects(
    processResponse(answers(2), inputs(3), joining, turnsOf()),
    /the container returned 2 rows for 3: the input cannot be joined to its output/,
  );
});
