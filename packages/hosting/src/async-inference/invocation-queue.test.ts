import assert from "node:assert/strict";
import { test } from "node:test";
import { array, assert as check, constant, constantFrom, integer, oneof, property, record } from "fast-check";
import { InvocationQueue, type QueuedInvocation } from "./invocation-queue.ts";

const entry = (index: number, expiresMs: number): QueuedInvocation => {
  return { key: String(index), receivedMs: index, expiresMs, inlineBytes: index % 7 };
};

const step = oneof(
  record({ do: constant("push" as const), expiresMs: integer({ min: 0, max: 100 }) }),
  record({ do: constantFrom("take" as const, "put back" as const, "end" as const) }),
  record({ do: constant("expire" as const), nowMs: integer({ min: 0, max: 100 }) }),
);

test("property: an InvocationQueue returns requeued requests first, then the oldest, with the counts of a plain list", () => {
  check(
    property(array(step, { maxLength: 300 }), (steps) => {
      const queue = new InvocationQueue();
      let list: QueuedInvocation[] = [];
      let acquired: QueuedInvocation[] = [];
      for (const [index, each] of steps.entries()) {
        if (each.do === "push") {
          const created = entry(index, each.expiresMs);
          queue.push(created);
          list.push(created);
        } else if (each.do === "take") {
          const next = queue.dequeue();
          assert.equal(next, list[0] ?? null);
          list = list.slice(1);
          if (next !== null) acquired.push(next);
        } else if (each.do === "expire") {
          const over = queue.dequeueExpired(each.nowMs);
          assert.deepEqual(
            over,
            list.filter(({ expiresMs }) => expiresMs <= each.nowMs),
          );
          list = list.filter(({ expiresMs }) => expiresMs > each.nowMs);
          acquired.push(...over);
        } else {
          const last = acquired.at(-1);
          if (last === undefined) continue;
          acquired = acquired.slice(0, -1);
          if (each.do === "end") queue.complete(last);
          else {
            queue.requeue(last);
            list = [last, ...list];
          }
        }
        const bytes = [...list, ...acquired].reduce((sum, { inlineBytes }) => sum + inlineBytes, 0);
        assert.deepEqual(
          [queue.waitingCount, queue.runningCount, queue.inlineBytes, queue.oldestMs],
          [list.length, acquired.length, bytes, list[0]?.receivedMs ?? null],
        );
      }
    }),
  );
});

test("an InvocationQueue works after 5,000 dequeued requests, when it drops the consumed part of its array", () => {
  const queue = new InvocationQueue();
  for (let index = 0; index < 5000; index += 1) queue.push(entry(index, 1e9));
  for (let index = 0; index < 5000; index += 1) assert.equal(queue.dequeue()?.key, String(index));
  assert.equal(queue.dequeue(), null);
  queue.push(entry(7, 1e9));
  assert.equal(queue.waitingCount, 1);
});
