import assert from "node:assert/strict";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import * as fc from "fast-check";
import { InferenceError } from "@galatea/base";
import { newRecord, type InferenceRequest } from "../inference/index.ts";
import { createDirectScheduler } from "./direct-scheduler.ts";
import { createDynamicBatchScheduler } from "./dynamic-batch-scheduler.ts";
import { QueuedRequest, type UnsettledState } from "./queued-request.ts";
import { ResponseOrder } from "./response-order.ts";
import {
  CountedMemory,
  dynamicModel,
  ManualClock,
  StubInstance,
  requestOf,
  responseOf,
  send,
  tensorOf,
  twoTicks,
} from "./scheduling-fixtures.ts";
import type { Scheduler } from "./scheduler.ts";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

const full = (id: string) => `UNAVAILABLE [request id: ${id}] Exceeds maximum queue size`;

test("requests with responses still to come count towards the server's limit", async () => {
  const schedulers: readonly ((instance: StubInstance, queueLengthMax: number) => Scheduler)[] = [
    (instance, queueLengthMax) => createDirectScheduler([instance], { clock: new ManualClock(), queueLengthMax }),
    (instance, queueLengthMax) =>
      createDynamicBatchScheduler([instance], dynamicModel(1), { clock: new ManualClock(), queueLengthMax }),
  ];
  for (const create of schedulers) {
    const instance = new StubInstance();
    const scheduler = create(instance, 2);
    const ends = ["a", "b"].map(() => Promise.withResolvers<null>());
    for (const [position, id] of ["a", "b"].entries()) {
      send(scheduler, id);
      await twoTicks();
      await instance.release([ends[position]!.promise]);
    }
    const [refused] = [send(scheduler, "c"), await twoTicks()];
    assert.equal(refused.outcome, full("c"));
    ends[1]?.resolve(null);
    await twoTicks();
    const accepted = send(scheduler, "d");
    await twoTicks();
    await instance.end();
    assert.equal(accepted.outcome, "d");
  }
});

test("responses that wait for an earlier one count towards the server's limit until they have left", async () => {
  const [slow, quick] = [new StubInstance("m_0_0"), new StubInstance("m_0_1")];
  const model = dynamicModel(1, { preserveOrdering: true });
  const scheduler = createDynamicBatchScheduler([slow, quick], model, { clock: new ManualClock(), queueLengthMax: 2 });
  const memory = new CountedMemory();
  const sent: ReturnType<typeof send>[] = [];
  for (const id of ["slow", "a", "b", "c"]) {
    sent.push(send(scheduler, id));
    await twoTicks();
    if (id !== "slow") await quick.end((name) => responseOf(name, [tensorOf("B", [1], memory.block())]));
  }
  const outcomes = () => sent.map(({ outcome }) => outcome);
  assert.deepEqual(outcomes(), ["waiting", "waiting", "waiting", full("c")]);
  sent[1]?.controller.abort();
  await twoTicks();
  assert.equal(memory.live, 1);
  sent.push(send(scheduler, "d"));
  await twoTicks();
  await quick.end();
  sent.push(send(scheduler, "e"));
  await slow.end();
  assert.deepEqual([outcomes()[2], outcomes()[4], outcomes()[5]], ["b", "d", full("e")]);
  const last = send(scheduler, "f");
  await twoTicks();
  await slow.end();
  assert.deepEqual([last.outcome, memory.faults], ["f", []]);
});

test("requests that are cancelled after a slow one keep no memory", async () => {
  const slow = new StubInstance();
  const model = dynamicModel(1, { preserveOrdering: true });
  const scheduler = createDynamicBatchScheduler([slow], model, { clock: new ManualClock(), queueLengthMax: 100 });
  send(scheduler, "slow");
  await twoTicks();
  const requests = Array.from({ length: 200 }, (_, index) => {
    const controller = new AbortController();
    const request = requestOf(`r${index}`, { signal: controller.signal });
    scheduler.infer(request, newRecord(0), () => {}).catch(() => {});
    controller.abort();
    return new WeakRef<InferenceRequest>(request);
  });
  await twoTicks();
  collectGarbage();
  const keptCount = requests.filter((request) => request.deref() !== undefined).length;
  assert.ok(keptCount <= 64, `${keptCount} requests are kept`);
});

type Step = { readonly does: "enter" } | { readonly does: "end" | "leave"; readonly at: number };

test("property: responses leave in order of arrival as soon as no earlier request blocks them", async () => {
  const step: fc.Arbitrary<Step> = fc.oneof(
    { weight: 3, arbitrary: fc.record({ does: fc.constant("enter" as const) }) },
    { weight: 3, arbitrary: fc.record({ does: fc.constant("end" as const), at: fc.nat(200) }) },
    { weight: 2, arbitrary: fc.record({ does: fc.constant("leave" as const), at: fc.nat(200) }) },
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 300 }), async (steps) => {
      const order = new ResponseOrder();
      const owner = { requestAbandoned: (_: QueuedRequest, was: UnsettledState) => order.left(was) };
      const settled: number[] = [];
      const requests: QueuedRequest[] = [];
      const states: ("waiting" | "ended" | "left")[] = [];
      for (const drawn of steps) {
        if (drawn.does === "enter") {
          const index = requests.length;
          const request = new QueuedRequest(requestOf(String(index)), newRecord(0), () => {}, owner);
          request.promise.then(() => settled.push(index)).catch(() => {});
          order.enter(request);
          requests.push(request);
          states.push("waiting");
          continue;
        }
        const index = drawn.at % Math.max(1, requests.length);
        const request = requests[index];
        if (request === undefined || request.at === "settled" || states[index] === "left") continue;
        if (drawn.does === "leave") {
          states[index] = "left";
          request.abandon(new InferenceError("CANCELLED", "gone"));
        } else if (states[index] === "waiting") {
          states[index] = "ended";
          order.settle(request, responseOf(String(index)));
        }
      }
      await twoTicks();
      const first = states.indexOf("waiting");
      const ended = states.flatMap((state, index) => (state === "ended" ? [index] : []));
      const expected = ended.filter((index) => first === -1 || index < first);
      assert.deepEqual(settled, expected);
      assert.equal(order.endedCount, ended.length - expected.length);
    }),
    { numRuns: 300 },
  );
});
