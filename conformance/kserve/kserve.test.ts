/** Compares our server with the recorded responses of Triton, one test for each case, check and start. */
import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import { cacheDirectory, ensureEnvironment } from "../environments/index.ts";
import { commandLineCases, expectedExitCode, runCommandLine } from "./command-line.ts";
import { fixtureNames } from "./fixtures.ts";
import { readRecording } from "./recording.ts";
import { runFixture, judge, selectedCases, type RecordedCase } from "./suite.ts";
import { runClient, compareClientResults, readClientRecording, type ClientResults } from "./tritonclient/checks.ts";

for (const name of fixtureNames) {
  describe(`responses equal those recorded from tritonserver, fixture ${name}`, () => {
    const cases = selectedCases({ only: "" }).filter((entry) => entry.item.fixture === name);
    const requested = new Map<string, RecordedCase>();
    before(async () => {
      for (const entry of await runFixture({ kind: "galatea" }, name, cases, () => {}))
        requested.set(entry.item.name, entry);
    });
    for (const { group, item } of cases) {
      test(item.name, async () => {
        const recorded = await readRecording(group);
        assert.equal(judge(item, recorded(item), requested.get(item.name)?.answers ?? new Error("not asked")), null);
      });
    }
  });
}

describe("tritonclient gets the results recorded from tritonserver", async () => {
  const expected = await readClientRecording();
  let ours: ClientResults = {};
  before(async () => {
    const clients = await ensureEnvironment(cacheDirectory(process.env), "clients");
    ours = await runClient({ kind: "galatea" }, clients);
  });
  for (const [check, result] of Object.entries(expected)) {
    test(check, () => assert.deepEqual(compareClientResults({ [check]: result }, ours), []));
  }
});

describe("command lines that end at once exit with the expected code and text", () => {
  for (const item of commandLineCases) {
    test(item.name, async () => {
      const result = await runCommandLine({ kind: "galatea" }, item);
      assert.equal(result.exitCode, expectedExitCode({ kind: "galatea" }, item), result.output);
      assert.ok(result.said, `'${item.says}' is not in: ${result.output}`);
    });
  }
});
