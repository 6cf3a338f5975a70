import assert from "node:assert/strict";
import { link, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { InferenceError, silentLogger } from "../../base/index.ts";
import { completeConfig, type ModelConfig, parseConfigText } from "../../modelconfig/index.ts";
import { createArena, type Arena } from "../../tensor/index.ts";
import type { Backend, LoadContext, LoadedModel, ModelSource } from "../backend.ts";
import { onMachine } from "../device-bytes.ts";
import { noNamespaceMetrics } from "../no-namespace-metrics.ts";
import { noOtherModels } from "../no-other-models.ts";
import { createFilBackend } from "./fil-backend.ts";

let root: string;
let converted: string;
let arena: Arena;
let backend: Backend;
/** What the ONNX Runtime backend was asked to load. */
let loads: { source: ModelSource; config: ModelConfig; context: LoadContext }[];
/** What it refuses a load with. */
let refusal: InferenceError | null;

/** Loads whatever it is given, and runs nothing. */
const onnx: Backend = {
  name: "onnxruntime",
  complete: (_source, config) => Promise.resolve(config),
  estimateBytes: () => Promise.resolve(null),
  load: (source, config, context): Promise<LoadedModel> => {
    if (refusal !== null) return Promise.reject(refusal);
    loads.push({ source, config, context });
    return Promise.resolve({
      instances: [],
      memoryBytes: () => Promise.resolve(onMachine(7)),
      [Symbol.asyncDispose]: () => Promise.resolve(),
    });
  },
  warmUp: () => Promise.resolve(),
  [Symbol.asyncDispose]: () => Promise.resolve(),
};

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "fil-backend-"));
  converted = join(root, "converted");
  arena = createArena({ capacityBytes: 1 << 20 });
  loads = [];
  refusal = null;
  const onnxConfig = new Map([["inter_op_thread_count", "3"]]);
  backend = createFilBackend({ onnx, onnxConfig, directory: converted, log: silentLogger });
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
  const given = Object.entries({ model_type: "lightgbm", is_classifier: "false", ...parameters });
  const config = completeConfig(
    parseConfigText(
      `backend: "fil" max_batch_size: 8 instance_group { kind: KIND_CPU }
       input { name: "input__0" data_type: TYPE_FP32 dims: 2 } output { name: "output__0" data_type: TYPE_FP32 dims: 1 }
       ${given.map(([key, value]) => `parameters { key: "${key}" value { string_value: "${value}" } }`).join("\n")}`,
      "config.pbtxt",
    ),
    { directoryName: source.servedName, servedName: source.servedName, versionEntries: [], gpuCount: 0 },
  );
  const context: LoadContext = {
    arena,
    backendConfig: new Map(),
    onHealth: () => {},
    others: noOtherModels,
    metrics: noNamespaceMetrics,
    signal: new AbortController().signal,
  };
  return await backend.load(source, await backend.complete(source, config, context), context);
}

const convertedCount = async () => (await readdir(converted)).length;

test("what trees are converted to is loaded as an ONNX model with the same tensors, and charged as that", async () => {
  await using model = await load(await written("a"), { cpu_nthread: "2" });
  const [{ source, config, context }] = loads as [(typeof loads)[0]];
  assert.ok((await readFile(join(source.versionDirectory, "model.onnx"))).includes("TreeEnsembleRegressor"));
  assert.equal(source.servedName, "a");
  assert.equal(config.defaultModelFilename, "model.onnx");
  assert.deepEqual([...config.parameters], [["intra_op_thread_count", "2"]]);
  assert.deepEqual([...context.backendConfig], [["inter_op_thread_count", "3"]]);
  assert.deepEqual(await model.memoryBytes(), onMachine(7));
});

test("models that share a file share what it is converted to, which goes with the last of them", async () => {
  const first = await written("a");
  const second = await sourceOf("b");
  await link(join(first.versionDirectory, "model.txt"), join(second.versionDirectory, "model.txt"));
  const [one, two] = await Promise.all([load(first), load(second)]);
  assert.equal(await convertedCount(), 1);
  assert.equal(loads[0]!.source.versionDirectory, loads[1]!.source.versionDirectory);
  const other = await load(second, { is_classifier: "true" });
  assert.equal(await convertedCount(), 2);
  await one[Symbol.asyncDispose]();
  await other[Symbol.asyncDispose]();
  assert.equal(await convertedCount(), 1);
  await two[Symbol.asyncDispose]();
  assert.equal(await convertedCount(), 0);
});

test("a load that fails leaves nothing behind, and its file can be loaded once it is put right", async () => {
  const source = await written("a", text.replace("leaf_value=2", "leaf_value=two"));
  await assert.rejects(load(source), {
    code: "INVALID_ARG",
    message: `unable to read '${source.versionDirectory}/model.txt' as lightgbm: the value of 'leaf_value' has 'two', which is no number`,
  });
  refusal = new InferenceError("UNAVAILABLE", "no more sessions");
  await written("a");
  await assert.rejects(load(source), refusal);
  assert.equal(await convertedCount(), 0);
  refusal = null;
  await using _model = await load(source);
  assert.equal(await convertedCount(), 1);
});
