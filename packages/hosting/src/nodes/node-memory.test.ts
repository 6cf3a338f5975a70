import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { NodeMemory } from "./node-memory.ts";

class Holder {
  memoryUsedBytes = 0;
  /** The bytes of idle models, which can be evicted. */
  idleBytes = 0;

  evictIdleModel(): Promise<boolean> {
    if (this.idleBytes === 0) return Promise.resolve(false);
    this.idleBytes -= 1;
    this.memoryUsedBytes -= 1;
    return Promise.resolve(true);
  }
}

const promises = fc.array(fc.nat(10), { minLength: 1, maxLength: 6 });
const steps = fc.array(fc.record({ who: fc.nat(5), isLoad: fc.boolean() }), { maxLength: 200 });

test("all caches together never use more than the node, and each can use its guarantee", async () => {
  await fc.assert(
    fc.asyncProperty(promises, fc.nat(20), steps, async (promised, spareBytes, acquired) => {
      const promisedSum = promised.reduce((sum, each) => sum + each, 0);
      const memory = new NodeMemory({ bytesMax: promisedSum + spareBytes, reservedBytes: () => promisedSum });
      const all = promised.map((bytes) => {
        const holder = new Holder();
        return { bytes, holder, share: memory.addCache(holder, bytes) };
      });
      for (const { who, isLoad } of acquired) {
        const one = all[who % all.length];
        assert(one !== undefined);
        const { holder, share, bytes } = one;
        if (isLoad && holder.memoryUsedBytes < share.availableBytes()) {
          holder.memoryUsedBytes += 1;
          holder.idleBytes += 1;
        } else if (!isLoad) await holder.evictIdleModel();
        const used = all.reduce((sum, each) => sum + each.holder.memoryUsedBytes, 0);
        assert.ok(used <= promisedSum + spareBytes);
        assert.ok(share.availableBytes() >= bytes);
        assert.equal(share.maximumBytes(), bytes + spareBytes);
      }
    }),
  );
});

test("the cache furthest above its guarantee unloads first, and a cache within its guarantee unloads nothing", async () => {
  const memory = new NodeMemory({ bytesMax: 20, reservedBytes: () => 6 });
  const holders = [new Holder(), new Holder(), new Holder()];
  const [asking, ...others] = holders.map((holder, index) => memory.addCache(holder, [0, 6, 0][index] ?? 0));
  const [, promised, most] = holders;
  assert(asking !== undefined && promised !== undefined && most !== undefined);
  for (const [holder, bytes] of [
    [promised, 8],
    [most, 7],
  ] as const) {
    holder.memoryUsedBytes = bytes;
    holder.idleBytes = bytes;
  }
  assert.equal(asking.availableBytes(), 20 - 6 - 2 - 7);
  const capacity: [number, number][] = [];
  while (await asking.evictFromOtherCache()) capacity.push([promised.memoryUsedBytes, most.memoryUsedBytes]);
  assert.deepEqual(capacity[0], [8, 6]);
  assert.deepEqual(capacity.at(-1), [6, 0]);
  assert.equal(asking.availableBytes(), asking.maximumBytes());
  const freed = asking.whenFreed();
  for (const share of others) share[Symbol.dispose]();
  await freed;
});
