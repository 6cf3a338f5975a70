import assert from "node:assert/strict";
import { test } from "node:test";
import { InferenceError } from "@galatea/base";
import { createDirectScheduler } from "./direct-scheduler.ts";
import {
  cancelledOutcome,
  CountedMemory,
  ManualClock,
  StubInstance,
  responseOf,
  send,
  tensorOf,
  twoTicks,
} from "./scheduling-fixtures.ts";

const options = () => ({ clock: new ManualClock(), queueLengthMax: 100 });

test("requests go one at a time to the least loaded instance, round robin among equals, and wait in order", async () => {
  const [first, second] = [new StubInstance("m_0_0", 2), new StubInstance("m_0_1")];
  const scheduler = createDirectScheduler([first, second], options());
  const sent = ["a", "b", "c", "d", "e"].map((id) => send(scheduler, id));
  assert.deepEqual([first.log, second.log], [["a", "c"], ["b"]]);
  assert.equal(scheduler.pendingCount, 3);
  await second.end();
  assert.deepEqual(second.log, ["b", "d"]);
  await first.end();
  await first.end();
  await first.end();
  await second.end();
  assert.deepEqual(
    sent.map(({ outcome, releaseCount }) => [outcome, releaseCount]),
    [
      ["a", 1],
      ["b", 1],
      ["c", 1],
      ["d", 1],
      ["e", 1],
    ],
  );
  const { record } = sent[0] ?? assert.fail();
  assert.deepEqual([record.computeInferNs, record.executedBatchSize, record.countsExecution], [2, 1, true]);
});

test("a queued request that is cancelled settles at once with CANCELLED and is never executed", async () => {
  const instance = new StubInstance();
  const scheduler = createDirectScheduler([instance], options());
  const sent = ["a", "b", "c"].map((id) => send(scheduler, id));
  sent[1]?.controller.abort();
  await twoTicks();
  assert.deepEqual([sent[1]?.outcome, sent[1]?.releaseCount, sent[1]?.record.startedNs], [cancelledOutcome("b"), 1, 0]);
  await instance.end();
  await instance.end();
  assert.deepEqual(instance.log, ["a", "c"]);
});

test("an executing request that is cancelled settles at once; its inputs and its response are released when the execution ends", async () => {
  const instance = new StubInstance();
  const memory = new CountedMemory();
  const scheduler = createDirectScheduler([instance], options());
  const sent = send(scheduler, "a");
  sent.controller.abort();
  await twoTicks();
  assert.deepEqual([sent.outcome, sent.releaseCount], [cancelledOutcome("a"), 0]);
  assert.deepEqual(instance.cancelled, ["a"]);
  await instance.end((id) => responseOf(id, [tensorOf("B", [1], memory.block())]));
  assert.deepEqual([sent.releaseCount, memory.live, memory.faults], [1, 0, []]);
});

test("a failed execution is counted as an execution; a request that was never executed is not", async () => {
  const instance = new StubInstance();
  const scheduler = createDirectScheduler([instance], options());
  const [failed, crashed] = ["a", "b"].map((id) => send(scheduler, id));
  await instance.end(() => new InferenceError("INTERNAL", "raised"));
  await instance.crash(new Error("a bug"));
  assert.deepEqual([failed?.outcome, failed?.record.countsExecution], ["INTERNAL raised", true]);
  assert.deepEqual([crashed?.outcome, crashed?.record.countsExecution], ["INTERNAL a bug", false]);
});

test("a request whose signal is already aborted is not accepted", async () => {
  const instance = new StubInstance();
  const scheduler = createDirectScheduler([instance], options());
  const sent = send(scheduler, "a", { signal: AbortSignal.abort() });
  await twoTicks();
  assert.deepEqual([sent.outcome, sent.releaseCount, instance.log], [cancelledOutcome("a"), 1, []]);
});

test("a request beyond the server's limit is rejected with Triton's text, after the request id", async () => {
  const instance = new StubInstance();
  const scheduler = createDirectScheduler([instance], { clock: new ManualClock(), queueLengthMax: 1 });
  const sent = ["a", "b", "c", ""].map((id) => send(scheduler, id));
  await twoTicks();
  assert.equal(sent[2]?.outcome, "UNAVAILABLE [request id: c] Exceeds maximum queue size");
  assert.equal(sent[3]?.outcome, "UNAVAILABLE [request id: <id_unknown>] Exceeds maximum queue size");
  assert.equal(sent[2]?.releaseCount, 1);
});

test("an instance that throws, or responds to the wrong number of requests, fails only its request", async () => {
  const instance = new StubInstance();
  const scheduler = createDirectScheduler([instance], options());
  const sent = ["a", "b", "c"].map((id) => send(scheduler, id));
  await instance.crash(new Error("bug"));
  await instance.end(() => new InferenceError("NOT_FOUND", "boom"));
  await instance.end();
  assert.deepEqual(
    sent.map(({ outcome }) => outcome),
    ["INTERNAL bug", "NOT_FOUND boom", "c"],
  );
});

test("closing rejects new requests, executes the queued ones, and ends with the last execution", async () => {
  const instance = new StubInstance();
  const scheduler = createDirectScheduler([instance], options());
  const [a, b] = [send(scheduler, "a"), send(scheduler, "b")];
  let closed = false;
  void scheduler.close().then(() => (closed = true));
  const late = send(scheduler, "late");
  a.controller.abort();
  await twoTicks();
  assert.equal(
    late.outcome,
    "UNAVAILABLE [request id: late] Server is stopping, scheduler for model has stopped accepting new inference requests",
  );
  await instance.end();
  assert.deepEqual([closed, b.outcome], [false, "waiting"]);
  await instance.end();
  assert.deepEqual([closed, b.outcome], [true, "b"]);
});
