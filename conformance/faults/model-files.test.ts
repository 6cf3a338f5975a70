/** Truncated, damaged and malicious model files of ONNX and trees: each fails only its own load, with an error. */
import assert from "node:assert/strict";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { encodeOnnx, type OnnxGraph, type OnnxModel } from "@galatea/server/onnx-file";
import { modelTypes, type ModelType } from "../../packages/runtimes/src/trees/fil-parameters.ts";
import { type HttpResponse, errorOf, infer, load, outputOf, unload } from "./http-client.ts";
import { completeModel, dividingAtLoad, harmless, slow, writeModel } from "./onnx-models.ts";
import { openServing, type Serving } from "./serving.ts";

let serving: Serving;

before(async () => {
  serving = await openServing({
    write: async ({ repository }) => {
      const negating = { ...harmless, inputs: harmless.inputs!.map((each) => ({ ...each, dims: [2] })) };
      await writeNeighbour(repository, "good", `backend: "onnxruntime"`);
      await writeModel(join(repository, "good", "1", "model.onnx"), negating);
      await writeNeighbour(repository, "trees", treesText("lightgbm", 1));
      await writeFile(join(repository, "trees", "1", "model.txt"), await treesFile("categories.txt"));
    },
    flags: ["--model-control-mode=explicit", "--load-model=good", "--load-model=trees"],
  });
});

after(() => serving?.[Symbol.asyncDispose]());

async function writeNeighbour(repository: string, name: string, config: string): Promise<void> {
  await mkdir(join(repository, name, "1"), { recursive: true });
  await writeFile(join(repository, name, "config.pbtxt"), config);
}

const treesFile = (name: string) => readFile(new URL(`../fuzz/trees/${name}`, import.meta.url));

function treesText(type: ModelType, columns: number): string {
  return `backend: "fil" max_batch_size: 8 input { name: "input__0" data_type: TYPE_FP32 dims: 3 }
    output { name: "output__0" data_type: TYPE_FP32 dims: ${columns} }
    parameters { key: "model_type" value { string_value: "${type}" } } parameters { key: "is_classifier" value { string_value: "false" } }`;
}

const onnxConfig = { backend: "onnxruntime" };

function treesConfig(type: ModelType, columns: number): object {
  return {
    backend: "fil",
    max_batch_size: 8,
    input: [{ name: "input__0", data_type: "TYPE_FP32", dims: [3] }],
    output: [{ name: "output__0", data_type: "TYPE_FP32", dims: [columns] }],
    parameters: { model_type: { string_value: type }, is_classifier: { string_value: "false" } },
  };
}

const tensor = (name: string, shape: readonly number[], data: readonly number[]) =>
  JSON.stringify({ inputs: [{ name, datatype: "FP32", shape, data }] });

/** Checks that both neighbours respond as before. */
async function assertNeighbours(): Promise<void> {
  const { httpPort } = serving.server;
  assert.deepEqual(outputOf(await infer(httpPort, "good", tensor("x", [2], [1, 2])), "y"), [-1, -2]);
  const [score] = outputOf(await infer(httpPort, "trees", tensor("input__0", [1, 3], [1, 3, 2])), "output__0");
  assert.equal(typeof score, "number");
}

interface ModelFile {
  readonly name: string;
  readonly config: object;
  readonly fileName: string;
  readonly bytes: Uint8Array;
}

async function loadFile({ config, fileName, bytes }: ModelFile): Promise<HttpResponse> {
  const parameters = {
    config: JSON.stringify(config),
    [`file:1/${fileName}`]: Buffer.from(bytes).toString("base64"),
  };
  return await load(serving.server.httpPort, "tried", { parameters });
}

/** Checks that the load is rejected with an error that is not a crash of a process, and that the neighbours respond. */
async function assertRefused(file: ModelFile): Promise<void> {
  const response = await loadFile(file);
  const about = `${file.name}: ${response.status} ${response.body.toString().slice(0, 400)}`;
  assert.equal(response.status, 400, about);
  const { error } = JSON.parse(response.body.toString()) as { error: string };
  assert.match(error, /^load failed for model 'tried'.{20}/s, about);
  await assertNeighbours();
}

const onnxFile = (name: string, bytes: Uint8Array): ModelFile => ({
  name,
  config: onnxConfig,
  fileName: "model.onnx",
  bytes,
});
const onnx = (name: string, model: Partial<OnnxModel>) => onnxFile(name, encodeOnnx(completeModel(model)));

async function wholeFiles(): Promise<readonly ModelFile[]> {
  const trees = [
    ["xgboost", "dart.model", 1],
    ["xgboost_json", "categories.json", 1],
    ["xgboost_ubj", "vectors.ubj", 2],
    ["lightgbm", "categories.txt", 1],
    ["treelite_checkpoint", "classes.tl", 3],
  ] as const;
  const files = trees.map(async ([type, name, columns]) => ({
    name,
    config: treesConfig(type, columns),
    fileName: modelTypes[type],
    bytes: new Uint8Array(await treesFile(name)),
  }));
  return [onnx("slow", slow(2)), ...(await Promise.all(files))];
}

test("a truncated file is rejected, wherever it ends", async () => {
  for (const file of await wholeFiles()) {
    assert.equal((await loadFile(file)).status, 200, file.name);
    // LightGBM's text after its trees is only needed for training; ONNX's last field in this file is the version of its
    // operators.
    const text = Buffer.from(file.bytes).toString("latin1");
    const end = file.fileName === "model.txt" ? text.indexOf("end of trees") : file.bytes.length - 12;
    for (let cut = 0; cut < 16; cut += 1) {
      const length = Math.floor((cut / 16) * end);
      await assertRefused({ ...file, name: `${file.name} cut at ${length}`, bytes: file.bytes.subarray(0, length) });
    }
  }
});

test("a file with a flipped bit is rejected or loads as a different model, and affects no other model", async () => {
  let random = 1;
  const next = (below: number) => (random = (random * 48271) % 2147483647) % below;
  let refusedCount = 0;
  let triedCount = 0;
  for (const file of await wholeFiles()) {
    for (let flip = 0; flip < 24; flip += 1) {
      const bytes = file.bytes.slice();
      const position = next(bytes.length);
      bytes[position] = (bytes[position] as number) ^ (1 << next(8));
      const { status, body } = await loadFile({ ...file, bytes });
      triedCount += 1;
      assert.ok(status === 200 || status === 400, `${file.name} at ${position}: ${status} ${body.toString()}`);
      if (status === 400) refusedCount += 1;
      else assert.equal((await unload(serving.server.httpPort, "tried")).status, 200);
      await assertNeighbours();
    }
  }
  assert.ok(refusedCount > triedCount / 5, `${refusedCount} of ${triedCount} were refused`);
});

const x = { name: "x", type: "FLOAT", dims: [2] } as const;
const y = { name: "y", type: "FLOAT", dims: [2] } as const;
const operator = (name: string, inputs: readonly string[], outputs: readonly string[], attributes = {}) => ({
  operator: name,
  domain: "",
  inputs,
  outputs,
  attributes,
});

/** y = x inside this number of nested conditions. */
function conditions(depth: number): readonly OnnxGraph["operators"][number][] {
  if (depth === 0) return [operator("Identity", ["x"], ["y"])];
  const branch = (): OnnxGraph => ({
    graphName: `at ${depth}`,
    inputs: [],
    outputs: [y],
    constants: [],
    operators: conditions(depth - 1),
  });
  const always = branch();
  return [operator("If", ["c"], ["y"], { then_branch: always, else_branch: { ...always, operators: conditions(0) } })];
}

const c = { name: "c", type: "BOOL", dims: [], bytes: Uint8Array.of(1) } as const;
const constant = (dims: readonly number[], bytes: OnnxModel["constants"][number]["bytes"]) => ({
  inputs: [x],
  outputs: [y],
  constants: [{ name: "a", type: "FLOAT", dims, bytes } as const],
  operators: [operator("Add", ["x", "a"], ["y"])],
});
const graph = (operators: OnnxModel["operators"], more: Partial<OnnxModel> = {}) => ({
  inputs: [x],
  outputs: [y],
  operators,
  ...more,
});
const external = (location: string, offset = 0) => constant([2], { location, offset, byteLength: 8 });
const count = (elements: number) => ({
  name: "n",
  type: "INT64" as const,
  dims: [1],
  bytes: new Uint8Array(BigInt64Array.of(BigInt(elements)).buffer),
});

/** Files that were written to be rejected. */
const madeToHarm: readonly ModelFile[] = [
  onnxFile("nothing", new Uint8Array(0)),
  onnxFile("zeros", new Uint8Array(100_000)),
  onnxFile(
    "noise",
    Uint8Array.from({ length: 100_000 }, (_, position) => Math.imul(position + 1, 2654435761) >>> 13),
  ),
  onnxFile("an archive", Buffer.from("PK\x03\x04".padEnd(1000, "\0"), "latin1")),
  // A field of 2^63 bytes.
  onnxFile("endless field", Uint8Array.of(0x3a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f)),
  onnx("constant without bytes", constant([2 ** 40], new Uint8Array(0))),
  onnx("constant of fewer bytes", constant([1000], new Uint8Array(8))),
  onnx("constant of more elements than can be counted", constant([2 ** 40, 2 ** 40], new Uint8Array(8))),
  onnx("constant of negative size", constant([-2], new Uint8Array(8))),
  onnx("data of the system", external("../../../../../../../../etc/passwd")),
  onnx("a system file, by its absolute path", external("/etc/passwd")),
  onnx("data of a neighbour", external("../../good/1/model.onnx")),
  onnx("missing data", external("weights.bin")),
  onnx("data after the end", external("model.onnx", 2 ** 40)),
  onnx("conditions within conditions", { ...graph(conditions(200)), constants: [c] }),
  onnx(
    "a circle",
    graph([operator("Add", ["x", "b"], ["a"]), operator("Neg", ["a"], ["b"]), operator("Neg", ["b"], ["y"])]),
  ),
  onnx("an output twice", graph([operator("Neg", ["x"], ["y"]), operator("Abs", ["x"], ["y"])])),
  onnx("an output from nowhere", graph([operator("Neg", ["x"], ["z"])])),
  onnx("an input from nowhere", graph([operator("Neg", ["z"], ["y"])])),
  onnx("an unknown operator", graph([operator("Harm", ["x"], ["y"])])),
  onnx("an operator of an unknown domain", graph([{ ...operator("Neg", ["x"], ["y"]), domain: "com.example" }])),
  onnx("operators of a version to come", graph([operator("Neg", ["x"], ["y"])], { opsets: { "": 9999 } })),
];

for (const file of madeToHarm) {
  test(`${file.name}: the load fails with a sentence`, async () => {
    await assertRefused(file);
  });
}

test("a file that crashes the process that reads it is rejected, and other models respond", async () => {
  const fixed = { ...dividingAtLoad, inputs: [{ name: "x", type: "INT32", dims: [1] } as const] };
  await assertRefused(onnx("dividing at load", fixed));
});

test("a model that allocates too much memory fails its request, and no other model", async () => {
  const file = onnx("more elements than there is memory", {
    ...graph([
      operator("ConstantOfShape", ["n"], ["many"]),
      operator("ReduceMax", ["many"], ["m"], { keepdims: 1n }),
      operator("Add", ["x", "m"], ["y"]),
    ]),
    constants: [count(2 ** 44)],
  });
  assert.equal((await loadFile(file)).status, 200);
  const response = await infer(serving.server.httpPort, "tried", tensor("x", [2], [1, 2]));
  assert.match(errorOf(response, 500), /Failed to allocate memory/);
  await assertNeighbours();
});
