import assert from "node:assert/strict";
import { test } from "node:test";
import { completeConfig, parseConfigText } from "../modelconfig/index.ts";
import { MemoryBudget } from "./memory-budget.ts";
import { estimateMemory } from "./model-content.ts";

function guessed(pbtxt: string): [string, number][] {
  const config = completeConfig(parseConfigText(pbtxt, "config.pbtxt"), {
    directoryName: "m",
    servedName: "m",
    versionEntries: [],
    gpuCount: 2,
  });
  return [...estimateMemory(config, { bytes: 10, guessBytes: 20 })];
}

test("a model on GPUs is estimated to need the size of its files on each GPU, for each instance there", () => {
  assert.deepEqual(guessed('backend: "tensorrt" instance_group [ { count: 2 }, { gpus: [ 1 ] } ]'), [
    ["machine", 20],
    ["gpu 0", 20],
    ["gpu 1", 30],
  ]);
  assert.deepEqual(guessed('backend: "pytorch" instance_group { kind: KIND_CPU }'), [["machine", 20]]);
  assert.deepEqual(guessed('backend: "python"'), [["machine", 20]], "the memory of a model's own code is unknown");
});

test("a model that exceeds a GPU's memory is rejected before it is loaded", () => {
  const budget = new MemoryBudget(new Map([["gpu 1", 25]]), 10);
  const guess = new Map(guessed('backend: "tensorrt" instance_group [ { count: 3 gpus: [ 1 ] } ]')) as never;
  assert.throws(() => budget.reserve({ namespace: "" }, "model 'm'", { known: null, contentKey: "", guess }), {
    reason: "out-of-memory",
    message:
      "Out of memory: model 'm' needs about 30 bytes of gpu 1, 0 of the budget of 25 bytes are in use. Unload other models, " +
      "or place some on another GPU.",
  });
});
