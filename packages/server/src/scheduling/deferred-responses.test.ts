/** Tests of requests to decoupled models: the execution releases a request first, and the last response settles it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { InferenceError } from "@galatea/base";
import { createDirectScheduler } from "./direct-scheduler.ts";
import { createDynamicBatchScheduler } from "./dynamic-batch-scheduler.ts";
import { type InferenceResponse } from "../inference/index.ts";
import {
  cancelledOutcome,
  CountedMemory,
  ManualClock,
  StubInstance,
  dynamicModel,
  responseOf,
  send,
  tensorOf,
  twoTicks,
} from "./scheduling-fixtures.ts";

const options = () => ({ clock: new ManualClock(), queueLengthMax: 100 });

test("a released request releases its inputs and its instance, and settles with its last response", async () => {
  const instance = new StubInstance();
  const scheduler = createDirectScheduler([instance], options());
  const [first, second] = [send(scheduler, "a"), send(scheduler, "b")];
  const end = Promise.withResolvers<InferenceError | null>();
  await instance.release([end.promise]);
  assert.deepEqual(instance.log, ["a", "b"]);
  assert.deepEqual([first.outcome, first.releaseCount, first.record.computeInferNs], ["waiting", 1, 2]);
  await instance.end();
  assert.deepEqual([first.outcome, second.outcome], ["waiting", "b"]);
  end.resolve(null);
  await twoTicks();
  assert.equal(first.outcome, "sent");
});

test("closing waits for the last responses", async () => {
  for (const make of [
    (instance: StubInstance) => createDirectScheduler([instance], options()),
    (instance: StubInstance) => createDynamicBatchScheduler([instance], dynamicModel(4), options()),
  ]) {
    const instance = new StubInstance();
    const scheduler = make(instance);
    const sent = [send(scheduler, "a"), send(scheduler, "b")];
    await twoTicks();
    const [one, other] = [
      Promise.withResolvers<InferenceError | null>(),
      Promise.withResolvers<InferenceError | null>(),
    ];
    const ends = [one.promise, other.promise];
    for (const batch of instance.log) await instance.release(ends.splice(0, batch.split(" ").length));
    let closed = false;
    void scheduler.close().then(() => (closed = true));
    one.resolve(null);
    await twoTicks();
    assert.deepEqual([sent[0]?.outcome, sent[1]?.outcome, closed], ["sent", "waiting", false]);
    other.resolve(new InferenceError("INTERNAL", "gone"));
    await twoTicks();
    assert.deepEqual([sent[1]?.outcome, closed], ["INTERNAL gone", true]);
  }
});

test("a request with outstanding responses that is cancelled or abandoned settles at once, and its instance is notified", async () => {
  const instance = new StubInstance();
  const scheduler = createDirectScheduler([instance], options());
  const first = send(scheduler, "a");
  const end = Promise.withResolvers<InferenceError | null>();
  await instance.release([end.promise]);
  const second = send(scheduler, "b");
  await instance.release([end.promise]);
  first.controller.abort();
  await twoTicks();
  assert.deepEqual([first.outcome, instance.cancelled], [cancelledOutcome("a"), ["a"]]);
  scheduler.abandon(new InferenceError("UNAVAILABLE", "over"));
  await twoTicks();
  assert.deepEqual([second.outcome, instance.cancelled], ["UNAVAILABLE over", ["a", "b"]]);
  let closed = false;
  void scheduler.close().then(() => (closed = true));
  await twoTicks();
  assert.equal(closed, false);
  end.resolve(null);
  await twoTicks();
  assert.equal(closed, true);
});

test("responses after an execution with the wrong number of outcomes are released, and closing waits for them", async () => {
  const memory = new CountedMemory();
  const instance = new StubInstance();
  const scheduler = createDirectScheduler([instance], options());
  const sent = send(scheduler, "a");
  const ends = ["one", "other"].map(() => Promise.withResolvers<InferenceResponse | null>());
  await instance.release(ends.map(({ promise }) => promise));
  assert.deepEqual(
    [sent.outcome, sent.releaseCount],
    ["INTERNAL the backend gave 2 responses for a batch of 1 requests", 1],
  );
  let closed = false;
  void scheduler.close().then(() => (closed = true));
  ends[0]?.resolve(responseOf("late", [tensorOf("B", [1], memory.block())]));
  await twoTicks();
  assert.deepEqual([memory.live, memory.faults, closed], [0, [], false]);
  ends[1]?.resolve(null);
  await twoTicks();
  assert.equal(closed, true);
});
