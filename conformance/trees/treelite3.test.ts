/** Checkpoints of treelite 3.9.1 (treelite3/write.py) get the results of equal trees in another format. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { InferenceError } from "@galatea/base";
import { compactForest } from "../../packages/runtimes/src/trees/evaluation/compact-forest.ts";
import { compileTraversal, Evaluator } from "../../packages/runtimes/src/trees/evaluation/evaluator.ts";
import type { ModelType } from "../../packages/runtimes/src/trees/fil-parameters.ts";
import { readForest } from "../../packages/runtimes/src/trees/read-forest.ts";

const walk = compileTraversal();
/** Values of each of three features: at, between and beyond the thresholds, and missing. */
const steps = [-1, 0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 100, Number.NaN];
const rows = Float32Array.from(steps.flatMap((a) => steps.flatMap((b) => steps.flatMap((c) => [a, b, c]))));
const rowCount = rows.length / 3;

const bytesOf = async (name: string) => new Uint8Array(await readFile(new URL(`treelite3/${name}`, import.meta.url)));

async function answersOf(name: string, type: ModelType): Promise<Float32Array> {
  const read = readForest(await bytesOf(name), type, { allowUnknownField: false });
  const forest = compactForest(read, { workspaceCount: 1 });
  const responses = new Float32Array(rowCount * forest.outputCount);
  const evaluator = new Evaluator(walk, { forest, outputForm: { kind: "scores" } }, 0);
  evaluator.evaluate({ rows: new Int32Array(rows.buffer), rowCount, predictions: responses, contributions: null });
  return responses;
}

for (const [checkpoint, other, type, columns] of [
  ["categories.tl", "categories.txt", "lightgbm", 1],
  ["multi.tl", "multi.txt", "lightgbm", 3],
  ["logistic.tl", "logistic.json", "xgboost_json", 1],
  ["forest.tl", "forest-4.tl", "treelite_checkpoint", 3],
] as const) {
  test(`${checkpoint} of treelite 3.9 gets the results of ${other}`, async () => {
    const [one, same] = [await answersOf(checkpoint, "treelite_checkpoint"), await answersOf(other, type)];
    assert.equal(one.length, rowCount * columns);
    const isSame = (position: number) => Math.abs((one[position] as number) - (same[position] as number)) < 1e-6;
    assert.deepEqual(
      [...one.keys()].filter((position) => !isSame(position)),
      [],
    );
    assert.ok(new Set(one).size > 5);
  });
}

test("a truncated treelite checkpoint is rejected, and the error for another version gives its number", async () => {
  const refusal = (bytes: Uint8Array): string => {
    try {
      readForest(bytes, "treelite_checkpoint", { allowUnknownField: false });
    } catch (error) {
      if (error instanceof InferenceError) return error.message;
      throw error;
    }
    return "it was read";
  };
  const bytes = await bytesOf("forest.tl");
  for (let length = 0; length < bytes.length; length += 7)
    assert.notEqual(refusal(bytes.slice(0, length)), "it was read");
  const older = bytes.slice();
  older[4] = 4;
  assert.match(
    refusal(older),
    /^the file is not a checkpoint of treelite 3\.9 or 4: it has version 3\.4\.1: load the model/,
  );
});
