import assert from "node:assert/strict";
import { test } from "node:test";
import { bfloat16ToNumber, halfToNumber, numberToBfloat16, numberToHalf } from "./half-floats.ts";

test("every half float survives the way to a number and back", () => {
  for (let bits = 0; bits < 0x10000; bits++) {
    const value = halfToNumber(bits);
    if (Number.isNaN(value)) assert.equal(numberToHalf(value), 0x7e00);
    else assert.equal(numberToHalf(value), bits);
  }
});

test("numbers between two half floats go to the nearest, ties to even, beyond the largest to infinity", () => {
  assert.equal(numberToHalf(1 + 2 ** -11), 0x3c00);
  assert.equal(numberToHalf(1 + 3 * 2 ** -11), 0x3c02);
  assert.equal(numberToHalf(65519), 0x7bff);
  assert.equal(numberToHalf(65520), 0x7c00);
  assert.equal(numberToHalf(2 ** -25), 0);
  assert.equal(numberToHalf(-(2 ** -24)), 0x8001);
});

test("every bfloat16 survives the way to a number and back, and rounding is to nearest even", () => {
  for (let bits = 0; bits < 0x10000; bits++) {
    const value = bfloat16ToNumber(bits);
    if (!Number.isNaN(value)) assert.equal(numberToBfloat16(value), bits);
  }
  assert.equal(numberToBfloat16(1 + 2 ** -8), 0x3f80);
  assert.equal(numberToBfloat16(1 + 3 * 2 ** -8), 0x3f82);
  assert.equal(numberToBfloat16(Number.NaN), 0x7fc0);
});
