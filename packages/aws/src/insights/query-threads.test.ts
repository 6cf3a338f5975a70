import assert from "node:assert/strict";
import { test } from "node:test";
import { QueryLimitExceeded } from "./aggregation.ts";
import { runQuery } from "./query-threads.ts";
import type { QueryEvent } from "./query-record.ts";

const event = (message: string): QueryEvent => ({
  timestampMs: 0,
  ingestedMs: 0,
  message,
  stream: "s",
  log: "g",
  pointer: "p",
});
const query = (text: string) => ({ text, limit: 10_000, nowMs: 0 });
const never = new AbortController().signal;

async function* batches(count: number, messages: readonly string[], input: { count: number } = { count: 0 }) {
  for (; input.count < count; input.count++) yield messages.map(event);
}

test("a thread runs a query over all batches of events", async () => {
  const { rows, recordsMatched } = await runQuery(
    query("filter @message = 'a' | stats count(*) as n"),
    batches(50, ["a", "b"]),
    never,
  );
  assert.deepEqual([rows, recordsMatched], [[[["n", "50"]]], 50]);
});

test("a query that reaches a limit fails with that limit, and one whose source fails with the source's error", async () => {
  const many = Array.from({ length: 10_001 }, (_, index) => String(index));
  await assert.rejects(runQuery(query("stats count(*) by @message"), batches(1, many), never), QueryLimitExceeded);
  async function* failing(): AsyncGenerator<readonly QueryEvent[]> {
    yield [event("a")];
    throw new Error("no such file");
  }
  await assert.rejects(runQuery(query("limit 1"), failing(), never), /no such file/);
});

test("an abort ends the thread amid an expression, and events are read no faster than the thread consumes them", async () => {
  const aborter = new AbortController();
  const input = { count: 0 };
  const slow = ["x".repeat(250_000)];
  const running = runQuery(
    query(`filter @message like /(?:${"(x?){30}".repeat(14)}y|z)/`),
    batches(1000, slow, input),
    aborter.signal,
  );
  const ended = running.then(
    () => true,
    () => true,
  );
  const nextTick = () => new Promise<boolean>((resolve) => setImmediate(() => resolve(false)));
  while (input.count < 1) assert(!(await Promise.race([ended, nextTick()])), "it ended before");
  aborter.abort(new Error("too late"));
  await assert.rejects(running, /too late/);
  assert(input.count < 10, `${input.count} batches were read`);
});
