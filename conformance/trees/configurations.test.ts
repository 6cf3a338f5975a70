/** Configurations that the `fil` backend accepts or rejects, over HTTP, for handwritten models. */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { eventually } from "../../packages/base/src/core/eventually-fixture.ts";
import { startGalatea, type RunningServer } from "../environments/index.ts";
import { requestTrees } from "./tree-request.ts";

let server: RunningServer;
let directory: string;

before(async () => {
  directory = await mkdtemp(join(tmpdir(), "galatea-trees-"));
  server = await startGalatea({ repositories: [directory], flags: ["--model-control-mode=explicit"] });
});

after(async () => {
  await server?.stop();
  await rm(directory, { recursive: true });
});

interface WrittenTree {
  readonly left: readonly number[];
  readonly right: readonly number[];
  readonly values: readonly number[];
  readonly categories?: readonly number[];
}

/** A tree with one split: values below 0.5 get 1, others -1. */
const stump: WrittenTree = { left: [1, -1, -1], right: [2, -1, -1], values: [0.5, 1, -1] };

/** Returns a model with two features in XGBoost's format. */
function xgboostModel(tree: WrittenTree, objective = "reg:squarederror", more: object = {}): object {
  const nodes = tree.left.map((_, node) => node);
  const zeros = nodes.map(() => 0);
  const written = {
    base_weights: zeros,
    categories: tree.categories ?? [],
    categories_nodes: tree.categories ? [0] : [],
    categories_segments: tree.categories ? [0] : [],
    categories_sizes: tree.categories ? [tree.categories.length] : [],
    default_left: zeros,
    left_children: tree.left,
    right_children: tree.right,
    split_conditions: tree.values,
    sum_hessian: zeros,
    split_indices: zeros,
    split_type: nodes.map((node) => (tree.categories && node === 0 ? 1 : 0)),
    tree_param: { num_feature: "2", num_nodes: String(nodes.length), size_leaf_vector: "1" },
  };
  const model = { gbtree_model_param: { num_trees: "1" }, tree_info: [0], trees: [written] };
  const learner = {
    gradient_booster: { name: "gbtree", model },
    learner_model_param: { base_score: "[0E0]", num_class: "0", num_feature: "2", num_target: "1" },
    objective: { name: objective },
    ...more,
  };
  return { learner, version: [3, 2, 0] };
}

interface RequestedCall {
  readonly parameters?: Readonly<Record<string, string>>;
  readonly config?: Readonly<Record<string, unknown>>;
  readonly model?: object | string;
}

/** Loads a model. Resolves with null, or with the error. */
async function load({
  parameters = {},
  config = {},
  model = xgboostModel(stump),
}: RequestedCall): Promise<string | null> {
  const input = { model_type: "xgboost_json", is_classifier: "false", ...parameters };
  const complete = {
    backend: "fil",
    max_batch_size: 64,
    input: [{ name: "input__0", data_type: "TYPE_FP32", dims: [2] }],
    output: [{ name: "output__0", data_type: "TYPE_FP32", dims: [1] }],
    parameters: Object.fromEntries(Object.entries(input).map(([key, value]) => [key, { string_value: value }])),
    ...config,
  };
  const text = typeof model === "string" ? model : JSON.stringify(model);
  const body = {
    parameters: { config: JSON.stringify(complete), "file:1/xgboost.json": Buffer.from(text).toString("base64") },
  };
  const response = await fetch(`http://127.0.0.1:${server.httpPort}/v2/repository/models/trees/load`, {
    method: "POST",
    body: JSON.stringify(body),
  });
  if (response.status === 200) return null;
  assert.equal(response.status, 400);
  return ((await response.json()) as { error: string }).error;
}

async function responses(...features: readonly number[]): Promise<readonly number[]> {
  const { values } = await requestTrees(server.httpPort, "trees", Float32Array.from(features), 2);
  return [...values];
}

test("is_classifier, output_class, threshold and predict_proba select scores, classes or probabilities", async () => {
  assert.equal(await load({}), null);
  assert.deepEqual(await responses(0.4, 0, 0.6, 0, Number.NaN, 0), [1, -1, -1]);
  const logistic = xgboostModel(stump, "binary:logitraw");
  for (const is of ["is_classifier", "output_class"]) {
    assert.equal(await load({ model: logistic, parameters: { [is]: "true", threshold: "0.9" } }), null);
    assert.deepEqual(await responses(0.4, 0, 0.6, 0), [1, 0]);
    assert.equal(await load({ model: logistic, parameters: { [is]: "true", threshold: "1" } }), null);
    assert.deepEqual(await responses(0.4, 0, 0.6, 0), [0, 0]);
  }
  const both = { output: [{ name: "output__0", data_type: "TYPE_FP32", dims: [2] }] };
  assert.equal(
    await load({ model: logistic, parameters: { is_classifier: "true", predict_proba: "true" }, config: both }),
    null,
  );
  assert.deepEqual(await responses(0.4, 0, 0.6, 0), [0, 1, 2, -1]);
});

test("parameters for GPUs and removed parameters are accepted without effect", async () => {
  const parameters = {
    storage_type: "AUTO",
    algo: "ALGO_AUTO",
    blocks_per_sm: "0",
    threads_per_tree: "2",
    transfer_threshold: "5",
    use_experimental_optimizations: "true",
    layout: "layered",
    chunk_size: "4",
    cpu_nthread: "1",
  };
  assert.equal(await load({ parameters }), null);
  await eventually(() => server.log().includes("parameter 'storage_type' is for GPUs and has no effect here"));
  assert.deepEqual(await responses(0.4, 0), [1]);
});

test("an invalid configuration is rejected with an error that names the problem", async () => {
  const refusals: readonly (readonly [RequestedCall, RegExp])[] = [
    [{ parameters: { model_type: "catboost" } }, /catboost not recognized as a valid serialization format\./],
    [
      { parameters: { is_classifier: "True" } },
      /Expected 'true' or 'false' for parameter 'is_classifier', got: 'True'/,
    ],
    [
      { config: { parameters: { model_type: { string_value: "xgboost_json" } } } },
      /Required parameter is_classifier not found in config/,
    ],
    [{ parameters: { threshold: "half" } }, /Bad input for parameter threshold/],
    [{ parameters: { model_type: "lightgbm" } }, /unable to find '.*model\.txt'/],
    [
      { config: { input: [{ name: "X", data_type: "TYPE_FP32", dims: [2] }] } },
      /must have one input, named 'input__0'/,
    ],
    [
      { config: { input: [{ name: "input__0", data_type: "TYPE_FP64", dims: [2] }] } },
      /'input__0' .*must be TYPE_FP32, not TYPE_FP64/,
    ],
    [
      { config: { input: [{ name: "input__0", data_type: "TYPE_FP32", dims: [3] }] } },
      /trees have 2 features, but the configuration declares 'input__0' 3/,
    ],
    [
      { config: { output: [{ name: "output__0", data_type: "TYPE_FP32", dims: [4] }] } },
      /trees return 1 numbers for each row, but the configuration declares 'output__0' 4/,
    ],
    [
      {
        config: {
          output: ["output__0", "treeshap_output"].map((name) => ({ name, data_type: "TYPE_FP32", dims: [1] })),
        },
      },
      /the trees return for each row contributions of shape \[3\], but the configuration declares 'treeshap_output' \[1\]/,
    ],
    [{ config: { max_batch_size: 0 } }, /must have a max_batch_size of at least 1/],
    [{ model: "{" }, /is not JSON: Missing a name for object member\. at 1/],
    [{ model: "[".repeat(5000) }, /JSON nesting depth exceeds maximum allowed limit/],
    [{ model: xgboostModel(stump, "reg:none") }, /Unrecognized XGBoost objective: reg:none/],
    [
      { model: xgboostModel(stump, "reg:squarederror", { colour: 1 }) },
      /unknown field 'colour' in learner: set the parameter xgboost_allow_unknown_field/,
    ],
    [{ model: xgboostModel({ ...stump, left: [0, -1, -1] }) }, /tree 0 reaches node 0 by two paths/],
    [
      { model: xgboostModel({ ...stump, categories: Array.from({ length: 4097 }, (_, index) => 2 * index) }) },
      /more than 4096 ranges of categories/,
    ],
    [{ model: xgboostModel(chain(1025)) }, /tree 0 is deeper than 1024 nodes/],
  ];
  for (const [requested, words] of refusals) assert.match((await load(requested)) ?? "it was loaded", words);
});

test("xgboost_allow_unknown_field makes unknown fields of a model file acceptable", async () => {
  const model = xgboostModel(stump, "reg:squarederror", { colour: 1 });
  assert.equal(await load({ model, parameters: { xgboost_allow_unknown_field: "true" } }), null);
  assert.deepEqual(await responses(0.4, 0), [1]);
});

/**
 * Returns a chain of splits: a value below a split's number goes to a leaf of that number, and others to the next
 * split.
 */
function chain(depth: number): WrittenTree {
  const nodes = Array.from({ length: 2 * depth + 1 }, (_, node) => node);
  const isSplit = (node: number) => node % 2 === 0 && node < 2 * depth;
  return {
    left: nodes.map((node) => (isSplit(node) ? node + 1 : -1)),
    right: nodes.map((node) => (isSplit(node) ? node + 2 : -1)),
    values: nodes.map((node) => Math.floor(node / 2)),
  };
}

test("a tree of the maximum depth and a category set of the maximum size are evaluated", async () => {
  assert.equal(await load({ model: xgboostModel(chain(1024)) }), null);
  assert.deepEqual(await responses(-1, 0, 511.5, 0, 1e9, 0), [0, 512, 1024]);
  const categories = Array.from({ length: 4096 }, (_, index) => 2 * index);
  assert.equal(await load({ model: xgboostModel({ ...stump, categories }) }), null);
  assert.deepEqual(
    await responses(0, 0, 1, 0, 4000, 0, 4001, 0, 8190, 0, 8191, 0, 8192, 0, -1, 0),
    [-1, 1, -1, 1, -1, 1, 1, 1],
  );
});

test("concurrent requests run in batches, and each request gets its own rows", async () => {
  assert.equal(await load({ config: { dynamic_batching: { max_queue_delay_microseconds: 20_000 } } }), null);
  const before = await countsOf("trees");
  const requestCount = Array.from({ length: 20 }, (_, index) => [index % 3 === 0 ? 0 : 1, 0, index % 2, 0]);
  const input = await Promise.all(requestCount.map((features) => responses(...features)));
  assert.deepEqual(
    input,
    requestCount.map(([first, , second]) => [first === 0 ? 1 : -1, second === 0 ? 1 : -1]),
  );
  const after = await countsOf("trees");
  assert.equal(after.inference_count - before.inference_count, 40);
  assert.ok(
    after.execution_count - before.execution_count < 20,
    `${after.execution_count - before.execution_count} executions`,
  );
});

interface Counts {
  readonly inference_count: number;
  readonly execution_count: number;
}

async function countsOf(model: string): Promise<Counts> {
  const response = await fetch(`http://127.0.0.1:${server.httpPort}/v2/models/${model}/stats`);
  const { model_stats } = (await response.json()) as { model_stats: Counts[] };
  return model_stats[0]!;
}

test("an ensemble returns the results of its tree model", async () => {
  assert.equal(await load({}), null);
  const config = {
    name: "pipeline",
    platform: "ensemble",
    max_batch_size: 64,
    input: [{ name: "input__0", data_type: "TYPE_FP32", dims: [2] }],
    output: [{ name: "output__0", data_type: "TYPE_FP32", dims: [1] }],
    ensemble_scheduling: {
      step: [
        {
          model_name: "trees",
          model_version: -1,
          input_map: { input__0: "input__0" },
          output_map: { output__0: "output__0" },
        },
      ],
    },
  };
  const response = await fetch(`http://127.0.0.1:${server.httpPort}/v2/repository/models/pipeline/load`, {
    method: "POST",
    body: JSON.stringify({ parameters: { config: JSON.stringify(config), "file:1/none": "" } }),
  });
  assert.equal(response.status, 200, await response.text());
  const { shape, values } = await requestTrees(server.httpPort, "pipeline", Float32Array.of(0.4, 0, 0.6, 0), 2);
  assert.deepEqual({ shape, values: [...values] }, { shape: [2], values: [1, -1] });
});
