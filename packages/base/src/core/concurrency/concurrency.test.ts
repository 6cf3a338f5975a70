import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { ChangeNotifier } from "./change-notifier.ts";
import { KeyedLock } from "./keyed-lock.ts";
import { rejectOnAbort } from "./reject-on-abort.ts";
import { Semaphore } from "./semaphore.ts";
import { SerialQueue } from "./serial-queue.ts";

const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

test("the lock runs its tasks in order and one at a time, also after failures", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.record({ waits: fc.nat(3), fails: fc.boolean() }), { maxLength: 12 }),
      async (works) => {
        const queue = new SerialQueue();
        const started: number[] = [];
        let runningCount = 0;
        const results = works.map(({ waits, fails }, index) =>
          queue.run(async () => {
            started.push(index);
            runningCount += 1;
            for (let wait = 0; wait < waits; wait++) await settled();
            assert.equal(runningCount, 1);
            runningCount -= 1;
            if (fails) throw new Error(String(index));
            return index;
          }),
        );
        assert.equal(queue.count, works.length);
        const ends = await Promise.allSettled(results);
        assert.deepEqual(
          ends.map((end) => (end.status === "fulfilled" ? end.value : Number((end.reason as Error).message))),
          works.map((_, index) => index),
        );
        assert.deepEqual(
          started,
          works.map((_, index) => index),
        );
        assert.equal(queue.count, 0);
      },
    ),
    { numRuns: 60 },
  );
});

test("a keyed lock keeps the order of each key, does not block other keys and removes idle keys", async () => {
  const one = fc.record({ key: fc.constantFrom("a", "b", "c"), waits: fc.nat(3), fails: fc.boolean() });
  await fc.assert(
    fc.asyncProperty(fc.array(one, { maxLength: 15 }), async (works) => {
      const lock = new KeyedLock();
      const running = new Set<string>();
      const started: number[] = [];
      const ends = await Promise.allSettled(
        works.map(({ key, waits, fails }, index) =>
          lock.run(key, async () => {
            assert.ok(!running.has(key), `two at once for ${key}`);
            running.add(key);
            started.push(index);
            for (let wait = 0; wait < waits; wait++) await settled();
            running.delete(key);
            if (fails) throw new Error("as asked");
          }),
        ),
      );
      for (const [index, end] of ends.entries()) assert.equal(end.status === "rejected", works[index]?.fails);
      for (const expected of ["a", "b", "c"]) {
        const indices = started.filter((index) => works[index]?.key === expected);
        assert.deepEqual(
          indices,
          indices.toSorted((a, b) => a - b),
        );
      }
      assert.equal(lock.keyCount, 0);
    }),
    { numRuns: 60 },
  );
});

test("work for another key does not wait", async () => {
  const lock = new KeyedLock();
  const pending = Promise.withResolvers<void>();
  const slow = lock.run("a", () => pending.promise);
  assert.equal(await lock.run("b", () => Promise.resolve(1)), 1);
  assert.equal(lock.keyCount, 1);
  pending.resolve();
  await slow;
});

type Step = { readonly do: "enter" } | { readonly do: "leave" | "giveUp" | "leaveAgain"; readonly which: number };

test("property: a semaphore never exceeds its permits, admits in order and loses no permit, whenever holders release or waiters abort", async () => {
  const step: fc.Arbitrary<Step> = fc.oneof(
    fc.constant<Step>({ do: "enter" }),
    fc.record({ do: fc.constantFrom("leave" as const, "giveUp" as const, "leaveAgain" as const), which: fc.nat(8) }),
  );
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 3 }), fc.array(step, { maxLength: 40 }), async (placesMax, steps) => {
      const semaphore = new Semaphore(placesMax);
      const reason = new Error("gave up");
      const inside: Disposable[] = [];
      const left: Disposable[] = [];
      const waiting = new Map<number, AbortController>();
      const admitted: number[] = [];
      let nextId = 0;
      for (const each of steps) {
        if (each.do === "enter") {
          const id = nextId++;
          const controller = new AbortController();
          waiting.set(id, controller);
          semaphore.acquire(controller.signal).then(
            (location) => {
              waiting.delete(id);
              admitted.push(id);
              inside.push(location);
            },
            (error: unknown) => assert.equal(error, reason),
          );
        } else if (each.do === "giveUp") {
          const [id, controller] = [...waiting][each.which % Math.max(1, waiting.size)] ?? [];
          if (id !== undefined) waiting.delete(id);
          controller?.abort(reason);
        } else if (each.do === "leave") {
          const [location] = inside.splice(each.which % Math.max(1, inside.length), 1);
          if (location !== undefined) left.push(location);
          location?.[Symbol.dispose]();
        } else left[each.which % Math.max(1, left.length)]?.[Symbol.dispose]();
        await settled();
        assert.ok(inside.length <= placesMax);
        assert.equal(semaphore.waitingCount, waiting.size);
        // A caller waits only while all slots are in use.
        assert.ok(waiting.size === 0 || inside.length === placesMax);
      }
      assert.deepEqual(
        admitted,
        admitted.toSorted((a, b) => a - b),
      );
    }),
    { numRuns: 150 },
  );
});

test("acquiring a semaphore with an aborted signal takes no permit", async () => {
  const semaphore = new Semaphore(1);
  await assert.rejects(semaphore.acquire(AbortSignal.abort(new Error("gone"))), /gone/);
  using _place = await semaphore.acquire(null);
});

test("opening a gate releases every waiting task, and no later one", async () => {
  const gate = new ChangeNotifier();
  const through: string[] = [];
  void gate.nextChange().then(() => through.push("first"));
  void gate.nextChange().then(() => through.push("second"));
  gate.notify();
  void gate.nextChange().then(() => through.push("third"));
  await settled();
  assert.deepEqual(through, ["first", "second"]);
  gate.notify();
  await settled();
  assert.deepEqual(through, ["first", "second", "third"]);
});

test("abandoned work continues, and its failure is ignored", async () => {
  const disconnect = new AbortController();
  const { promise, reject } = Promise.withResolvers<void>();
  const input = rejectOnAbort(promise, disconnect.signal);
  disconnect.abort(new Error("left"));
  await assert.rejects(input, /left/);
  await assert.rejects(rejectOnAbort(promise, disconnect.signal), /left/);
  reject(new Error("later"));
  await settled();
  assert.equal(await rejectOnAbort(Promise.resolve(3), new AbortController().signal), 3);
});
