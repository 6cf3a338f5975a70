import assert from "node:assert/strict";
import { test } from "node:test";
import { completeConfig, parseConfigText } from "../modelconfig/index.ts";
import type { Tensor } from "../tensor/index.ts";
import { checkRequest } from "./check-request.ts";
import { echoConfig, requestTo } from "./engine-fixtures.ts";
import { modelFacts } from "./model-facts.ts";
import { threadCpuMs } from "@galatea/base/core/cpu-time-fixture.ts";

const facts = modelFacts(
  completeConfig(parseConfigText(echoConfig, "config.pbtxt"), {
    directoryName: "echo",
    servedName: "echo",
    versionEntries: [],
    gpuCount: 0,
  }),
);

const named = (names: readonly string[]): Tensor[] =>
  names.map((name) => ({ name, datatype: "INT32", shape: [1, 1], data: new Uint8Array(4), block: null }));

for (const count of [2, 100])
  test(`among ${count} inputs, two with the same name are rejected at any position`, () => {
    const names = Array.from({ length: count - 1 }, (_, index) => (index === 0 ? "X" : `unknown${index}`));
    for (const repeated of [names[0]!, names.at(-1)!]) {
      const request = { ...requestTo("echo", [1]), inputs: named([...names, repeated]) };
      const message = `[request id: <id_unknown>] input '${repeated}' already exists in request`;
      assert.throws(() => checkRequest(request, facts), { message });
    }
  });

test("the maximum number of inputs of a request is rejected quickly", () => {
  const inputs = named(Array.from({ length: 100_000 }, (_, index) => `input${index}`));
  const startMs = threadCpuMs();
  assert.throws(() => checkRequest({ ...requestTo("echo", [1]), inputs }, facts), /expected 1 inputs but got 100000 /);
  // A comparison of every name with every other would take half a minute.
  assert.ok(threadCpuMs() - startMs < 3000);
});
