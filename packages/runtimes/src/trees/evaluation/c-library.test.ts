import assert from "node:assert/strict";
import { test } from "node:test";
import { expFloat, logFloat } from "./c-library.ts";

// Results of glibc's expf and logf. The first four exponentials and the first three logarithms differ from the true
// values rounded to float32.
const exponentials: readonly (readonly [number, number])[] = [
  [-4.381235122680664, 0.012509898282587528],
  [-16.669580459594727, 5.7609380377243724e-8],
  [-5.669033527374268, 0.003451199270784855],
  [-0.9766399264335632, 0.37657430768013],
  [-103, 2 ** -149],
  [-90.5, 4.9699151984976125e-40],
  [88.5999984741211, 3.0094729049031413e38],
  [0, 1],
  [-Infinity, 0],
  [Infinity, Infinity],
  [200, Infinity],
];
const logarithms: readonly (readonly [number, number])[] = [
  [2.166912794113159, 0.7733034491539001],
  [0.9814843535423279, -0.01868920773267746],
  [1.0849593877792358, 0.08154255151748657],
  [1.0000000031710769e-30, -69.07755279541016],
  [2.999999894026671e30, 70.17616271972656],
  [1, 0],
  [0, -Infinity],
];

test("expFloat and logFloat equal glibc's expf and logf to the last bit", () => {
  for (const [x, expected] of exponentials) assert.equal(expFloat(x), expected, `exp ${x}`);
  for (const [x, expected] of logarithms) assert.equal(logFloat(x), expected, `log ${x}`);
  assert.ok(Number.isNaN(expFloat(Number.NaN)) && Number.isNaN(logFloat(-1)));
});
