import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { countBytesElements, joinBytesElements, splitBytesElements } from "./bytes-elements.ts";

test("elements joined are split into the same elements", () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 50 })), (elements) => {
      const data = joinBytesElements(elements);
      assert.deepEqual(
        splitBytesElements(data).map((element) => [...element]),
        elements.map((element) => [...element]),
      );
      assert.equal(countBytesElements(data), elements.length);
    }),
  );
});

test("a length that runs past the end is rejected at any position", () => {
  const good = joinBytesElements([Buffer.from("abc"), Buffer.from("")]);
  for (let cut = 1; cut < good.length; cut++) {
    if (cut === 7) continue;
    assert.throws(() => splitBytesElements(good.subarray(0, cut)), { code: "INVALID_ARG" });
  }
  assert.throws(() => countBytesElements(Uint8Array.of(0xff, 0xff, 0xff, 0xff, 0)), { code: "INVALID_ARG" });
});
