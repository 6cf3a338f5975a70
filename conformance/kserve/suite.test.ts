import assert from "node:assert/strict";
import { test } from "node:test";
import { startFixture } from "./started-fixture.ts";
import { runFixture, selectedCases, ServerDied } from "./suite.ts";

const cases = selectedCases({ only: "" })
  .filter(({ item }) => item.fixture === "main" && item.steps.length === 1 && item.steps[0]?.request.method === "GET")
  .slice(0, 3);

test("a server that dies fails only its current case, and the next cases run against a new server", async () => {
  const pids: number[] = [];
  const requested = await runFixture(
    { kind: "galatea" },
    "main",
    cases,
    ({ item }) => item === cases[0]?.item && process.kill(pids[0] ?? 0, "SIGKILL"),
    async (target, name) => {
      const fixture = await startFixture(target, name);
      pids.push(fixture.server.pid);
      return fixture;
    },
  );
  const [before, during, after] = requested.map((entry) => entry.answers);
  assert.ok(Array.isArray(before));
  assert.ok(during instanceof ServerDied);
  assert.match(during.message, /SIGKILL/);
  assert.ok(Array.isArray(after));
  assert.equal(pids.length, 2);
});
