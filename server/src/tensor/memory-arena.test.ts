import assert from "node:assert/strict";
import { fstatSync } from "node:fs";
import { test } from "node:test";
import * as fc from "fast-check";
import { createArena, type Block } from "./index.ts";

const mebibyte = 1024 * 1024;

function residentBytes(fd: number): number {
  return fstatSync(fd).blocks * 512;
}

// First: arenas of other tests that are collected meanwhile would be counted.
test("to the collector an arena is as large as what is used of it", () => {
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

test("blocks of any sizes, taken and given back in any order, never overlap and all come back", () => {
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

test("a full arena refuses with UNAVAILABLE and serves again once a block is back", () => {
  using arena = createArena({ capacityBytes: 4 * mebibyte });
  const block = arena.allocate(3 * mebibyte);
  assert.throws(() => arena.allocate(2 * mebibyte), {
    code: "UNAVAILABLE",
    message: "shared memory arena is full: 2097152 bytes requested, 3145728 of 4194304 bytes in use",
  });
  block.release();
  arena.allocate(2 * mebibyte).release();
});

test("a block has as many users as retained it, and misuse is a bug", () => {
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

test("large free blocks stay warm up to a bound, then their pages go back to the machine", () => {
  using arena = createArena({ capacityBytes: 1024 * mebibyte, warmBytesMax: 8 * mebibyte });
  const touched = Array.from({ length: 8 }, () => {
    const block = arena.allocate(4 * mebibyte);
    block.bytes.fill(1);
    return block;
  });
  assert.ok(residentBytes(arena.fd) >= 32 * mebibyte);
  for (const block of touched) block.release();
  assert.ok(residentBytes(arena.fd) <= 8 * mebibyte);
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

test("bytes stay what they are when many views have overlapped and are made anew", () => {
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

test("a disposed arena frees its memory with its last block", () => {
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
