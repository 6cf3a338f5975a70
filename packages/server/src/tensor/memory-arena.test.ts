import assert from "node:assert/strict";
import { fstatSync } from "node:fs";
import { test } from "node:test";
import * as fc from "fast-check";
import { ByteBudget, type Clock, type InferenceError } from "@galatea/base";
import { spareWarmBytes } from "./arena-warmth.ts";
import { createArena } from "./memory-arena.ts";
import type { Arena } from "./arena.ts";
import type { Block } from "./tensor.ts";

const mebibyte = 1024 * 1024;

function residentBytes(fd: number): number {
  return fstatSync(fd).blocks * 512;
}

// This test must run first: arenas of other tests would be counted if they were garbage-collected during it.
test("an arena reports its used bytes to the garbage collector", () => {
  const before = process.memoryUsage().external;
  using arena = createArena({ capacityBytes: 64 * 1024 * mebibyte });
  const small = arena.allocate(1000);
  small.bytes.fill(1);
  for (let round = 0; round < 20; round++) {
    const large = arena.allocate(3 * mebibyte);
    large.bytes.fill(round);
    large.release();
  }
  assert.ok(process.memoryUsage().external - before < 5 * mebibyte);
  assert.equal(small.bytes[999], 1);
});

test("blocks of any sizes, allocated and released in any order, never overlap, and all memory is free in the end", () => {
  const sizes = fc.oneof(fc.nat(5000), fc.nat(300_000), fc.integer({ min: mebibyte - 2, max: 3 * mebibyte }));
  const step = fc.oneof(fc.record({ take: sizes }), fc.record({ give: fc.nat(1000) }));
  fc.assert(
    fc.property(fc.array(step, { maxLength: 120 }), (steps) => {
      using arena = createArena({ capacityBytes: 64 * mebibyte });
      const live: Block[] = [];
      const check = (block: Block) => {
        for (const other of live) {
          const apart =
            block.byteOffset + block.byteLength <= other.byteOffset ||
            other.byteOffset + other.byteLength <= block.byteOffset;
          assert.ok(apart || block.byteLength === 0 || other.byteLength === 0);
        }
        assert.ok(block.byteOffset + block.byteLength <= arena.capacityBytes);
        assert.equal(block.bytes.byteLength, block.byteLength);
      };
      for (const one of steps) {
        if ("take" in one) {
          try {
            const block = arena.allocate(one.take);
            check(block);
            live.push(block);
          } catch (error) {
            assert.match((error as Error).message, /^shared memory arena is full: /);
          }
        } else if (live.length > 0) live.splice(one.give % live.length, 1)[0]!.release();
      }
      for (const block of live) block.release();
      assert.equal(arena.usedBytes, 0);
      // Nothing leaked: after the warm slabs are swept, the whole arena is one run again.
      arena.allocate(arena.capacityBytes).release();
    }),
    { numRuns: 60 },
  );
});

test("a full arena rejects with UNAVAILABLE and allocates again once a block is released", () => {
  using arena = createArena({ capacityBytes: 4 * mebibyte });
  const block = arena.allocate(3 * mebibyte);
  assert.throws(() => arena.allocate(2 * mebibyte), {
    code: "UNAVAILABLE",
    message: "shared memory arena is full: 2097152 bytes requested, 3145728 of 4194304 bytes in use",
  });
  block.release();
  arena.allocate(2 * mebibyte).release();
});

test("a block counts its references, and misuse throws", () => {
  using arena = createArena({ capacityBytes: mebibyte });
  const block = arena.allocate(100);
  block.retain();
  block.release();
  assert.ok(arena.usedBytes > 0);
  block.release();
  assert.equal(arena.usedBytes, 0);
  assert.throws(() => block.release(), /bug: release of a released block/);
  assert.throws(() => block.retain(), /bug: retain of a released block/);
  assert.throws(() => block.bytes, /bug: bytes of a block after its release/);
});

/** A manual clock. */
class ArenaClock implements Clock {
  #nowMs = 0;
  #timers: { atMs: number; fire: () => void }[] = [];

  epochMs = () => this.#nowMs;
  monotonicNs = () => this.#nowMs * 1e6;
  timer(delayMs: number, fire: () => void): Disposable {
    const timer = { atMs: this.#nowMs + delayMs, fire };
    this.#timers.push(timer);
    return { [Symbol.dispose]: () => void (this.#timers = this.#timers.filter((other) => other !== timer)) };
  }
  get timerCount(): number {
    return this.#timers.length;
  }
  move(ms: number): void {
    const untilMs = this.#nowMs + ms;
    for (;;) {
      const due = this.#timers.filter(({ atMs }) => atMs <= untilMs).sort((a, b) => a.atMs - b.atMs)[0];
      if (due === undefined) break;
      this.#timers = this.#timers.filter((other) => other !== due);
      this.#nowMs = due.atMs;
      due.fire();
    }
    this.#nowMs = untilMs;
  }
}

function touched(arena: Arena, count: number, byteLength: number): Block[] {
  return Array.from({ length: count }, () => {
    const block = arena.allocate(byteLength);
    block.bytes.fill(1);
    return block;
  });
}

test("large free blocks stay warm up to a limit; the pages of others are returned to the system step by step", () => {
  const clock = new ArenaClock();
  using arena = createArena({ capacityBytes: 1024 * mebibyte, warmBytesMax: 8 * mebibyte, clock });
  for (const block of touched(arena, 25, 4 * mebibyte)) block.release();
  assert.ok(residentBytes(arena.fd) >= 100 * mebibyte);
  let smallest = residentBytes(arena.fd);
  for (let waitedMs = 0; waitedMs < 4000; waitedMs++) {
    clock.move(1);
    const now = residentBytes(arena.fd);
    assert.ok(smallest - now <= 5 * mebibyte, "one step gives back 4 MiB at most");
    smallest = now;
  }
  assert.ok(smallest <= 9 * mebibyte);
  assert.equal(clock.timerCount, 0);
});

test("memory that is needed again and again stays warm however large it is", () => {
  const clock = new ArenaClock();
  using arena = createArena({ capacityBytes: 1024 * mebibyte, warmBytesMax: 8 * mebibyte, clock });
  for (let round = 0; round < 100; round++) {
    const blocks = touched(arena, 4, 16 * mebibyte);
    for (const block of blocks) block.release();
    clock.move(100);
    assert.ok(residentBytes(arena.fd) >= 64 * mebibyte);
  }
});

test("free warm memory that recent use does not explain is spare, except the part that always stays warm", () => {
  const bytes = fc.nat(1000);
  fc.assert(
    fc.property(bytes, bytes, bytes, bytes, (freeWarmBytes, usedBytes, peakBytes, warmBytesMin) => {
      const spare = spareWarmBytes({ freeWarmBytes, usedBytes, peakBytes, warmBytesMin });
      assert.ok(spare >= 0 && spare <= freeWarmBytes);
      const left = freeWarmBytes - spare;
      assert.ok(spare === 0 || left >= warmBytesMin);
      assert.ok(spare === 0 || left + usedBytes >= peakBytes);
      assert.ok(left <= warmBytesMin || left + usedBytes <= Math.max(peakBytes, usedBytes));
    }),
  );
});

test("arenas share one budget, and warm memory of one is released for another", () => {
  const budget = new ByteBudget(64 * mebibyte);
  const clock = new ArenaClock();
  using one = createArena({ capacityBytes: 1024 * mebibyte, budget, clock });
  using other = createArena({ capacityBytes: 1024 * mebibyte, budget, clock });
  const held = touched(one, 12, 4 * mebibyte);
  assert.throws(() => other.allocate(17 * mebibyte), { code: "UNAVAILABLE", reason: "memory-full" });
  assert.throws(() => other.allocate(65 * mebibyte), { code: "INVALID_ARG", reason: "memory-exceeded" });
  assert.throws(() => touched(other, 65, 256 * 1024), { reason: "memory-full" });
  assert.equal(budget.usedBytes, 60 * mebibyte);
  for (const block of held) block.release();
  const [large] = touched(other, 1, 40 * mebibyte);
  assert.ok(residentBytes(one.fd) + residentBytes(other.fd) <= 65 * mebibyte);
  large!.release();
});

test("a budget counts the used and idle bytes of an arena, and nothing of a closed one", () => {
  const sizes = fc.oneof(fc.nat(300_000), fc.integer({ min: mebibyte, max: 3 * mebibyte }));
  const step = fc.oneof(
    fc.record({ take: sizes }),
    fc.record({ give: fc.nat(1000) }),
    fc.record({ wait: fc.nat(3000) }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const budget = new ByteBudget(24 * mebibyte);
      const clock = new ArenaClock();
      const arena = createArena({ capacityBytes: 64 * mebibyte, budget, clock });
      const live: Block[] = [];
      for (const one of steps) {
        if ("wait" in one) clock.move(one.wait);
        else if ("give" in one) live.splice(one.give % Math.max(1, live.length), 1)[0]?.release();
        else {
          try {
            const block = arena.allocate(one.take);
            block.bytes.fill(1);
            live.push(block);
          } catch (error) {
            assert.equal((error as InferenceError).reason, "memory-full");
          }
        }
        assert.equal(budget.usedBytes, arena.usedBytes);
        assert.ok(budget.usedBytes <= budget.bytesMax);
        assert.ok(residentBytes(arena.fd) <= budget.usedBytes + budget.idleBytes);
      }
      for (const block of live) block.release();
      arena[Symbol.dispose]();
      assert.deepEqual([budget.usedBytes, budget.idleBytes], [0, 0]);
    }),
    { numRuns: 60 },
  );
});

test("bytes beyond four gigabytes are reachable, and untouched capacity costs nothing", () => {
  using arena = createArena({ capacityBytes: 64 * 1024 * mebibyte });
  const low = arena.allocate(5 * 1024 * mebibyte);
  const high = arena.allocate(mebibyte);
  assert.ok(high.byteOffset >= 5 * 1024 * mebibyte);
  high.bytes.fill(7);
  assert.ok(residentBytes(arena.fd) <= 2 * mebibyte);
  low.release();
  high.release();
});

test("bytes are unchanged when many views have overlapped and are created again", () => {
  using arena = createArena({ capacityBytes: 4096 * mebibyte });
  const live: { block: Block; mark: number }[] = [];
  for (let round = 0; round < 600; round++) {
    const mark = round % 251;
    const block = arena.allocate((1 + ((round * 7) % 23)) * mebibyte);
    block.bytes[0] = mark;
    block.bytes[block.byteLength - 1] = mark;
    live.push({ block, mark });
    if (live.length < 8) continue;
    const [{ block: oldest, mark: known }] = live.splice((round * 5) % 8, 1) as [(typeof live)[number]];
    assert.deepEqual([oldest.bytes[0], oldest.bytes.at(-1)], [known, known]);
    oldest.release();
  }
  for (const { block } of live) block.release();
});

test("a disposed arena frees its memory when its last block is released", () => {
  const arena = createArena({ capacityBytes: 16 * mebibyte });
  const block = arena.allocate(2 * mebibyte);
  block.bytes.fill(3);
  arena[Symbol.dispose]();
  assert.equal(block.bytes[5], 3);
  const { bytes } = block;
  block.release();
  assert.equal(bytes[5], 0);
  assert.throws(() => fstatSync(arena.fd), { code: "EBADF" });
});
