/** Invalid frames of a worker about metrics: the worker is killed, and none of its values remain. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { CustomMetricFamilies } from "@galatea/base/metrics";
import type { Arena } from "../../tensor/index.ts";
import { send, withinTime } from "./hostile-wire.ts";
import { openHostileInstance, type HostileInstance } from "./hostile-worker.ts";
import { encodeFrame, headerBytes, kinds } from "./wire.ts";

const limits = { linesMax: 50, textLengthMax: 1000, writersMax: 50, bytesMax: 1e6, boundsMax: 10 };

const cellsIn = (arena: Arena) => (count: number) => {
  const block = arena.allocate(8 * count);
  const cells = new Float64Array(block.bytes.buffer, block.bytes.byteOffset, count).fill(0);
  return { cells, byteOffset: block.byteOffset, [Symbol.dispose]: () => block.release() };
};

async function openHostile() {
  const all = new CustomMetricFamilies(() => false);
  const hostile = await openHostileInstance({ metrics: (arena) => all.open("", limits, cellsIn(arena)) });
  return Object.assign(hostile, { text: () => [...all.print()].join("") });
}

const family = (id: number, body: unknown = { name: "m", description: "" }, kind = 0) =>
  encodeFrame(kinds.metricFamily, Buffer.from(typeof body === "string" ? body : JSON.stringify(body)), {
    id: 1,
    extra: id,
    count: kind,
  });

function metric(
  id: number,
  familyId: number,
  labels: unknown = {},
  bounds: readonly number[] = [],
  count = bounds.length,
) {
  const head = Buffer.alloc(8 + 8 * bounds.length);
  head.writeUInt32LE(familyId, 0);
  bounds.forEach((bound, index) => head.writeDoubleLE(bound, 8 + 8 * index));
  const text = Buffer.from(typeof labels === "string" ? labels : JSON.stringify(labels));
  return encodeFrame(kinds.metric, Buffer.concat([head, text]), { id: 2, extra: id, count });
}

const value = (id: number) => encodeFrame(kinds.metricValue, new Uint8Array(), { id: 3, extra: id });
const gone = (id: number) => encodeFrame(kinds.metricsReleased, new Uint8Array(), { extra: id });
const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`l${index}`, ""]));

const attacks: readonly [what: string, frames: () => readonly Buffer[], told: RegExp][] = [
  ["a family of an unknown kind", () => [family(1, undefined, 3)], /of kind 3/],
  ["a family that is no JSON", () => [family(1, "{")], /not a JSON object/],
  ["a family without a name", () => [family(1, { description: "" })], /without its name/],
  ["a family whose name is a number", () => [family(1, { name: 7, description: "" })], /without its name/],
  ["a family with more than that", () => [family(1, { name: "m", description: "", more: 1 })], /without its name/],
  ["a family of three megabytes", () => [family(1, { name: "x".repeat(3e6), description: "" })], /bytes of a text/],
  ["the same family twice", () => [family(1), family(1)], /family 1 of metrics, which already exists/],
  ["a metric of no family", () => [metric(1, 7)], /family 7 of metrics, which does not exist/],
  ["the same metric twice", () => [family(1), metric(1, 1), metric(1, 1)], /metric 1, which already exists/],
  ["a label that is a number", () => [family(1), metric(1, 1, { a: 7 })], /a label that is not a string/],
  ["labels that nest", () => [family(1), metric(1, 1, { a: { b: "" } })], /not a JSON object of strings/],
  ["a million labels", () => [family(1), metric(1, 1, many(100_000))], /JSON with too many members/],
  ["labels of three megabytes", () => [family(1), metric(1, 1, { a: "x".repeat(3e6) })], /bytes of a metric/],
  ["bounds that are not in the frame", () => [family(1), metric(1, 1, {}, [], 65_535)], /ends before/],
  ["a frame of a metric that ends in its head", () => [encodeFrame(kinds.metric, Buffer.alloc(4))], /ends before/],
  ["the value of no metric", () => [value(9)], /metric 9, which does not exist/],
  ["the end of no family", () => [gone(1)], /family 1 of metrics, which does not exist/],
  ["a metric of a deleted family", () => [family(1), gone(1), metric(1, 1)], /family 1 of metrics/],
  [
    "the value of a metric whose family was deleted",
    () => [family(1), metric(1, 1), gone(1), value(1)],
    /metric 1, which does not exist/,
  ],
];

for (const [what, frames, pattern] of attacks) {
  test(`${what}: the worker is terminated, and its metrics are removed`, async () => {
    await using hostile = await openHostile();
    await withinTime(async () => {
      await send(
        hostile,
        Buffer.concat([family(100, { name: "kept", description: "" }), metric(100, 100), ...frames()]),
      );
      assert.match(await hostile.worker.ended, pattern);
    });
    assert.deepEqual([hostile.text(), hostile.arena.usedBytes], ["", 0]);
  });
}

/** Reads the frames that the worker receives, until there are `count` responses about metrics. */
async function results(hostile: HostileInstance, count: number): Promise<Buffer[]> {
  const chunks: Buffer[] = [];
  return await new Promise((resolve) => {
    hostile.socket.on("data", (chunk: Buffer) => {
      chunks.push(chunk);
      const bytes = Buffer.concat(chunks);
      const found: Buffer[] = [];
      for (let at = 0; at + headerBytes <= bytes.byteLength; at += bytes.readUInt32LE(at))
        found.push(bytes.subarray(at, at + bytes.readUInt32LE(at)));
      if (found.length === count) resolve(found);
    });
  });
}

test("values over the limits are rejected with an error, and the worker survives", async () => {
  await using hostile = await openHostile();
  const frames = [
    family(1, undefined, 2),
    metric(
      1,
      1,
      {},
      Array.from({ length: 20 }, (_, index) => index),
    ),
  ];
  for (let id = 2; id < 100; id++) frames.push(metric(id, 1, { id: String(id) }));
  const reported = results(hostile, frames.length);
  await send(hostile, Buffer.concat(frames));
  const texts = (await reported).map((frame) =>
    frame.readUInt32LE(12) === 1 ? frame.toString("utf8", headerBytes) : "made",
  );
  assert.equal(texts[1], "20 bucket boundaries; at most 10 are accepted");
  assert.equal(texts.filter((text) => text === "made").length, 1 + 16);
  assert.equal(texts.at(-1), "limit reached: the models of this namespace already have 50 lines of metrics");
  assert.ok(hostile.worker.alive);
});

test("metric cells may contain any bytes: a scrape prints them as a number", async () => {
  await using hostile = await openHostile();
  const reported = results(hostile, 2);
  await send(hostile, Buffer.concat([family(1, undefined, 1), metric(1, 1)]));
  const locations = (await reported)[1]!;
  const block = hostile.arena.allocate(8);
  const complete = new Float64Array(block.bytes.buffer);
  block.release();
  for (const wild of [NaN, Infinity, -1, 2 ** 60, 1.5, -(2 ** 52)]) {
    const at = (offset: number) => Number(locations.readBigUInt64LE(headerBytes + offset)) / 8;
    complete.fill(wild, at(0), at(0) + 3);
    complete[at(8)] = wild;
    assert.match(hostile.text(), /^m \S+$/m);
  }
});

test("a worker that sends endless requests and reads no responses is terminated", async () => {
  await using hostile = await openHostile();
  hostile.socket.pause();
  await send(hostile, Buffer.concat([family(1), metric(1, 1)]));
  const questions = Buffer.concat(Array.from({ length: 10_000 }, () => value(1)));
  while (hostile.worker.alive && !hostile.socket.destroyed) {
    await send(hostile, questions);
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.match(await hostile.worker.ended, /whose responses it does not read/);
});
