import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import { AwsError, silentLogger } from "@galatea/base";
import { LogQueries, type QueryInput } from "./log-queries.ts";
import type { LogReadOptions } from "@galatea/hosting";

/** A clock whose timers fire when a test calls them. */
class HandTimers {
  readonly timers = new Set<() => void>();
  epochMs = () => 5000;
  monotonicNs = () => 5e9;
  timer(_delayMs: number, fire: () => void): Disposable {
    this.timers.add(fire);
    return { [Symbol.dispose]: () => void this.timers.delete(fire) };
  }
}

/** Returns a store with one stream of `eventCount` events. Its pages can be read once `gate` resolves. */
function store(eventCount: number, gate: Promise<void> = Promise.resolve()) {
  const reads: LogReadOptions[] = [];
  return {
    reads,
    streamNames: async () => ["s"],
    async read(_group: string, _stream: string, options: LogReadOptions) {
      await gate;
      reads.push(options);
      const from = Number(options.token ?? 0);
      const count = Math.min(options.eventsMax, eventCount - from);
      const events = Array.from({ length: count }, (_, index) => ({
        timestampMs: from + index,
        message: "m",
        id: String(from + index),
      }));
      return { events, forwardToken: String(from + count), backwardToken: "0" };
    },
  };
}

const requested: QueryInput = {
  text: "stats count(*) as n",
  groups: ["g"],
  accountId: "1",
  startMs: 0,
  endMs: 1e6,
  limit: 10_000,
};

async function ended(queries: LogQueries, id: string) {
  for (;;) {
    const query = queries.get(id);
    if (query === null || (query.state.at !== "Scheduled" && query.state.at !== "Running")) return query;
    await new Promise((resolve) => setImmediate(resolve));
  }
}

const opened = (from: ReturnType<typeof store>, clock = new HandTimers()) =>
  new LogQueries({ store: from, clock, logger: silentLogger, newId: randomUUID });

test("a Logs Insights query goes from Scheduled to Complete, reads all pages of its time range, and has rows and statistics", async () => {
  const from = store(4500);
  await using queries = opened(from);
  const id = queries.start(requested);
  assert.equal(queries.get(id)?.state.at, "Scheduled");
  const query = await ended(queries, id);
  assert.deepEqual(query?.state, { at: "Complete", result: { rows: [[["n", "4500"]]], recordsMatched: 4500 } });
  assert.deepEqual(query?.statistics, { recordsScanned: 4500, bytesScanned: 4500 });
  assert.deepEqual([from.reads.length, from.reads[0]?.startTimeMs, from.reads[0]?.endTimeMs], [4, 0, 1e6]);
  assert.equal(queries.stop(id), false);
});

test("a stopped query is Cancelled, a query beyond its time limit is Timeout, and one beyond its row limit is Failed", async () => {
  const gate = Promise.withResolvers<void>();
  const clock = new HandTimers();
  await using queries = opened(store(10, gate.promise), clock);
  const stopped = queries.start(requested);
  assert.equal(queries.stop(stopped), true);
  const late = queries.start(requested);
  for (const fire of clock.timers) fire();
  gate.resolve();
  assert.equal((await ended(queries, late))?.state.at, "Timeout");
  assert.equal((await ended(queries, stopped))?.state.at, "Cancelled");
  await using many = opened(store(10_001));
  const large = await ended(many, many.start({ ...requested, text: "stats count(*) by @timestamp" }));
  assert.equal(large?.state.at, "Failed");
});

test("at most 30 queries run at a time, and the newest 100 ended queries are kept", async () => {
  const gate = Promise.withResolvers<void>();
  await using queries = opened(store(0, gate.promise));
  const ids = Array.from({ length: 30 }, () => queries.start(requested));
  assert.throws(
    () => queries.start(requested),
    (error) => error instanceof AwsError && error.code === "LimitExceededException",
  );
  for (const id of ids) queries.stop(id);
  for (let index = 0; index < 100; index++) queries.stop(queries.start(requested));
  assert.equal(queries.list().length, 100);
  assert.equal(queries.get(ids[0] as string), null);
  gate.resolve();
});
