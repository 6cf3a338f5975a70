import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import { type Arena, createArena } from "@galatea/server/tensor";
import { compactForest } from "./evaluation/compact-forest.ts";
import { compileTraversal, type TreeModel } from "./evaluation/evaluator.ts";
import { type Forest, newTree } from "./forest.ts";
import { TreeThreads, type TreeRun } from "./tree-threads.ts";

const threadCount = 2;
const rowCount = 64;

let arena: Arena;
let threads: TreeThreads;

beforeEach(() => {
  arena = createArena({ capacityBytes: 1 << 26 });
  threads = new TreeThreads({ threadCount, walk: compileTraversal() });
});

afterEach(async () => {
  await threads[Symbol.asyncDispose]();
  arena[Symbol.dispose]();
});

/** Returns a model of one tree and one feature that predicts `value` for every row. */
function modelOf(value: number): TreeModel {
  const tree = newTree(3, 0);
  [tree.left[0], tree.right[0]] = [1, 2];
  tree.leafWeights.fill(value);
  const forest: Forest = {
    precision: "float64",
    featureCount: 1,
    outputCount: 1,
    trees: [tree],
    baseScores: [0],
    transform: { kind: "identity" },
  };
  return { forest: compactForest(forest, { workspaceCount: threadCount + 1 }), outputForm: { kind: "scores" } };
}

interface RequestedCall {
  readonly id: number;
  readonly model: TreeModel;
  readonly sliceCount?: number;
  readonly signal?: AbortSignal;
}

/** Runs `sliceCount` slices of equal length, and returns the predictions. */
async function run({
  id,
  model,
  sliceCount = 1,
  signal = new AbortController().signal,
}: RequestedCall): Promise<number[]> {
  const block = arena.allocate(8 * rowCount * sliceCount);
  block.bytes.fill(0);
  const slices: TreeRun["slices"] = Array.from({ length: sliceCount }, (_, slice) => [
    {
      rowsAt: block.byteOffset + 4 * rowCount * slice,
      rowCount,
      predictionsAt: block.byteOffset + 4 * rowCount * (sliceCount + slice),
      contributionsAt: null,
    },
  ]);
  try {
    await threads.run({ opened: { id, model }, arena, slices, threadsMax: Infinity, signal });
    return [...new Float32Array(block.bytes.slice(block.bytes.length / 2).buffer)];
  } finally {
    block.release();
  }
}

test("concurrent jobs of several models each get the results for their model", async () => {
  const models = [1, 2, 3].map(modelOf);
  const predictions = await Promise.all(models.map((model, id) => run({ id, model, sliceCount: 20 })));
  for (const [index, values] of predictions.entries())
    assert.deepEqual(
      values,
      Array.from({ length: 1280 }, () => index + 1),
    );
});

test("a short job ends before a long job that started earlier", async () => {
  await run({ id: 1, model: modelOf(1), sliceCount: 4 });
  const ended: string[] = [];
  const long = run({ id: 1, model: modelOf(1), sliceCount: 2000 }).then(() => ended.push("long"));
  const short = run({ id: 2, model: modelOf(2), sliceCount: 2 }).then(() => ended.push("short"));
  await Promise.all([long, short]);
  assert.deepEqual(ended, ["short", "long"]);
});

test("a cancelled job rejects with the signal's reason, and the next job runs", async () => {
  const controller = new AbortController();
  const job = run({ id: 1, model: modelOf(1), sliceCount: 2000, signal: controller.signal });
  controller.abort(new Error("nobody waits"));
  await assert.rejects(job, /nobody waits/);
  await assert.rejects(run({ id: 1, model: modelOf(1), signal: controller.signal }), /nobody waits/);
  assert.equal((await run({ id: 2, model: modelOf(2) }))[0], 2);
});

test("a model that crashes its threads fails only its own jobs; other models' jobs run in new threads", async () => {
  const model = modelOf(1);
  // The columns of this model are outside of its memory.
  const broken = { ...model, forest: { ...model.forest, columnsAt: 2 ** 30 } };
  await assert.rejects(run({ id: 1, model: broken, sliceCount: 50 }), {
    code: "INTERNAL",
    message: /^evaluating trees failed: /,
  });
  assert.equal((await run({ id: 2, model: modelOf(2), sliceCount: 8 }))[0], 2);
});

test("disposed models and arenas can be used again", async () => {
  for (let round = 0; round < 3; round += 1) {
    assert.equal((await run({ id: 1, model: modelOf(round), sliceCount: 4 }))[0], round);
    threads.forgetModel(1);
    threads.forgetArena(arena.id);
  }
});
