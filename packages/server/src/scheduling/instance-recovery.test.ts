import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { InferenceError } from "@galatea/base";
import {
  ExecutionNotStarted,
  DeferredResponses,
  type InferenceResponse,
  type InstanceState,
} from "../inference/index.ts";
import { createDirectScheduler } from "./direct-scheduler.ts";
import { createDynamicBatchScheduler } from "./dynamic-batch-scheduler.ts";
import {
  cancelledOutcome,
  CountedMemory,
  dynamicModel,
  ManualClock,
  StubInstance,
  ManualSupervision,
  noPolicy,
  responseOf,
  send,
  tensorOf,
  twoTicks,
  type Sent,
} from "./scheduling-fixtures.ts";

const options = () => ({ clock: new ManualClock(), queueLengthMax: 1000 });

/** An instance with a worker that a test ends and starts. */
class Worker {
  readonly supervision = new ManualSupervision();
  readonly instance: StubInstance;

  constructor(name: string, executionsMax = 1) {
    this.instance = new StubInstance(name, executionsMax);
    this.instance.supervision = this.supervision;
  }

  /** Ends the worker: the executing batch fails, and the batches that wait in the worker's socket are rejected as not started. */
  async dies(): Promise<void> {
    const ended = this.supervision.becomes("restarting");
    const waitingCount = this.instance.openCount - 1;
    await this.instance.end(() => new InferenceError("INTERNAL", "it died"));
    for (let count = 0; count < waitingCount; count++) await this.instance.crash(new ExecutionNotStarted("restarted"));
    await ended;
  }
}

const outcomes = (sent: readonly Sent[]) => sent.map(({ outcome }) => outcome);

test("a worker that ends fails its executing requests; requests that were waiting at it go to another instance, ahead of queued ones", async () => {
  const [first, second] = [new Worker("m_0_0", 3), new Worker("m_0_1")];
  const scheduler = createDirectScheduler([first.instance, second.instance], options());
  const sent = ["a", "b", "c", "d", "e"].map((id) => send(scheduler, id));
  assert.deepEqual([first.instance.log, second.instance.log], [["a", "c", "d"], ["b"]]);
  await first.dies();
  assert.equal(scheduler.pendingCount, 3);
  for (let count = 0; count < 4; count++) await second.instance.end();
  assert.deepEqual(second.instance.log, ["b", "c", "d", "e"]);
  assert.deepEqual(outcomes(sent), ["INTERNAL it died", "b", "c", "d", "e"]);
  assert.deepEqual(
    sent.map(({ releaseCount }) => releaseCount),
    [1, 1, 1, 1, 1],
  );
});

test("with one instance, waiting and new requests go to the worker's successor once it has started", async () => {
  const worker = new Worker("m_0_0", 2);
  const { instance, supervision } = worker;
  const scheduler = createDirectScheduler([instance], options());
  const sent = ["a", "b", "c"].map((id) => send(scheduler, id));
  await worker.dies();
  sent.push(send(scheduler, "d"));
  assert.deepEqual(instance.log, ["a", "b"]);
  await supervision.becomes("up");
  assert.deepEqual(instance.log, ["a", "b", "b", "c"]);
  for (let count = 0; count < 3; count++) await instance.end();
  assert.deepEqual(outcomes(sent), ["INTERNAL it died", "b", "c", "d"]);
  assert.equal(sent[1]?.record.countsExecution, true);
});

test("a worker that cannot be started gets no requests while another instance runs; without another, its requests fail", async () => {
  const [first, second] = [new Worker("m_0_0"), new Worker("m_0_1")];
  const scheduler = createDirectScheduler([first.instance, second.instance], options());
  await first.supervision.becomes("failed");
  const sent = ["a", "b"].map((id) => send(scheduler, id));
  assert.deepEqual([first.instance.log, second.instance.log], [[], ["a"]]);
  await second.dies();
  assert.deepEqual(first.instance.log, []);
  await second.supervision.becomes("failed");
  assert.deepEqual(first.instance.log, ["b"]);
  await first.instance.end(() => new InferenceError("INTERNAL", "no worker"));
  assert.equal(sent[1]?.outcome, "INTERNAL no worker");
});

test("a request that is cancelled while it waits for a worker settles at once, is not executed, and releases its inputs", async () => {
  const worker = new Worker("m_0_0", 3);
  const scheduler = createDirectScheduler([worker.instance], options());
  const sent = ["a", "b", "c", "d"].map((id) => send(scheduler, id));
  await worker.dies();
  for (const index of [1, 3]) sent[index]!.controller.abort();
  await twoTicks();
  assert.deepEqual(outcomes(sent), ["INTERNAL it died", cancelledOutcome("b"), "waiting", cancelledOutcome("d")]);
  await worker.supervision.becomes("up");
  await worker.instance.end();
  assert.deepEqual(worker.instance.log, ["a", "b", "c", "c"]);
  assert.deepEqual(
    sent.map(({ releaseCount }) => releaseCount),
    [1, 1, 1, 1],
  );
});

test("closing waits for returned requests, and an abandoned scheduler fails them", async () => {
  for (const isAbandoned of [false, true]) {
    const worker = new Worker("m_0_0", 2);
    const scheduler = createDirectScheduler([worker.instance], options());
    const sent = ["a", "b"].map((id) => send(scheduler, id));
    await worker.dies();
    let isClosed = false;
    const closing = scheduler.close().then(() => (isClosed = true));
    await twoTicks();
    assert.equal(isClosed, false);
    if (isAbandoned) scheduler.abandon(new InferenceError("UNAVAILABLE", "over"));
    else {
      await worker.supervision.becomes("up");
      await worker.instance.end();
    }
    await closing;
    assert.deepEqual(outcomes(sent), ["INTERNAL it died", isAbandoned ? "UNAVAILABLE over" : "b"]);
    assert.deepEqual(
      sent.map(({ releaseCount }) => releaseCount),
      [1, 1],
    );
  }
});

test("a queue's timeout applies to returned requests: REJECT fails them in time, DELAY puts them after the others", async () => {
  for (const timeoutAction of ["REJECT", "DELAY"] as const) {
    const clock = new ManualClock();
    const worker = new Worker("m_0_0");
    const policy = { ...noPolicy, timeoutAction, defaultTimeoutUs: 5000 };
    const scheduler = createDynamicBatchScheduler([worker.instance], dynamicModel(1, { defaultQueuePolicy: policy }), {
      clock,
      queueLengthMax: 1000,
    });
    const late = send(scheduler, "late");
    await twoTicks();
    await worker.supervision.becomes("restarting");
    await worker.instance.crash(new ExecutionNotStarted("restarted"));
    assert.deepEqual([late.record.startedNs, scheduler.pendingCount], [0, 1]);
    await clock.move(6);
    assert.deepEqual(
      [late.outcome, late.releaseCount],
      timeoutAction === "REJECT" ? ["UNAVAILABLE Request timeout expired", 1] : ["waiting", 0],
    );
    send(scheduler, "other");
    await worker.supervision.becomes("up");
    await worker.instance.end();
    await worker.instance.end();
    assert.deepEqual(worker.instance.log, timeoutAction === "REJECT" ? ["late", "other"] : ["late", "other", "late"]);
  }
});

test("returned requests are executed in order of arrival, after more urgent ones", async () => {
  const [first, second] = [new Worker("m_0_0"), new Worker("m_0_1")];
  const levels = dynamicModel(1, { priorityLevels: 2, defaultPriorityLevel: 2 });
  const instances = [first.instance, second.instance];
  const scheduler = createDynamicBatchScheduler(instances, levels, options());
  for (const id of ["a", "b", "c"]) send(scheduler, id);
  await twoTicks();
  for (const { supervision } of [first, second]) await supervision.becomes("restarting");
  for (const instance of instances.toReversed()) await instance.crash(new ExecutionNotStarted("restarted"));
  send(scheduler, "urgent", { priority: 1 });
  await second.supervision.becomes("up");
  for (let count = 0; count < 4; count++) await second.instance.end();
  assert.deepEqual([first.instance.log, second.instance.log], [["a"], ["b", "urgent", "a", "b", "c"]]);
});

test("a dormant instance starts when all others execute, and then gets the queued requests", async () => {
  const [first, spare, other] = [new Worker("m_0_0"), new Worker("m_0_1"), new Worker("m_0_2")];
  for (const { supervision } of [spare, other]) await supervision.becomes("dormant");
  const scheduler = createDirectScheduler(
    [first, spare, other].map(({ instance }) => instance),
    options(),
  );
  const needed = () => [spare.supervision.neededCount, other.supervision.neededCount];
  send(scheduler, "a");
  assert.deepEqual(needed(), [0, 0]);
  send(scheduler, "b");
  assert.deepEqual(needed(), [1, 0]);
  await spare.supervision.becomes("restarting");
  assert.deepEqual(needed(), [1, 0]);
  send(scheduler, "c");
  await spare.supervision.becomes("up");
  assert.deepEqual([first.instance.log, spare.instance.log, needed()], [["a"], ["b"], [1, 1]]);
  await first.instance.end();
  assert.deepEqual(first.instance.log, ["a", "c"]);
});

test("requests do not wait for a dormant instance that cannot be started when the others have failed permanently", async () => {
  const [first, spare] = [new Worker("m_0_0"), new Worker("m_0_1")];
  await first.supervision.becomes("failed");
  await spare.supervision.becomes("dormant");
  const scheduler = createDirectScheduler([first.instance, spare.instance], options());
  const sent = send(scheduler, "a");
  await first.instance.end(() => new InferenceError("INTERNAL", "no worker"));
  assert.equal(sent.outcome, "INTERNAL no worker");
});

test("a request waits for a dormant instance that is starting, also when the others have failed permanently", async () => {
  const [first, spare] = [new Worker("m_0_0"), new Worker("m_0_1")];
  await first.supervision.becomes("failed");
  await spare.supervision.becomes("dormant");
  spare.supervision.stateWhenNeeded = "restarting";
  const scheduler = createDirectScheduler([first.instance, spare.instance], options());
  send(scheduler, "a");
  await spare.supervision.becomes("up");
  assert.deepEqual([first.instance.log, spare.instance.log], [[], ["a"]]);
});

const steps = fc.array(
  fc.oneof(
    { weight: 5, arbitrary: fc.record({ does: fc.constant("send" as const), at: fc.nat(2) }) },
    { weight: 3, arbitrary: fc.record({ does: fc.constant("end" as const), at: fc.nat(1) }) },
    { weight: 2, arbitrary: fc.record({ does: fc.constant("release" as const), at: fc.nat(1) }) },
    { weight: 2, arbitrary: fc.record({ does: fc.constant("answer" as const), at: fc.nat(20) }) },
    { weight: 2, arbitrary: fc.record({ does: fc.constant("die" as const), at: fc.nat(1) }) },
    { weight: 1, arbitrary: fc.record({ does: fc.constant("fail" as const), at: fc.nat(1) }) },
    { weight: 3, arbitrary: fc.record({ does: fc.constant("up" as const), at: fc.nat(1) }) },
    { weight: 2, arbitrary: fc.record({ does: fc.constant("leave" as const), at: fc.nat(20) }) },
    { weight: 2, arbitrary: fc.record({ does: fc.constant("wait" as const), at: fc.nat(3) }) },
  ),
  { maxLength: 60 },
);

const rejects = { ...noPolicy, allowTimeoutOverride: true };
const models = {
  direct: null,
  dynamic: dynamicModel(2),
  timed: dynamicModel(2, { defaultQueuePolicy: rejects }),
  delayed: dynamicModel(2, {
    priorityLevels: 2,
    defaultPriorityLevel: 1,
    defaultQueuePolicy: { ...rejects, timeoutAction: "DELAY" },
  }),
  ordered: dynamicModel(2, { preserveOrdering: true, defaultQueuePolicy: rejects }),
};

for (const [kind, model] of Object.entries(models))
  test(`property: whenever workers end and restart, each request of the ${kind} scheduler settles once, and fails only with the worker that executed it`, async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (drawn) => {
        const clock = new ManualClock();
        const memory = new CountedMemory();
        const workers = [new Worker("m_0_0", 2), new Worker("m_0_1", 3)];
        const instances = workers.map(({ instance }) => instance);
        const limits = { clock, queueLengthMax: 1000 };
        const scheduler =
          model === null
            ? createDirectScheduler(instances, limits)
            : createDynamicBatchScheduler(instances, model, limits);
        const sent: Sent[] = [];
        const settled: string[] = [];
        const responses: (() => void)[] = [];
        let deaths = 0;
        const respond = (id: string) => responseOf(id, [tensorOf("B", [1], memory.block())]);
        for (const { does, at } of drawn) {
          const worker = workers[at] ?? workers[0]!;
          const { state } = worker.supervision;
          if (does === "send") {
            const deadlineNs = at === 0 ? clock.monotonicNs() + 3e6 : Number.POSITIVE_INFINITY;
            sent.push(send(scheduler, `r${sent.length}`, { deadlineNs, priority: at, settled }));
          } else if (does === "end") await worker.instance.end(respond);
          else if (does === "release")
            await worker.instance.end((id) => {
              const { promise, resolve } = Promise.withResolvers<InferenceResponse>();
              responses.push(() => resolve(respond(id)));
              return new DeferredResponses(promise);
            });
          else if (does === "answer") responses.splice(at % Math.max(1, responses.length), 1)[0]?.();
          else if (does === "leave") sent[at]?.controller.abort();
          else if (does === "wait") await clock.move(at);
          else if (does === "die" && state === "up") {
            if (worker.instance.openCount > 0) deaths += 1;
            await worker.dies();
          } else if (does === "fail" && state === "restarting") await worker.supervision.becomes("failed");
          else if (does === "up") await worker.supervision.becomes("up");
          await twoTicks();
        }
        for (const { supervision } of workers) await supervision.becomes("up" satisfies InstanceState);
        const closing = scheduler.close();
        for (const sendResponse of responses) sendResponse();
        while (instances.some(({ openCount }) => openCount > 0))
          for (const instance of instances) await instance.end(respond);
        await closing;
        assert.equal(settled.length, sent.length);
        assert.ok(sent.every(({ releaseCount }) => releaseCount === 1));
        const [died, timeout] = ["INTERNAL it died", "UNAVAILABLE Request timeout expired"];
        const isOrderly = (outcome: string) => /^(r\d|INTERNAL)/.test(outcome);
        for (const [index, { outcome }] of sent.entries())
          assert.ok([`r${index}`, cancelledOutcome(`r${index}`), died, timeout].includes(outcome), outcome);
        assert.ok(outcomes(sent).filter((outcome) => outcome === died).length <= deaths * 2);
        if (kind !== "timed" && kind !== "ordered") assert.ok(!outcomes(sent).includes(timeout));
        // Only the responses that callers received are still allocated; all others were released.
        assert.deepEqual([memory.live, memory.faults], [outcomes(sent).filter((each) => /^r\d/.test(each)).length, []]);
        if (kind !== "ordered") return;
        const order = settled.map((id) => Number(id.slice(1))).filter((index) => isOrderly(sent[index]!.outcome));
        assert.deepEqual(
          order,
          order.toSorted((a, b) => a - b),
        );
      }),
      { numRuns: 300 },
    );
  });
