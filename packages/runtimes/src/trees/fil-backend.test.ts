import assert from "node:assert/strict";
import { link, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { InferenceError, silentLogger, systemClock } from "@galatea/base";
import { ManualTimersClock } from "@galatea/base/core/manual-timers-fixture.ts";
import { completeConfig, parseConfigText } from "@galatea/server/modelconfig";
import { newInferenceRequest, type InferenceRequest } from "@galatea/server/inference";
import { createArena, type Arena, releaseTensors, type Tensor } from "@galatea/server/tensor";
import type { Backend, LoadContext, LoadedModel, ModelSource } from "@galatea/server/backends";
import { noNamespaceMetrics } from "@galatea/server/backends";
import { noBlsClient } from "@galatea/server/backends";
import { createFilBackend } from "./fil-backend.ts";

let root: string;
let arena: Arena;
let backend: Backend;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "fil-backend-"));
  arena = createArena({ capacityBytes: 1 << 22 });
  backend = createFilBackend({ threadCount: 2, runDeadlineMs: null, clock: systemClock, log: silentLogger });
});

afterEach(async () => {
  await backend[Symbol.asyncDispose]();
  arena[Symbol.dispose]();
  await rm(root, { recursive: true });
});

/** A LightGBM model of one leaf. */
const text =
  "tree\nversion=v4\nmax_feature_idx=1\nobjective=regression\n\nTree=0\nnum_leaves=1\nnum_cat=0\nleaf_value=2\n\nend of trees\n";

async function sourceOf(name: string): Promise<ModelSource> {
  const versionDirectory = join(root, name, "1");
  await mkdir(versionDirectory, { recursive: true });
  return { servedName: name, modelDirectory: join(root, name), version: 1, versionDirectory };
}

async function written(name: string, content = text): Promise<ModelSource> {
  const source = await sourceOf(name);
  await writeFile(join(source.versionDirectory, "model.txt"), content);
  return source;
}

async function load(source: ModelSource, parameters: Readonly<Record<string, string>> = {}): Promise<LoadedModel> {
  const argument = Object.entries({ model_type: "lightgbm", is_classifier: "false", ...parameters });
  const config = completeConfig(
    parseConfigText(
      `backend: "fil" max_batch_size: 8 instance_group { kind: KIND_CPU }
       input { name: "input__0" data_type: TYPE_FP32 dims: 2 } output { name: "output__0" data_type: TYPE_FP32 dims: 1 }
       ${argument.map(([key, value]) => `parameters { key: "${key}" value { string_value: "${value}" } }`).join("\n")}`,
      "config.pbtxt",
    ),
    { directoryName: source.servedName, servedName: source.servedName, versionEntries: [], gpuCount: 0 },
  );
  const context: LoadContext = {
    arena,
    backendConfig: new Map(),
    onHealth: () => {},
    bls: noBlsClient,
    metrics: noNamespaceMetrics,
    signal: new AbortController().signal,
  };
  return await backend.load(source, await backend.complete(source, config, context), context);
}

const bytesOf = async (model: LoadedModel) => (await model.memoryBytes()).get("machine") ?? 0;

/**
 * Returns the predictions for a batch of requests with these numbers of rows. Features are 0 in the first request, 1 in
 * the second, and so on.
 */
async function predictionsOf(model: LoadedModel, ...rowCounts: readonly number[]): Promise<(readonly number[])[]> {
  const [instance] = model.instances;
  const batch = rowCounts.map((rowCount, index): InferenceRequest => {
    const block = arena.allocate(8 * rowCount);
    new Float32Array(block.bytes.buffer, block.bytes.byteOffset, 2 * rowCount).fill(index);
    const input: Tensor = { name: "input__0", datatype: "FP32", shape: [rowCount, 2], data: block.bytes, block };
    return { ...emptyRequest, inputs: [input] };
  });
  const { outcomes } = await instance!.execute(batch);
  for (const { inputs } of batch) releaseTensors(inputs);
  return outcomes.map((outcome) => {
    if (outcome instanceof InferenceError || !("outputs" in outcome)) throw outcome as Error;
    const [output] = outcome.outputs;
    const { data } = output!;
    const values = [...new Float32Array(data.slice().buffer)];
    assert.deepEqual(output!.shape, [values.length]);
    releaseTensors(outcome.outputs);
    return values;
  });
}

const emptyRequest = newInferenceRequest({
  modelName: "trees",
  inputs: [],
});

/** Returns a LightGBM model with a chain of splits at 0, 1, 2 and so on. */
function chain(splitCount: number): string {
  const splits = Array.from({ length: splitCount }, (_, index) => index);
  return text.replace(
    "num_leaves=1\nnum_cat=0\nleaf_value=2\n",
    [
      `num_leaves=${splitCount + 1}`,
      "num_cat=0",
      `split_feature=${splits.map(() => 0).join(" ")}`,
      `threshold=${splits.join(" ")}`,
      `decision_type=${splits.map(() => 2).join(" ")}`,
      `left_child=${splits.map((index) => -1 - index).join(" ")}`,
      `right_child=${splits.map((index) => (index + 1 < splitCount ? index + 1 : -1 - splitCount)).join(" ")}`,
      `leaf_value=${[...splits, splitCount].map((index) => 10 + index).join(" ")}`,
      "",
    ].join("\n"),
  );
}

test("small batches and large ones, which several threads share, get correct responses", async () => {
  await using one = await load(await written("a"));
  assert.deepEqual(await predictionsOf(one, 1, 3), [[2], [2, 2, 2]]);
  await using deep = await load(await written("b", chain(500)), { cpu_nthread: "2" });
  const before = arena.usedBytes;
  assert.deepEqual(await predictionsOf(deep, 2, 1, 3), [[10, 10], [11], [12, 12, 12]]);
  const [few, many] = await predictionsOf(deep, 3, 8000);
  assert.deepEqual(few, [10, 10, 10]);
  assert.equal(many!.length, 8000);
  assert.ok(many!.every((value) => value === 11));
  assert.equal(arena.usedBytes, before);
});

test("a batch ends when all its callers have cancelled, and the next batch is evaluated", async () => {
  await using deep = await load(await written("b", chain(500)));
  const [instance] = deep.instances;
  const block = arena.allocate(8 * 20_000);
  const input: Tensor = { name: "input__0", datatype: "FP32", shape: [20_000, 2], data: block.bytes, block };
  const request: InferenceRequest = { ...emptyRequest, inputs: [input] };
  const executed = instance!.execute([request]);
  instance!.abandonRequest(request);
  const { outcomes } = await executed;
  assert.deepEqual((outcomes[0] as InferenceError).code, "CANCELLED");
  block.release();
  assert.deepEqual(await predictionsOf(deep, 1), [[10]]);
});

test("a run that exceeds its deadline fails with an error, and the next run succeeds", async () => {
  await backend[Symbol.asyncDispose]();
  const runDeadlineMs = 5000;
  const clock = new ManualTimersClock(runDeadlineMs);
  backend = createFilBackend({ threadCount: 2, runDeadlineMs, clock, log: silentLogger });
  await using deep = await load(await written("b", chain(500)));
  const late = predictionsOf(deep, 20_000);
  clock.fireTimers();
  const sentence = "the run of model 'b' did not end within 5000 ms and was ended";
  await assert.rejects(late, { code: "INTERNAL", message: sentence });
  assert.equal(clock.pendingTimerCount, 0);
  assert.deepEqual((await predictionsOf(deep, 2000))[0]?.length, 2000);
  assert.equal(clock.pendingTimerCount, 0);
});

test("models with the same file share its trees, and only one of them is charged for the memory", async () => {
  const first = await written("a");
  const second = await sourceOf("b");
  await link(join(first.versionDirectory, "model.txt"), join(second.versionDirectory, "model.txt"));
  const loaded = await Promise.all([load(first), load(second)]);
  const sizes = await Promise.all(loaded.map(bytesOf));
  const charged = loaded.filter((_, index) => sizes[index] !== 0);
  const [free, ...others] = loaded.filter((model) => !charged.includes(model));
  assert.ok(charged[0] && free);
  assert.deepEqual([charged.length, others.length], [1, 0]);
  await charged[0][Symbol.asyncDispose]();
  assert.ok((await bytesOf(free)) > 0);
  assert.deepEqual(await predictionsOf(free, 1), [[2]]);
  await free[Symbol.asyncDispose]();
});

test("a failed load releases everything, and the repaired file can be loaded", async () => {
  const source = await written("a", text.replace("leaf_value=2", "leaf_value=two"));
  await assert.rejects(load(source), {
    code: "INVALID_ARG",
    message: `unable to read '${source.versionDirectory}/model.txt' as lightgbm: the value of 'leaf_value' has 'two', which is not a number`,
  });
  await written("a");
  await using model = await load(source);
  assert.deepEqual(await predictionsOf(model, 1), [[2]]);
});
