import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { InferenceError } from "@galatea/base";
import { deadlineFromNow } from "../inference/index.ts";
import type { DynamicBatchingConfig, InputConfig, QueuePolicy } from "../modelconfig/index.ts";
import {
  chooseBatch,
  queueDeadlineNs,
  type BatchCandidate,
  type BatchPolicy,
  type CandidateQueue,
} from "./batch-policy.ts";
import { createDynamicBatchScheduler } from "./dynamic-batch-scheduler.ts";
import { ManualClock, StubInstance, dynamicModel, noPolicy, send, tensorOf, twoTicks } from "./scheduling-fixtures.ts";

type Numbered = BatchCandidate & { readonly index: number };

function queueOf(...sizes: (number | string)[]): CandidateQueue<Numbered> {
  const candidates = sizes.map((size, index): Numbered => ({
    index,
    batchKey: typeof size === "string" ? size : "",
    record: { batchSize: typeof size === "number" ? size : 1, queuedNs: 100 + index },
  }));
  return { first: () => candidates[0] ?? null, after: ({ index }) => candidates[index + 1] ?? null };
}

function policyOf(preferred: number[], queueDelayMaxNs: number, batchSizeMax = 8): BatchPolicy {
  const preferredBatchSizeLargest = Math.max(...preferred);
  return { batchSizeMax, preferredBatchSizes: new Set(preferred), preferredBatchSizeLargest, queueDelayMaxNs };
}

const send1 = (requestCount: number, complete: boolean) => ({ kind: "send", requestCount, complete });

test("a batch is chosen as Triton chooses it", () => {
  const delay = 1000;
  const cases = [
    ["without a delay everything goes", chooseBatch(queueOf(1, 1, 1), policyOf([8], 0), 100), send1(3, false)],
    ["the largest batch is never exceeded", chooseBatch(queueOf(3, 3, 3), policyOf([8], 0), 100), send1(2, true)],
    ["a full batch goes", chooseBatch(queueOf(4, 4, 1), policyOf([8], delay), 100), send1(2, true)],
    [
      "a preferred size goes while there is delay left",
      chooseBatch(queueOf(1, 1, 1, 1, 1), policyOf([4], delay), 200),
      send1(4, true),
    ],
    [
      "the largest preferred size reached goes",
      chooseBatch(queueOf(1, 1, 1, 1, 1), policyOf([2, 4], 0), 200),
      send1(4, true),
    ],
    [
      "a smaller preferred size is not complete",
      chooseBatch(queueOf(1, 1, 1), policyOf([2, 4], delay), 200),
      send1(2, false),
    ],
    [
      "what is not preferred waits for the oldest's delay",
      chooseBatch(queueOf(1, 1, 1), policyOf([4], delay), 200),
      { kind: "wait", untilNs: 1100 },
    ],
    [
      "with the delay over everything goes, preferred or not",
      chooseBatch(queueOf(1, 1, 1), policyOf([2], delay), 1100),
      send1(3, true),
    ],
    [
      "another shape ends the batch, which goes at once",
      chooseBatch(queueOf("4,", "4,", "5,"), policyOf([8], delay), 200),
      send1(2, true),
    ],
    ["a single request of the largest size goes", chooseBatch(queueOf(8), policyOf([8], delay), 100), send1(1, true)],
  ] as const;
  for (const [name, got, expected] of cases) assert.deepEqual(got, expected, name);
});

test("a request's timeout applies if overriding is allowed, also when the policy has no timeout", () => {
  const policy = (defaultTimeoutUs: number, allowTimeoutOverride: boolean): QueuePolicy => ({
    ...noPolicy,
    defaultTimeoutUs,
    allowTimeoutOverride,
  });
  const never = Number.POSITIVE_INFINITY;
  const queuedNs = 1e6;
  assert.equal(queueDeadlineNs(policy(0, true), queuedNs, 1_050_000), 1_050_000);
  assert.equal(queueDeadlineNs(policy(100, true), queuedNs, 1_050_000), 1_050_000);
  assert.equal(queueDeadlineNs(policy(100, true), queuedNs, 1_500_000), 1_100_000);
  assert.equal(queueDeadlineNs(policy(100, true), queuedNs, never), 1_100_000);
  assert.equal(queueDeadlineNs(policy(100, false), queuedNs, 1_050_000), 1_100_000);
  assert.equal(queueDeadlineNs(policy(0, false), queuedNs, 1_050_000), never);
});

const options = (clock = new ManualClock()) => ({ clock, queueLengthMax: 1000 });

test("requests that arrive while the instance executes become one batch", async () => {
  const instance = new StubInstance();
  const scheduler = createDynamicBatchScheduler([instance], dynamicModel(4), options());
  const sent = [send(scheduler, "a")];
  await twoTicks();
  sent.push(...["b", "c", "d", "e", "f"].map((id) => send(scheduler, id)));
  await instance.end();
  await instance.end();
  await instance.end();
  assert.deepEqual(instance.log, ["a", "b c d e", "f"]);
  assert.deepEqual(
    sent.map(({ outcome, record }) => `${outcome}${record.executedBatchSize}${record.countsExecution}`),
    ["a1true", "b4true", "c4false", "d4false", "e4false", "f1true"],
  );
});

test("requests that arrive in one event loop tick become one batch, also at an idle instance", async () => {
  const instance = new StubInstance();
  const scheduler = createDynamicBatchScheduler([instance], dynamicModel(4), options());
  for (const id of ["a", "b", "c"]) send(scheduler, id);
  await twoTicks();
  assert.deepEqual(instance.log, ["a b c"]);
});

test("an instance that takes two executions gets a second one only when that batch cannot grow", async () => {
  const instance = new StubInstance("m_0_0", 2);
  const scheduler = createDynamicBatchScheduler([instance], dynamicModel(3), options());
  send(scheduler, "a");
  await twoTicks();
  for (const id of ["b", "c"]) send(scheduler, id);
  await twoTicks();
  assert.deepEqual(instance.log, ["a"]);
  send(scheduler, "d");
  await twoTicks();
  assert.deepEqual(instance.log, ["a", "b c d"]);
});

test("with priorities or a queue policy no batch is sent to a busy instance, whatever its pipeline depth", async () => {
  const policies: Partial<DynamicBatchingConfig>[] = [
    { defaultQueuePolicy: { ...noPolicy, queueLengthMax: 1 } },
    { defaultQueuePolicy: { ...noPolicy, defaultTimeoutUs: 1_000_000 } },
    { defaultQueuePolicy: { ...noPolicy, allowTimeoutOverride: true } },
    { priorityLevels: 2, defaultPriorityLevel: 2 },
    {
      priorityLevels: 1,
      defaultPriorityLevel: 1,
      priorityQueuePolicy: new Map([[1, { ...noPolicy, queueLengthMax: 1 }]]),
    },
  ];
  for (const policy of policies) {
    const instance = new StubInstance("m_0_0", 8);
    const scheduler = createDynamicBatchScheduler([instance], dynamicModel(1, policy), options(new ManualClock()));
    const sent: ReturnType<typeof send>[] = [];
    for (const id of ["a", "b", "c"]) {
      sent.push(send(scheduler, id));
      await twoTicks();
    }
    assert.deepEqual(instance.log, ["a"], JSON.stringify(policy));
    for (const one of sent) one.controller.abort();
  }
});

test("a queue limit of one admits one request in addition to the executing one", async () => {
  const instance = new StubInstance("m_0_0", 8);
  const bounded = dynamicModel(1, { defaultQueuePolicy: { ...noPolicy, queueLengthMax: 1 } });
  const scheduler = createDynamicBatchScheduler([instance], bounded, options());
  const sent: ReturnType<typeof send>[] = [];
  for (const id of ["a", "b", "c", "d"]) {
    sent.push(send(scheduler, id));
    await twoTicks();
  }
  const full = (id: string) => `UNAVAILABLE [request id: ${id}] Exceeds maximum queue size`;
  assert.deepEqual(
    sent.map(({ outcome }) => outcome),
    ["waiting", "waiting", full("c"), full("d")],
  );
});

test("the most urgent request is executed next, also when others came before it while the instance was busy", async () => {
  const instance = new StubInstance("m_0_0", 8);
  const levels = dynamicModel(1, { priorityLevels: 3, defaultPriorityLevel: 3 });
  const scheduler = createDynamicBatchScheduler([instance], levels, options());
  for (const [id, priority] of [
    ["busy", 3],
    ["low", 3],
    ["middle", 2],
    ["high", 1],
  ] as const) {
    send(scheduler, id, { priority });
    await twoTicks();
  }
  for (let count = 0; count < 4; count++) await instance.end();
  assert.deepEqual(instance.log, ["busy", "high", "middle", "low"]);
});

test("a request with a queue timeout is not sent to a busy instance, but times out in the queue", async () => {
  const clock = new ManualClock();
  const instance = new StubInstance("m_0_0", 2);
  const policy = { ...noPolicy, allowTimeoutOverride: true };
  const scheduler = createDynamicBatchScheduler(
    [instance],
    dynamicModel(1, { defaultQueuePolicy: policy }),
    options(clock),
  );
  send(scheduler, "busy");
  const late = send(scheduler, "late", { deadlineNs: clock.monotonicNs() + 2e6 });
  await clock.move(2);
  assert.equal(late.outcome, "UNAVAILABLE Request timeout expired");
  assert.deepEqual(instance.log, ["busy"]);
});

test("a batch waits for the delay of its oldest request, counted from its arrival, and for no more", async () => {
  const clock = new ManualClock();
  const instance = new StubInstance();
  const scheduler = createDynamicBatchScheduler(
    [instance],
    dynamicModel(8, { queueDelayMaxUs: 10_000 }),
    options(clock),
  );
  send(scheduler, "a");
  await clock.move(6);
  send(scheduler, "b");
  await clock.move(3);
  assert.deepEqual(instance.log, []);
  await clock.move(1);
  assert.deepEqual(instance.log, ["a b"]);
});

test("requests share a batch only if their variable shapes and optional inputs are equal", async () => {
  const input: InputConfig = {
    name: "A",
    datatype: "FP32",
    dims: [-1],
    backendDims: [-1],
    optional: false,
    allowRaggedBatch: false,
  };
  const inputs = [input, { ...input, name: "mask", optional: true, allowRaggedBatch: true }];
  const instance = new StubInstance();
  const scheduler = createDynamicBatchScheduler([instance], dynamicModel(8, {}, { inputs }), options());
  send(scheduler, "first");
  await twoTicks();
  for (const [id, length, withMask] of [
    ["a", 4, false],
    ["b", 4, false],
    ["c", 5, false],
    ["d", 5, true],
    ["e", 5, true],
  ] as const) {
    const mask = withMask ? [tensorOf("mask", [1, length === 5 && id === "d" ? 1 : 2])] : [];
    send(scheduler, id, { inputs: [...mask, tensorOf("A", [1, length])] });
  }
  for (let count = 0; count < 4; count++) await instance.end();
  assert.deepEqual(instance.log, ["first", "a b", "c", "d e"]);
});

test("a timeout fires by timer while the only instance is busy, and DELAY puts the request behind the others", async () => {
  const clock = new ManualClock();
  const instance = new StubInstance();
  const priorityQueuePolicy = new Map([
    [1, { ...noPolicy, allowTimeoutOverride: true }],
    [2, { ...noPolicy, timeoutAction: "DELAY" as const, defaultTimeoutUs: 5000 }],
  ]);
  const levels = { priorityLevels: 2, defaultPriorityLevel: 2, priorityQueuePolicy };
  const scheduler = createDynamicBatchScheduler([instance], dynamicModel(1, levels), options(clock));
  const busy = send(scheduler, "busy");
  const rejected = send(scheduler, "rejected", { priority: 1, deadlineNs: clock.monotonicNs() + 2e6 });
  send(scheduler, "delayed");
  await clock.move(2);
  assert.deepEqual([rejected.outcome, rejected.releaseCount], ["UNAVAILABLE Request timeout expired", 1]);
  await clock.move(3);
  send(scheduler, "later");
  send(scheduler, "urgent", { priority: 1 });
  assert.equal(scheduler.pendingCount, 3);
  for (let count = 0; count < 4; count++) await instance.end();
  assert.deepEqual(instance.log, ["busy", "urgent", "later", "delayed"]);
  assert.equal(busy.outcome, "busy");
  await scheduler.close();
  assert.equal(clock.timerCount, 0);
});

test("each priority level has its own limit, which counts only queued requests", async () => {
  const instance = new StubInstance();
  const bounded = { ...noPolicy, queueLengthMax: 1 };
  const scheduler = createDynamicBatchScheduler(
    [instance],
    dynamicModel(1, { defaultQueuePolicy: bounded }),
    options(),
  );
  const sent = ["a", "b", "c"].map((id) => send(scheduler, id));
  await twoTicks();
  assert.deepEqual(
    sent.map(({ outcome }) => outcome),
    ["waiting", "waiting", "UNAVAILABLE [request id: c] Exceeds maximum queue size"],
  );
});

test("with preserve_ordering responses leave in order of arrival across instances; a cancelled request blocks no other", async () => {
  const [first, second, third] = [new StubInstance("0"), new StubInstance("1"), new StubInstance("2")];
  const model = dynamicModel(1, { preserveOrdering: true });
  const scheduler = createDynamicBatchScheduler([first, second, third], model, options());
  const settled: string[] = [];
  const [a] = ["a", "b", "c"].map((id) => send(scheduler, id, { settled }));
  await twoTicks();
  await third.end();
  await second.end();
  assert.deepEqual(settled, []);
  a?.controller.abort();
  await twoTicks();
  assert.deepEqual(settled, ["a", "b", "c"]);
  assert.equal(a?.releaseCount, 0);
  await first.end();
  assert.equal(a?.releaseCount, 1);
});

test("an instance is notified of each cancelled request of its batch, not of queued or settled requests", async () => {
  const instance = new StubInstance();
  const scheduler = createDynamicBatchScheduler([instance], dynamicModel(4), options());
  const a = send(scheduler, "a");
  await twoTicks();
  const [b, c, d] = ["b", "c", "d"].map((id) => send(scheduler, id));
  d?.controller.abort();
  await instance.end();
  a.controller.abort();
  assert.deepEqual([instance.log, instance.cancelled], [["a", "b c"], []]);
  c?.controller.abort();
  assert.deepEqual(instance.cancelled, ["c"]);
  b?.controller.abort();
  assert.deepEqual(instance.cancelled, ["c", "b"]);
  await instance.end();
  assert.deepEqual([b?.releaseCount, c?.releaseCount], [1, 1]);
});

test("a batch still waits for clients that return together after requests that failed at once", async () => {
  const clock = new ManualClock();
  const instance = new StubInstance();
  const scheduler = createDynamicBatchScheduler([instance], dynamicModel(8), options(clock));
  const round = async (requestCount: number, outcome?: InferenceError): Promise<void> => {
    for (let index = 0; index < requestCount; index++) send(scheduler, "r");
    await twoTicks();
    if (outcome === undefined) await clock.move(2 + 0.5 * requestCount);
    await instance.end(outcome === undefined ? undefined : () => outcome);
    await clock.move(1);
  };
  for (let count = 0; count < 10; count++) for (const requestCount of [1, 4]) await round(requestCount);
  for (let count = 0; count < 100; count++) await round(4, new InferenceError("INTERNAL", "raised"));
  await round(4);
  send(scheduler, "first");
  await twoTicks();
  assert.deepEqual(instance.log.at(-1), "r r r r");
  for (let index = 0; index < 3; index++) send(scheduler, "later");
  await clock.move(10);
  assert.deepEqual(instance.log.at(-1), "first later later later");
});

type Move =
  | { kind: "send"; size: number; timeoutUs: number; priority: number }
  | { kind: "end" | "abort" | "wait"; at: number };

test("property: every request settles once and releases its inputs once; no batch is too large; order is kept", async () => {
  const sendMove = fc.record({
    kind: fc.constant("send" as const),
    size: fc.integer({ min: 1, max: 4 }),
    timeoutUs: fc.constantFrom(0, 0, 3000),
    priority: fc.integer({ min: 0, max: 2 }),
  });
  const otherMove = fc.record({
    kind: fc.constantFrom("end" as const, "abort" as const, "wait" as const),
    at: fc.nat(20),
  });
  const config = fc.record({
    executionsMax: fc.integer({ min: 1, max: 2 }),
    delayUs: fc.constantFrom(0, 2000),
    preferred: fc.constantFrom([4], [2, 4]),
    preserveOrdering: fc.boolean(),
    delays: fc.boolean(),
    hasTimeouts: fc.boolean(),
    priorityLevels: fc.constantFrom(0, 1, 2),
  });
  await fc.assert(
    fc.asyncProperty(
      config,
      fc.array(fc.oneof(sendMove, otherMove), { maxLength: 40 }),
      async (drawn, transitions: Move[]) => {
        const clock = new ManualClock();
        const instances = [new StubInstance("0", drawn.executionsMax), new StubInstance("1", drawn.executionsMax)];
        const model = dynamicModel(4, {
          preferredBatchSizes: drawn.preferred,
          queueDelayMaxUs: drawn.delayUs,
          preserveOrdering: drawn.preserveOrdering,
          priorityLevels: drawn.preserveOrdering ? 0 : drawn.priorityLevels,
          defaultPriorityLevel: drawn.preserveOrdering ? 0 : Math.min(1, drawn.priorityLevels),
          defaultQueuePolicy: {
            ...noPolicy,
            allowTimeoutOverride: drawn.hasTimeouts,
            timeoutAction: drawn.delays && !drawn.preserveOrdering ? "DELAY" : "REJECT",
          },
        });
        const scheduler = createDynamicBatchScheduler(instances, model, options(clock));
        const settled: string[] = [];
        const sent: (ReturnType<typeof send> & { id: string; size: number })[] = [];
        for (const transition of transitions) {
          if (transition.kind === "send") {
            const id = String(sent.length);
            const deadlineNs = deadlineFromNow(clock, transition.timeoutUs);
            const more = { batchSize: transition.size, deadlineNs, priority: transition.priority, settled };
            sent.push(Object.assign(send(scheduler, id, more), { id, size: transition.size }));
          } else if (transition.kind === "end") await instances[transition.at % 2]?.end();
          else if (transition.kind === "abort") sent[transition.at % Math.max(1, sent.length)]?.controller.abort();
          else await clock.move(transition.at % 4);
        }
        const closed = scheduler.close();
        for (let count = 0; count <= sent.length; count++) {
          await clock.move(3);
          for (const instance of instances) await instance.end();
        }
        await closed;
        assert.equal(scheduler.pendingCount, 0);
        for (const one of sent) {
          assert.notEqual(one.outcome, "waiting");
          assert.equal(one.releaseCount, 1);
        }
        assert.equal(settled.length, sent.length);
        for (const batch of instances.flatMap((instance) => instance.log)) {
          const size = batch.split(" ").reduce((sum, id) => sum + (sent[Number(id)]?.size ?? 0), 0);
          assert.ok(size <= 4, batch);
        }
        if (drawn.preserveOrdering) {
          const responseCount = settled.map(Number).filter((id) => sent[id]?.outcome === String(id));
          assert.deepEqual(
            responseCount,
            responseCount.toSorted((a, b) => a - b),
          );
        }
      },
    ),
    { numRuns: 200 },
  );
});
