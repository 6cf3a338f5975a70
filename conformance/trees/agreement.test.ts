/**
 * Models that the real libraries trained answer over HTTP as the libraries predict: XGBoost, LightGBM, and scikit-learn through treelite.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { startGalatea, type RunningServer } from "../environments/index.ts";
import { generateModels, type GeneratedModels, type TreeCase } from "./generated-models.ts";
import { askTrees } from "./tree-request.ts";

/** Beside 1, and relative to larger numbers. */
const differenceMax = 1e-5;

let models: GeneratedModels;
let server: RunningServer;

before(async () => {
  models = await generateModels();
  server = await startGalatea({ repositories: [models.repository], flags: ["--model-control-mode=explicit"] });
});

after(async () => {
  await server?.stop();
  await models?.[Symbol.asyncDispose]();
});

test("each model answers as the library that trained it predicts, at its thresholds too", async () => {
  const wrong: string[] = [];
  let rowCount = 0;
  let edgeCount = 0;
  for (const one of models.cases) {
    const problem = await problemOf(one);
    if (problem !== null) wrong.push(`${one.name}: ${problem}`);
    rowCount += one.rowCount;
    edgeCount += one.edgeCount;
  }
  assert.deepEqual(wrong, []);
  assert.ok(
    models.cases.length >= 70 && edgeCount > 5000,
    `${models.cases.length} models, ${edgeCount} of ${rowCount} rows at thresholds`,
  );
});

async function problemOf(one: TreeCase): Promise<string | null> {
  const port = server.httpPort;
  const response = await fetch(`http://127.0.0.1:${port}/v2/repository/models/${one.name}/load`, { method: "POST" });
  if (response.status !== 200) return await response.text();
  const rowsAtOnce = 500;
  const wrong: number[] = [];
  for (let first = 0; first < one.rowCount; first += rowsAtOnce) {
    const count = Math.min(rowsAtOnce, one.rowCount - first);
    const rows = one.rows.slice(first * one.features, (first + count) * one.features);
    const { shape, values } = await askTrees(port, one.name, rows, one.features);
    assert.deepEqual(shape, one.columns === 1 ? [count] : [count, one.columns]);
    for (const [index, value] of values.entries()) {
      const expected = one.expected[first * one.columns + index] as number;
      if (!(Math.abs(value - expected) <= differenceMax * Math.max(1, Math.abs(expected))))
        wrong.push(first * one.columns + index);
    }
  }
  if (wrong.length === 0) return null;
  const edgesFrom = (one.rowCount - one.edgeCount) * one.columns;
  const edges = wrong.filter((place) => place >= edgesFrom).length;
  return `${wrong.length} of ${one.expected.length} numbers differ, ${edges} of them at thresholds; the first in row ${Math.floor((wrong[0] as number) / one.columns)}`;
}
