/** Our server against the recorded answers of the original, one test per case. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { readRecording } from "./recording.ts";
import { fixtureNames } from "./fixtures.ts";
import { askFixture, judge, selectedCases } from "./suite.ts";

for (const name of fixtureNames) {
  test(`galatea answers as tritonserver did: ${name}`, async (context) => {
    const cases = selectedCases({ only: "" }).filter((entry) => entry.item.fixture === name);
    const asked = await askFixture({ kind: "galatea" }, name, cases, () => {});
    for (const entry of asked) {
      await context.test(entry.item.name, async () => {
        const recorded = await readRecording(entry.group);
        assert.equal(judge(entry.item, recorded(entry.item), entry.answers), null);
      });
    }
  });
}
