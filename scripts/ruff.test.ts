import assert from "node:assert/strict";
import { test } from "node:test";
import { ruff } from "./ruff.ts";

test("the Python is formatted as ruff.toml says: npm run format", async () => {
  const { status, output } = await ruff(["format", "--check"]);
  assert.equal(status, 0, output);
});

test("the Python keeps the rules of ruff.toml", async () => {
  const { status, output } = await ruff(["check", "--output-format", "concise"]);
  assert.equal(status, 0, output);
});
