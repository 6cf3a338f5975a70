import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { datatypes, splitBytesElements, type Datatype } from "../../tensor/index.ts";
import { classify } from "./classification.ts";

test("scores exactly half way between two printed numbers are rounded to the even one, as printf does", () => {
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

test("the largest scores come first, equal ones in their order, and NaN after all numbers", () => {
  const scores = fc.array(fc.constantFrom(NaN, -Infinity, 0, 1, 2, 3), { minLength: 1, maxLength: 4000 });
  fc.assert(
    fc.property(scores, fc.integer({ min: 1, max: 60 }), (values, classCount) => {
      const data = new Uint8Array(Float64Array.from(values).buffer);
      const tensor = { name: "S", datatype: "FP64", shape: [values.length], data, block: null } as const;
      const found = splitBytesElements(classify(tensor, classCount, false, []).data);
      const expected = values
        .map((value, index) => ({ index, rank: Number.isNaN(value) ? 2 : value === -Infinity ? 1 : -value }))
        .toSorted((a, b) => a.rank - b.rank);
      assert.deepEqual(
        found.map((text) => Number(Buffer.from(text).toString().split(":")[1])),
        expected.slice(0, classCount).map(({ index }) => index),
      );
    }),
  );
});

test("elements of every ordered datatype are read in place", () => {
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

test("a label follows its index, unless it is empty or missing; NaN and infinity are printed as in C", () => {
  const values = new Float32Array([3, 2, 1]);
  const reported = classes("FP32", new Uint8Array(values.buffer), ["three", ""]);
  assert.deepEqual(reported, ["3.000000:0:three", "2.000000:1", "1.000000:2"]);
  for (const [value, text] of [
    [NaN, "nan:0"],
    [Infinity, "inf:0"],
    [-Infinity, "-inf:0"],
    [-0, "-0.000000:0"],
    [1e22, "10000000000000000000000.000000:0"],
  ] as const)
    assert.deepEqual(classes("FP64", new Uint8Array(new Float64Array([value]).buffer)), [text]);
});
