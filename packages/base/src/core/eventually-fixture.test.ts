import assert from "node:assert/strict";
import { test } from "node:test";
import { eventually } from "./eventually-fixture.ts";

test("a condition that never holds fails its test, and says which it was", { timeout: 20_000 }, async () => {
  const never = { count: 0 };
  await assert.rejects(
    eventually(() => never.count > 0, 50),
    /condition still false after 50 ms: .*never\.count > 0/,
  );
});

test("a condition that comes to hold is waited for, and no longer", async () => {
  let count = 0;
  await eventually(() => ++count === 3);
  assert.equal(count, 3);
});
