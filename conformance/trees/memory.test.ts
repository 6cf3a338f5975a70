/** The memory that reading a large model takes. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const program = fileURLToPath(new URL("read-model.ts", import.meta.url));
/**
 * Limits of the memory in addition to the file: a multiple of its length, and what a process needs for an empty file.
 */
const growthMax = 3;
const ownBytesMax = 48 * 2 ** 20;

let directory: string;

before(async () => {
  directory = await mkdtemp(join(tmpdir(), "galatea-large-trees-"));
});

after(() => rm(directory, { recursive: true }));

/** Returns a complete tree of `depth` levels in XGBoost's JSON. */
function writtenTree(depth: number): string {
  const nodes = Array.from({ length: 2 ** (depth + 1) - 1 }, (_, node) => node);
  const splitCount = 2 ** depth - 1;
  const list = (number: (node: number) => number | string) => `[${nodes.map(number).join(",")}]`;
  const floats = () => list((node) => (((node * 2654435761) % 99991) / 99991).toExponential(7));
  const members = {
    base_weights: floats(),
    categories: "[]",
    categories_nodes: "[]",
    categories_segments: "[]",
    categories_sizes: "[]",
    default_left: list(() => 0),
    id: "0",
    left_children: list((node) => (node < splitCount ? 2 * node + 1 : -1)),
    loss_changes: floats(),
    parents: list((node) => (node === 0 ? 2147483647 : (node - 1) >> 1)),
    right_children: list((node) => (node < splitCount ? 2 * node + 2 : -1)),
    split_conditions: floats(),
    split_indices: list((node) => node % 32),
    split_type: list(() => 0),
    sum_hessian: floats(),
    tree_param: `{"num_deleted":"0","num_feature":"32","num_nodes":"${nodes.length}","size_leaf_vector":"1"}`,
  };
  return `{${Object.entries(members)
    .map(([name, value]) => `"${name}":${value}`)
    .join(",")}}`;
}

async function writeModel(name: string, shape: { readonly treeCount: number; readonly depth: number }) {
  const tree = writtenTree(shape.depth);
  const trees = Array.from({ length: shape.treeCount }, () => tree).join(",");
  const model = `{"gbtree_model_param":{},"tree_info":[${Array.from({ length: shape.treeCount }, () => 0).join(",")}],"trees":[${trees}]}`;
  const text = `{"learner":{"gradient_booster":{"model":${model},"name":"gbtree"},"learner_model_param":{"base_score":"5E-1","num_class":"0","num_feature":"32","num_target":"1"},"objective":{"name":"reg:squarederror"}},"version":[3,2,0]}`;
  const path = join(directory, name);
  await writeFile(path, text);
  return { path, byteLength: text.length };
}

for (const shape of [
  { treeCount: 4000, depth: 6 },
  { treeCount: 1, depth: 18 },
]) {
  test(`reading the JSON of ${shape.treeCount} trees of ${shape.depth} levels takes at most three times the file's length of additional memory`, async () => {
    const { path, byteLength } = await writeModel(`${shape.treeCount}.json`, shape);
    assert.ok(byteLength > 35_000_000, `${byteLength} bytes`);
    const { stdout } = await promisify(execFile)(process.execPath, [program, path, "xgboost_json"]);
    const grown = Number(stdout);
    assert.ok(grown <= growthMax * byteLength + ownBytesMax, `${grown} bytes for a file of ${byteLength}`);
  });
}
