import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { datatypes, splitBytesElements, type Datatype } from "../../tensor/index.ts";
import { classify } from "./classification.ts";
import { sortAsLibstdcxx } from "./libstdcxx-sort.ts";

const sorted = (values: readonly number[]) => {
  const places = values.map((_, place) => place);
  sortAsLibstdcxx(places, (a, b) => values[a]! > values[b]!);
  return places;
};

test("the sort puts what is larger first and loses nothing, however many are equal", () => {
  const few = fc.array(fc.nat(5), { maxLength: 200 });
  fc.assert(
    fc.property(fc.oneof(few, fc.array(fc.integer(), { maxLength: 200 })), (values) => {
      const places = sorted(values);
      assert.deepEqual(
        places.toSorted((a, b) => a - b),
        values.map((_, place) => place),
      );
      for (let i = 1; i < places.length; i++) assert.ok(values[places[i - 1]!]! >= values[places[i]!]!);
    }),
  );
});

test("the sort loses nothing and ends among NaN too", () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom(NaN, 0, 1, 2), { maxLength: 300 }), (values) => {
      assert.equal(new Set(sorted(values)).size, values.length);
    }),
  );
});

test("the first so many are those that the whole sort puts there, also among equals", () => {
  const few = fc.array(fc.nat(5), { maxLength: 400 });
  fc.assert(
    fc.property(fc.oneof(few, fc.array(fc.integer(), { maxLength: 400 })), fc.nat(60), (values, wantedCount) => {
      const places = values.map((_, place) => place);
      sortAsLibstdcxx(places, (a, b) => values[a]! > values[b]!, wantedCount);
      assert.deepEqual(places.slice(0, wantedCount), sorted(values).slice(0, wantedCount));
    }),
    { numRuns: 2000 },
  );
  const worst = worstFor(3000);
  for (const wantedCount of [1, 17, 1000]) {
    const places = worst.map((_, place) => place);
    sortAsLibstdcxx(places, (a, b) => worst[a]! > worst[b]!, wantedCount);
    assert.deepEqual(places.slice(0, wantedCount), sorted(worst).slice(0, wantedCount));
  }
});

test("the best of many scores is found without sorting the others", () => {
  const count = 100_000;
  const values = Array.from({ length: count }, (_, index) => (index * 7919) % count);
  const places = values.map((_, place) => place);
  let compared = 0;
  sortAsLibstdcxx(
    places,
    (a, b) => {
      compared += 1;
      return values[a]! > values[b]!;
    },
    1,
  );
  assert.equal(values[places[0]!], count - 1);
  // Of a whole sort it takes 2 million.
  assert.ok(compared < 5 * count, `${compared} comparisons`);
});

/**
 * McIlroy's adversary: decides what is smaller only when it is asked, so that each pivot is nearly the smallest of its part. Values are
 * equal by fours.
 */
function worstFor(count: number): number[] {
  const values: (number | null)[] = Array.from({ length: count }, () => null);
  let decided = 0;
  let candidate = 0;
  const places = values.map((_, place) => place);
  sortAsLibstdcxx(places, (a, b) => {
    if (values[a] === null && values[b] === null) values[a === candidate ? a : b] = decided++;
    if (values[a] === null) candidate = a;
    else if (values[b] === null) candidate = b;
    return (values[a] ?? count) < (values[b] ?? count);
  });
  return values.map((value) => -((value ?? decided) >> 2));
}

test("the lists that are partitioned worst are sorted in time, by heap, into the order that libstdc++ 12 gave", () => {
  for (const [count, expected] of [
    [3000, 347904],
    [20_000, 818994],
  ] as const) {
    const values = worstFor(count);
    const places = values.map((_, place) => place);
    let compared = 0;
    sortAsLibstdcxx(places, (a, b) => {
      compared += 1;
      return values[a]! > values[b]!;
    });
    const checksum = places.reduce((sum, place, i) => (sum * 31 + place + i) % 1_000_003, 0);
    assert.equal(checksum, expected);
    assert.ok(compared < 5 * count * Math.log2(count), `${compared} comparisons of ${count} values`);
  }
});

test("scores exactly half way between two printed numbers go to the even one, as printf has it", () => {
  const scores = [0.0078125, 0.0234375, 0.0390625, 123456.7890625, -0.0078125];
  const data = new Uint8Array(new Float64Array(scores).buffer);
  const tensor = { name: "S", datatype: "FP64", shape: [scores.length], data, block: null } as const;
  const text = Buffer.from(classify(tensor, 5, false, []).data).toString("latin1");
  for (const expected of ["0.007812:0", "0.023438:1", "0.039062:2", "123456.789062:3", "-0.007812:4"]) {
    assert.ok(text.includes(expected), expected);
  }
});

const classes = (datatype: Datatype, data: Uint8Array, labels: readonly string[] = []) => {
  const shape = [data.byteLength / datatypes[datatype].byteSize];
  const tensor = { name: "S", datatype, shape, data, block: null };
  return splitBytesElements(classify(tensor, shape[0]!, false, labels).data).map((text) =>
    Buffer.from(text).toString(),
  );
};

test("elements of every datatype that has an order are read where they stand", () => {
  const values = [1, 3, 2];
  const big = values.map(BigInt);
  for (const [datatype, array] of [
    ["UINT8", Uint8Array.from(values)],
    ["UINT16", Uint16Array.from(values)],
    ["UINT32", Uint32Array.from(values)],
    ["UINT64", BigUint64Array.from(big)],
    ["INT8", Int8Array.from(values)],
    ["INT16", Int16Array.from(values)],
    ["INT32", Int32Array.from(values)],
    ["INT64", BigInt64Array.from(big)],
    ["FP32", Float32Array.from(values)],
    ["FP64", Float64Array.from(values)],
  ] as const) {
    const point = datatype.startsWith("FP") ? ".000000" : "";
    const expected = [`3${point}:1`, `2${point}:2`, `1${point}:0`];
    assert.deepEqual(classes(datatype, new Uint8Array(array.buffer)), expected, datatype);
  }
  const last = (datatype: Datatype, array: { buffer: ArrayBufferLike }) =>
    classes(datatype, new Uint8Array(array.buffer as ArrayBuffer))[1];
  assert.equal(last("INT16", Int16Array.of(1, -2)), "-2:1");
  assert.equal(last("UINT64", BigUint64Array.of(2n ** 64n - 1n, 2n ** 63n)), `${2n ** 63n}:1`);
});

test("a label stands behind its index, unless it is empty or there is none; what is no number is printed as C does", () => {
  const values = new Float32Array([3, 2, 1]);
  const told = classes("FP32", new Uint8Array(values.buffer), ["three", ""]);
  assert.deepEqual(told, ["3.000000:0:three", "2.000000:1", "1.000000:2"]);
  for (const [value, text] of [
    [NaN, "nan:0"],
    [Infinity, "inf:0"],
    [-Infinity, "-inf:0"],
    [-0, "-0.000000:0"],
    [1e22, "10000000000000000000000.000000:0"],
  ] as const)
    assert.deepEqual(classes("FP64", new Uint8Array(new Float64Array([value]).buffer)), [text]);
});
