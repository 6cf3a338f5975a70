import assert from "node:assert/strict";
import { cp, link, mkdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type InferenceResponse, releaseResponse, DeferredResponses, type Released } from "../../inference/index.ts";
import { joinBytesElements, splitBytesElements, type Tensor } from "../../tensor/index.ts";
import { type OnnxModel, writeOnnxFile } from "../../onnx-file/index.ts";
import { InferenceError } from "@galatea/base";
import type { LoadedModel, ModelSource } from "../backend.ts";
import { bytes, floats, numbers, openOnnxFixture, request, type OnnxFixture } from "./onnxruntime-fixtures.ts";

function operator(name: string, inputs: readonly string[], outputs: readonly string[]) {
  return { operator: name, domain: "", inputs, outputs, attributes: {} };
}

/** sum = a + b, FP32 [batch, n]. */
const addModel: Partial<OnnxModel> = {
  inputs: [
    { name: "a", type: "FLOAT", dims: ["batch", "n"] },
    { name: "b", type: "FLOAT", dims: ["batch", "n"] },
  ],
  outputs: [{ name: "sum", type: "FLOAT", dims: ["batch", "n"] }],
  operators: [operator("Add", ["a", "b"], ["sum"])],
};

const weightBytes = 16 * 2 ** 20;

/**
 * `addModel` with weights. A session without weights uses less memory than its process allocates and frees on its own, so its charge cannot
 * be tested.
 */
const heavyAddModel: Partial<OnnxModel> = {
  ...addModel,
  constants: [{ name: "zeros", type: "FLOAT", dims: [weightBytes / 4], bytes: new Uint8Array(weightBytes) }],
  operators: [
    operator("Shape", ["a"], ["places"]),
    operator("Gather", ["zeros", "places"], ["picked"]),
    operator("ReduceSum", ["picked"], ["zero"]),
    operator("Add", ["a", "b"], ["added"]),
    operator("Add", ["added", "zero"], ["sum"]),
  ],
};

/** Returns whether the memory of its session is charged to this model. */
async function isCharged(model: LoadedModel): Promise<boolean> {
  return (await model.memoryBytes()).get("machine")! > weightBytes / 2;
}

function responded(outcome: Released | undefined): InferenceResponse {
  if (outcome instanceof InferenceError) throw outcome;
  if (outcome === undefined || outcome instanceof DeferredResponses) throw new Error("no response");
  return outcome;
}

function outputsOf(outcomes: readonly Released[]): Record<string, number[]>[] {
  return outcomes.map((outcome) =>
    Object.fromEntries(responded(outcome).outputs.map((tensor) => [tensor.name, numbers(tensor)])),
  );
}

let shop: OnnxFixture;

before(async () => {
  shop = await openOnnxFixture();
});

after(() => shop[Symbol.asyncDispose]());

/** Writes `<name>/1/model.onnx`. */
async function write(name: string, model: Partial<OnnxModel>): Promise<ModelSource> {
  const source = await shop.source(name);
  await writeOnnxFile(join(source.versionDirectory, "model.onnx"), {
    graphName: name,
    opsets: { "": 17 },
    inputs: [],
    outputs: [],
    constants: [],
    operators: [],
    ...model,
  });
  return source;
}

test("a model without configuration is completed from its file", async () => {
  const source = await write("bare", addModel);
  const config = await shop.complete(source, "");
  assert.equal(config.maxBatchSize, 4);
  assert.equal(config.scheduling.kind, "dynamic");
  const shapes = (tensors: readonly { name: string; datatype: string; dims: readonly number[] }[]) =>
    tensors.map(({ name, datatype, dims }) => [name, datatype, dims]);
  assert.deepEqual(shapes(config.inputs), [
    ["a", "FP32", [-1]],
    ["b", "FP32", [-1]],
  ]);
  assert.deepEqual(shapes(config.outputs), [["sum", "FP32", [-1]]]);
  assert.equal((await shop.complete(source, "", { "default-max-batch-size": "1" })).scheduling.kind, "direct");

  const fixed = await write("fixed", {
    ...addModel,
    inputs: addModel.inputs!.map((input) => ({ ...input, dims: [3] })),
    outputs: [{ name: "sum", type: "FLOAT", dims: [3] }],
  });
  assert.deepEqual((await shop.complete(fixed, "")).maxBatchSize, 0);
  await assert.rejects(shop.complete(fixed, "max_batch_size: 8"), {
    code: "INVALID_ARG",
    message:
      "autofill failed for model 'fixed': model does not support batching while non-zero max_batch_size is specified",
  });
});

test("a batch is joined, run once and split; each request gets its requested outputs", async () => {
  const source = await write("add", {
    ...addModel,
    outputs: [
      { name: "sum", type: "FLOAT", dims: ["batch", "n"] },
      { name: "difference", type: "FLOAT", dims: ["batch", "n"] },
    ],
    operators: [operator("Add", ["a", "b"], ["sum"]), operator("Sub", ["a", "b"], ["difference"])],
  });
  await using model = await shop.load(source, "max_batch_size: 8");
  assert.deepEqual(
    model.instances.map((instance) => instance.name),
    ["add_0", "add_1"],
  );
  const pair = (rows: number, start: number) => [
    floats(
      "a",
      [rows, 2],
      Array.from({ length: rows * 2 }, (_, i) => start + i),
    ),
    floats(
      "b",
      [rows, 2],
      Array.from({ length: rows * 2 }, () => 1),
    ),
  ];
  const batch = [
    request(pair(1, 10)),
    request(pair(2, 20).toReversed(), ["sum"]),
    request(pair(1, 30), ["difference"]),
  ];
  const { outcomes } = await model.instances[0]!.execute(batch);
  assert.deepEqual(outputsOf(outcomes), [
    { sum: [11, 12], difference: [9, 10] },
    { sum: [21, 22, 23, 24] },
    { difference: [29, 30] },
  ]);
  assert.deepEqual(responded(outcomes[1]).outputs[0]?.shape, [2, 2]);
  assert.ok(shop.arena.usedBytes > 0);
  for (const outcome of outcomes) releaseResponse(responded(outcome));
  assert.equal(shop.arena.usedBytes, 0);
});

test("a single request and adjacent aligned tensors of one block are read without a copy", async () => {
  const source = await write("place", addModel);
  await using model = await shop.load(source, "max_batch_size: 8");
  const block = shop.arena.allocate(64);
  new Float32Array(block.bytes.buffer, block.bytes.byteOffset, 16).set(Array.from({ length: 16 }, (_, i) => i));
  const view = (name: string, start: number): Tensor => ({
    name,
    datatype: "FP32",
    shape: [1, 2],
    data: block.bytes.subarray(start, start + 8),
    block,
  });
  const batch = [request([view("a", 0), view("b", 16)]), request([view("a", 8), view("b", 24)])];
  const { outcomes } = await model.instances[0]!.execute(batch);
  assert.deepEqual(outputsOf(outcomes), [{ sum: [4, 6] }, { sum: [8, 10] }]);
  for (const outcome of outcomes) releaseResponse(responded(outcome));
  block.release();

  const odd = new Uint8Array(9);
  odd.set(new Uint8Array(Float32Array.of(5, 6).buffer), 1);
  const misaligned = bytes("a", "FP32", { shape: [1, 2], data: odd.subarray(1) });
  const one = await model.instances[0]!.execute([request([misaligned, floats("b", [1, 2], [1, 1])])]);
  assert.deepEqual(outputsOf(one.outcomes), [{ sum: [6, 7] }]);
  for (const outcome of one.outcomes) releaseResponse(responded(outcome));
  assert.equal(shop.arena.usedBytes, 0);
});

test("strings are batched too, and outputs may have dynamic sizes", async () => {
  const strings = await write("strings", {
    inputs: [{ name: "x", type: "STRING", dims: ["batch", 2] }],
    outputs: [{ name: "y", type: "STRING", dims: ["batch", 2] }],
    operators: [operator("Identity", ["x"], ["y"])],
  });
  await using model = await shop.load(strings, "max_batch_size: 8");
  const text = (values: string[]) =>
    request([
      bytes("x", "BYTES", {
        shape: [values.length / 2, 2],
        data: joinBytesElements(values.map((value) => new TextEncoder().encode(value))),
      }),
    ]);
  const expected = [
    ["a", ""],
    ["ä\0b", "c", "d", "日"],
  ];
  const { outcomes } = await model.instances[0]!.execute(expected.map(text));
  const decoded = outcomes.map((outcome) =>
    splitBytesElements(responded(outcome).outputs[0]!.data).map((element) => new TextDecoder().decode(element)),
  );
  assert.deepEqual(decoded, expected);
  for (const outcome of outcomes) releaseResponse(responded(outcome));

  const nonZero = await write("nonzero", {
    inputs: [{ name: "x", type: "FLOAT", dims: ["n"] }],
    outputs: [{ name: "y", type: "INT64", dims: [1, "found"] }],
    operators: [operator("NonZero", ["x"], ["y"])],
  });
  await using finder = await shop.load(nonZero, "");
  const found = await finder.instances[0]!.execute([request([floats("x", [4], [0, 5, 0, 7])])]);
  const output = responded(found.outcomes[0]).outputs[0]!;
  assert.deepEqual(
    [output.shape, [...new BigInt64Array(Uint8Array.from(output.data).buffer)]],
    [
      [1, 2],
      [1n, 3n],
    ],
  );
  const none = await finder.instances[0]!.execute([request([floats("x", [2], [0, 0])])]);
  assert.deepEqual(responded(none.outcomes[0]).outputs[0]!.shape, [1, 0]);
  for (const each of [...found.outcomes, ...none.outcomes]) releaseResponse(responded(each));
  assert.equal(shop.arena.usedBytes, 0);
});

test("an output of another size than declared is returned unchanged", async () => {
  // The model declares [batch, n] and returns [n, batch]. The library relies on the declaration until the run.
  const source = await write("liar", {
    inputs: [
      { name: "x", type: "FLOAT", dims: ["batch", "n"] },
      { name: "shape", type: "INT64", dims: [2] },
    ],
    outputs: [{ name: "y", type: "FLOAT", dims: ["batch", "n"] }],
    operators: [operator("Reshape", ["x", "shape"], ["y"])],
  });
  await using model = await shop.load(source, "");
  for (let round = 0; round < 2; round += 1) {
    const shape = bytes("shape", "INT64", { shape: [2], data: new Uint8Array(BigInt64Array.of(3n, 2n).buffer) });
    const x = floats("x", [2, 3], [1, 2, 3, 4, 5, 6]);
    const { outcomes } = await model.instances[0]!.execute([request([x, shape])]);
    assert.deepEqual(responded(outcomes[0]).outputs[0]!.shape, [3, 2]);
    releaseResponse(responded(outcomes[0]));
  }
  assert.equal(shop.arena.usedBytes, 0);
});

test("a failed run fails every request of its batch and leaks no memory", async () => {
  const source = await write("fails", {
    inputs: [
      { name: "x", type: "FLOAT", dims: ["batch", "n"] },
      { name: "y", type: "FLOAT", dims: ["batch", "m"] },
    ],
    outputs: [{ name: "sum", type: "FLOAT", dims: ["batch", "n"] }],
    operators: [operator("Add", ["x", "y"], ["sum"])],
  });
  await using model = await shop.load(source, "max_batch_size: 8");
  const bad = () => request([floats("x", [1, 2], [1, 2]), floats("y", [1, 3], [1, 2, 3])]);
  const { outcomes } = await model.instances[0]!.execute([bad(), bad()]);
  assert.equal(outcomes.length, 2);
  for (const outcome of outcomes) {
    assert.ok(outcome instanceof InferenceError);
    assert.match(outcome.message, /^onnx runtime error \d+: Non-zero status code returned while running Add node/);
  }
  const [instance] = model.instances;
  const batch = [bad(), bad()];
  const running = instance!.execute(batch);
  for (const input of batch) instance!.abandonRequest(input);
  const removed = await running;
  for (const outcome of removed.outcomes) assert.ok(outcome instanceof InferenceError && outcome.code === "CANCELLED");
  // The run continues while one of the two requests waits. Abandoning a request that has already ended has no effect.
  const half = [bad(), bad()];
  const kept = instance!.execute(half);
  for (const input of [half[0]!, batch[1]!]) instance!.abandonRequest(input);
  for (const outcome of (await kept).outcomes)
    assert.ok(outcome instanceof InferenceError && outcome.code === "INTERNAL");
  assert.equal(shop.arena.usedBytes, 0);
});

test("a configuration that does not match the model is rejected with Triton's errors", async () => {
  const source = await write("strict", addModel);
  const list = (kind: string, names: string[], rest: string) =>
    names.map((name) => `${kind} { name: "${name}" ${rest} }`).join("\n");
  const fp32 = "data_type: TYPE_FP32 dims: [ 2 ]";
  const cases: [string, string][] = [
    [
      `${list("input", ["a"], fp32)} ${list("output", ["sum"], fp32)}`,
      "unable to load model 'strict', configuration expects 1 inputs, model provides 2",
    ],
    [
      `${list("input", ["a", "c"], fp32)} ${list("output", ["sum"], fp32)}`,
      "unexpected inference input 'c', allowed inputs are: a, b",
    ],
    [
      `${list("input", ["a", "b"], fp32)} ${list("output", ["total"], fp32)}`,
      "unexpected inference output 'total', allowed outputs are: sum",
    ],
    [
      `${list("input", ["a", "b"], "data_type: TYPE_INT32 dims: [ 2 ]")} ${list("output", ["sum"], fp32)}`,
      "unable to load model 'strict', configuration expects datatype TYPE_INT32 for input 'a', model provides TYPE_FP32",
    ],
    [
      `${list("input", ["a", "b"], "data_type: TYPE_FP32 dims: [ 2, 2 ]")} ${list("output", ["sum"], fp32)}`,
      "model 'strict', tensor 'a': the model expects 2 dimensions (shape [-1,-1]) but the model configuration specifies 3 dimensions " +
        "(an initial batch dimension because max_batch_size > 0 followed by the explicit tensor shape, making complete shape [-1,2,2])",
    ],
  ];
  for (const [tensors, message] of cases) {
    await assert.rejects(shop.load(source, `max_batch_size: 4\n${tensors}`), { code: "INVALID_ARG", message });
  }
  const parameter = (key: string, value: string) =>
    shop.load(source, `parameters { key: "${key}" value { string_value: "${value}" } }`);
  await assert.rejects(parameter("execution_mode", "2"), {
    message: "Invalid configuration value provided. Expected values for  execution_mode are 0 or 1 but got 2 .",
  });
  await assert.rejects(parameter("intra_op_thread_count", "many"), /intra_op_thread_count/);
  await assert.rejects(
    shop.load(source, 'optimization { execution_accelerators { cpu_execution_accelerator { name: "abacus" } } }'),
    { message: "unknown Execution Accelerator 'abacus' is requested" },
  );
  await assert.rejects(
    shop.load(source, 'optimization { execution_accelerators { cpu_execution_accelerator { name: "openvino" } } }'),
    { code: "UNSUPPORTED", message: /^Execution Accelerator 'openvino' is requested for model / },
  );
  // On a machine without a GPU, the accelerator has no effect, and the model is served on the CPU.
  const accelerator = 'optimization { execution_accelerators { gpu_execution_accelerator { name: "tensorrt" } } }';
  await using accelerated = await shop.load(source, accelerator);
  assert.equal(accelerated.instances.length, 2);
  await using own = await parameter("intra_op_thread_count", "2");
  assert.equal(own.instances.length, 2);
});

test("a broken file and a missing one have different errors", async () => {
  const broken = await write("broken", addModel);
  await writeFile(join(broken.versionDirectory, "model.onnx"), "no model");
  await assert.rejects(shop.load(broken, ""), {
    code: "INTERNAL",
    message: /^onnx runtime error 7: Load model from /,
  });
  await rm(join(broken.versionDirectory, "model.onnx"));
  await assert.rejects(shop.load(broken, ""), {
    code: "UNAVAILABLE",
    message: `unable to find '${join(broken.versionDirectory, "model.onnx")}' for model instance 'broken'`,
  });
});

test("models with equal content and settings share one session, charged once", async () => {
  const first = await write("tenant1", heavyAddModel);
  const named = (name: string) => ({
    servedName: name,
    modelDirectory: join(shop.directory, name),
    version: 1,
    versionDirectory: join(shop.directory, name, "1"),
  });
  await mkdir(named("tenant2").versionDirectory, { recursive: true });
  await link(join(first.versionDirectory, "model.onnx"), join(named("tenant2").versionDirectory, "model.onnx"));
  await cp(named("tenant1").modelDirectory, named("tenant3").modelDirectory, { recursive: true });
  const other = await write("tenant4", { ...heavyAddModel, graphName: "other" });
  const models: LoadedModel[] = [];
  for (const source of [first, named("tenant2"), named("tenant3"), other]) {
    models.push(await shop.load(source, "max_batch_size: 4"));
  }
  const charges = () => Promise.all(models.map(isCharged));
  assert.deepEqual(await charges(), [true, false, false, true]);
  // When the charged model is unloaded, the next model is charged.
  await models.shift()![Symbol.asyncDispose]();
  assert.deepEqual(await charges(), [true, false, true]);
  const { outcomes } = await models[0]!.instances[0]!.execute([
    request([floats("a", [1, 1], [1]), floats("b", [1, 1], [2])]),
  ]);
  assert.deepEqual(outputsOf(outcomes), [{ sum: [3] }]);
  releaseResponse(responded(outcomes[0]));
  for (const model of models) await model[Symbol.asyncDispose]();
});

test("model.onnx may be a directory, and a changed file in it changes the model", async () => {
  const source = await write("folder", heavyAddModel);
  const folder = join(source.versionDirectory, "model.onnx");
  await rename(folder, `${folder}.file`);
  await mkdir(folder);
  await rename(`${folder}.file`, join(folder, "model.onnx"));
  await writeFile(join(folder, "weights.bin"), "one");
  await using before_ = await shop.load(source, "max_batch_size: 4");
  await writeFile(join(folder, "weights.bin"), "two");
  await using after_ = await shop.load(source, "max_batch_size: 4");
  assert.deepEqual([await isCharged(before_), await isCharged(after_)], [true, true]);
});
