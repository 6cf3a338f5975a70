/**
 * Models that XGBoost, LightGBM and scikit-learn (through treelite) trained get the libraries' predictions over HTTP.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { startGalatea, type RunningServer } from "../environments/index.ts";
import { generateModels, type GeneratedModels, type TreeCase } from "./generated-models.ts";
import { requestTrees } from "./tree-request.ts";

/** Maximum difference from an expected number: absolute up to 1, relative to larger numbers. */
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

test("each model returns the predictions of its library, also for rows at thresholds", async () => {
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
  const response = await fetch(`http://127.0.0.1:${server.httpPort}/v2/repository/models/${one.name}/load`, {
    method: "POST",
  });
  if (response.status !== 200) return await response.text();
  const responses = await askAll(one, "output__0");
  const { expected } = one;
  const wrong = [...responses.keys()].filter((position) =>
    differs(responses[position] as number, expected[position] as number),
  );
  if (wrong.length === 0) return null;
  const edgesFrom = (one.rowCount - one.edgeCount) * one.columns;
  const edges = wrong.filter((position) => position >= edgesFrom).length;
  return `${wrong.length} of ${one.expected.length} numbers differ, ${edges} of them at thresholds; the first in row ${Math.floor((wrong[0] as number) / one.columns)}`;
}

function differs(value: number, expected: number): boolean {
  // Terms of linear models may become infinite or NaN, which have no difference.
  return (
    !Object.is(value, Math.fround(expected)) &&
    !(Math.abs(value - expected) <= differenceMax * Math.max(1, Math.abs(expected)))
  );
}

/** Sends all rows in batches of 500 and returns the results. */
async function askAll(one: TreeCase, output: string): Promise<Float64Array> {
  const rowsAtOnce = 500;
  const dims = output === "output__0" ? [one.columns] : [one.columns, one.features + 1];
  const responseCount: number[] = [];
  for (let first = 0; first < one.rowCount; first += rowsAtOnce) {
    const count = Math.min(rowsAtOnce, one.rowCount - first);
    const rows = one.rows.slice(first * one.features, (first + count) * one.features);
    const { shape, values } = await requestTrees(server.httpPort, one.name, rows, one.features, output);
    assert.deepEqual(shape, [count, ...dims.filter((dim) => dim !== 1)]);
    for (const value of values) responseCount.push(value);
  }
  return Float64Array.from(responseCount);
}

test("each model returns the contributions of the library that trained it", async () => {
  const wrong: string[] = [];
  const explained = models.cases.filter(({ contributions }) => contributions !== null);
  for (const one of explained) {
    const expected = one.contributions as Float64Array;
    const responses = await askAll(one, "treeshap_output");
    assert.equal(responses.length, expected.length);
    const differing = expected.filter((value, position) => differs(responses[position] as number, value));
    if (differing.length > 0) {
      const most = expected.reduce(
        (most, value, position) => Math.max(most, Math.abs(value - responses[position]!)),
        0,
      );
      wrong.push(`${one.name}: ${differing.length} of ${expected.length} differ, by ${most} at most`);
    }
  }
  assert.deepEqual(wrong, []);
  assert.equal(explained.length, 9);
});
