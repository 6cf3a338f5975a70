import assert from "node:assert/strict";
import { test } from "node:test";
import { eventually } from "./eventually-fixture.ts";

test("a condition that never holds fails its test with the condition's text", { timeout: 20_000 }, async () => {
  const never = { count: 0 };
  await assert.rejects(
    eventually(() => never.count > 0, 50),
    /condition still false after 50 ms: .*never\.count > 0/,
  );
});

test("the wait ends as soon as the condition holds", async () => {
  let count = 0;
  await eventually(() => ++count === 3);
  assert.equal(count, 3);
});
