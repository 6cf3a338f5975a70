import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { newRecord } from "../inference/index.ts";
import type { QueuePolicy } from "../modelconfig/index.ts";
import { PriorityQueue } from "./priority-queue.ts";
import { QueuedRequest } from "./queued-request.ts";
import { StubInstance, noPolicy, requestOf } from "./scheduling-fixtures.ts";

const owner = { requestAbandoned: () => {} };

/** A request of the reference model, a simple implementation of the queue to which the tests compare it. */
interface Modelled {
  readonly queued: QueuedRequest;
  readonly level: number;
  readonly deadlineNs: number;
  /** Position among the requests of its list, including removed ones. */
  rank: number;
  isDelayed: boolean;
  at: "waiting" | "taken" | "gone";
}

const levelPolicies: readonly QueuePolicy[] = [
  { ...noPolicy, allowTimeoutOverride: true, queueLengthMax: 4 },
  { ...noPolicy, allowTimeoutOverride: true, timeoutAction: "DELAY" },
];

const step = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ does: fc.constant("add" as const), at: fc.nat(1), timeoutNs: fc.constantFrom(0, 3, 9) }),
  },
  { weight: 3, arbitrary: fc.record({ does: fc.constant("take" as const), at: fc.nat(0), timeoutNs: fc.constant(0) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      does: fc.constantFrom("putBack" as const, "remove" as const, "expire" as const),
      at: fc.nat(40),
      timeoutNs: fc.constant(0),
    }),
  },
);

test("property: requests leave by level, then by arrival, those with a passed deadline last or never, also after they were returned", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
      const queue = new PriorityQueue({
        kind: "dynamic",
        preferredBatchSizes: [],
        queueDelayMaxUs: 0,
        preserveOrdering: false,
        priorityLevels: 2,
        defaultPriorityLevel: 1,
        defaultQueuePolicy: noPolicy,
        priorityQueuePolicy: new Map(levelPolicies.map((policy, index) => [index + 1, policy])),
      });
      const all: Modelled[] = [];
      let nowNs = 0;
      let rank = 0;
      const isEarlier = (a: Modelled, b: Modelled) =>
        a.level - b.level || Number(a.isDelayed) - Number(b.isDelayed) || a.rank - b.rank;
      const waiting = () => all.filter(({ at }) => at === "waiting").toSorted(isEarlier);
      const take = (modelled: Modelled, at: "taken" | "gone") => {
        queue.remove(modelled.queued);
        modelled.at = at;
      };
      for (const { does, at, timeoutNs } of steps) {
        const first = waiting()[0];
        const acquired = all.filter((each) => each.at === "taken");
        if (does === "add") {
          const deadlineNs = timeoutNs === 0 ? Number.POSITIVE_INFINITY : nowNs + timeoutNs;
          const queued = new QueuedRequest(requestOf(`${all.length}`, { deadlineNs }), newRecord(0), () => {}, owner);
          assert.equal(queue.isFull(0), waiting().filter(({ level }) => level === 0).length >= 4);
          queue.add(queued, at);
          all.push({ queued, level: at, deadlineNs, rank: rank++, isDelayed: false, at: "waiting" });
        } else if (does === "take" && first !== undefined) {
          take(first, "taken");
          first.queued.start(new StubInstance(), nowNs);
        } else if (does === "putBack" && acquired.length > 0) {
          const modelled = acquired[at % acquired.length]!;
          assert.equal(modelled.queued.putBack(), true);
          queue.putBack(modelled.queued);
          modelled.at = "waiting";
        } else if (does === "remove" && waiting().length > 0) take(waiting()[at % waiting().length]!, "gone");
        else if (does === "expire") {
          nowNs += at % 5;
          const late = waiting()
            .filter((each) => !each.isDelayed && each.deadlineNs <= nowNs)
            .toSorted((a, b) => a.deadlineNs - b.deadlineNs);
          const rejected = queue.expire(nowNs);
          assert.deepEqual(
            new Set(rejected),
            new Set(late.filter(({ level }) => level === 0).map(({ queued }) => queued)),
          );
          for (const each of late) {
            if (each.level === 0) each.at = "gone";
            else each.isDelayed = true;
          }
          // The queue may delay requests with the same deadline in any order.
          const delayed = late
            .filter(({ level }) => level === 1)
            .toSorted((a, b) => a.queued.ordinal - b.queued.ordinal);
          for (const each of delayed) each.rank = rank++;
        }
        const expected = waiting();
        const order: QueuedRequest[] = [];
        for (let next = queue.first(); next !== null; next = queue.after(next)) order.push(next);
        assert.deepEqual(
          order.map(({ request }) => request.id),
          expected.map(({ queued }) => queued.request.id),
        );
        assert.equal(queue.length, expected.length);
        const deadlines = expected.filter(({ isDelayed }) => !isDelayed).map(({ deadlineNs }) => deadlineNs);
        const nextNs = Math.min(Number.POSITIVE_INFINITY, ...deadlines);
        assert.equal(queue.nextDeadlineNs(), nextNs === Number.POSITIVE_INFINITY ? null : nextNs);
      }
    }),
    { numRuns: 500 },
  );
});
