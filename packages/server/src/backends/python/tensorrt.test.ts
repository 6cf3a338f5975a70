/**
 * The backend `tensorrt` with a fake of TensorRT and of CUDA's library (`fake-tensorrt`). This project's code runs; no code runs on a GPU.
 */
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { printConfigJson } from "../../modelconfig/index.ts";
import type { InferenceResponse } from "../../inference/index.ts";
import type { LoadedModel } from "../backend.ts";
import {
  infer,
  floats,
  floatsOf,
  openFixture,
  pythonEnv,
  only,
  request,
  tensor,
  type PythonFixture,
  type WrittenModel,
} from "./python-fixture.ts";
import type { PythonRunner } from "./runners.ts";

const runner: PythonRunner = {
  directory: fileURLToPath(new URL("../../../python/galatea_frameworks/tensorrt", import.meta.url)),
  filename: "model.py",
  mapsFiles: false,
  environment: null,
};
const fake = fileURLToPath(new URL("fake-tensorrt", import.meta.url));

const open = (env: Readonly<Record<string, string>>) =>
  openFixture({ gpuCount: 2, pythonEnv: { ...pythonEnv, ...env }, findRunner: () => Promise.resolve(runner) });

let fixture: PythonFixture;
before(async () => {
  fixture = await open({ PYTHONPATH: fake });
});
after(() => fixture[Symbol.asyncDispose]());

const input = (name: string, shape: number[], more: object = {}) => ({
  name,
  mode: "INPUT",
  dtype: "FLOAT",
  shape,
  ...more,
});
const output = (name: string, shape: number[], op: string[], more: object = {}) => ({
  name,
  mode: "OUTPUT",
  dtype: "FLOAT",
  shape,
  op,
  ...more,
});
/** A profile in which all inputs have the same shape. */
const profile = (names: string[], ...shapes: number[][]) => Object.fromEntries(names.map((name) => [name, shapes]));

const sums = {
  tensors: [
    input("A", [-1, 2]),
    input("B", [-1, 2]),
    output("SUM", [-1, 2], ["sum", "A", "B"]),
    output("PROFILE", [-1, 2], ["profile", "A"]),
  ],
  profiles: [profile(["A", "B"], [1, 2], [1, 2], [2, 2]), profile(["A", "B"], [2, 2], [4, 2], [8, 2])],
};

async function written(name: string, plan: object | string, more: string, from: PythonFixture): Promise<WrittenModel> {
  const model = await from.source(name, "", `platform: "tensorrt_plan" ${more}`);
  const text = typeof plan === "string" ? plan : JSON.stringify(plan);
  await writeFile(join(model.source.versionDirectory, "model.plan"), text);
  return model;
}

async function load(name: string, plan: object | string, more = "", from = fixture): Promise<LoadedModel> {
  return await from.loadWritten(await written(name, plan, more, from));
}

const rows = (name: string, values: number[][]) => ({
  ...floats(name, values.flat()),
  shape: [values.length, values[0]!.length],
});

const responses = ({ outputs }: InferenceResponse) =>
  Object.fromEntries(outputs.map((one) => [one.name, floatsOf(one)]));

test("a plan needs no configuration: tensors, the largest batch and the scheduler come from its engine", async () => {
  const bare = await written("bare", sums, "", fixture);
  const found = printConfigJson(await fixture.completeWritten(bare)) as unknown as {
    max_batch_size: number;
    dynamic_batching: object;
    input: object[];
    output: object[];
  };
  assert.equal(found.max_batch_size, 2, "the profile that is used when none is named");
  assert.ok(found.dynamic_batching);
  assert.deepEqual(
    [...found.input, ...found.output].map((each) => {
      const { name, data_type: type, dims } = each as { name: string; data_type: string; dims: string[] };
      return [name, type, dims.map(Number)];
    }),
    [
      ["A", "TYPE_FP32", [2]],
      ["B", "TYPE_FP32", [2]],
      ["SUM", "TYPE_FP32", [2]],
      ["PROFILE", "TYPE_FP32", [2]],
    ],
  );
});

test("a batch is one run, and each of its requests has its own rows", async () => {
  await using loaded = await load("sums", sums);
  const one = request([rows("A", [[1, 2]]), rows("B", [[10, 20]])]);
  const other = request([rows("A", [[3, 4]]), rows("B", [[30, 40]])]);
  const { outcomes } = await only(loaded).execute([one, other]);
  assert.deepEqual(
    outcomes.map((each) => responses(each as InferenceResponse)),
    [
      { SUM: [11, 22], PROFILE: [0, 0] },
      { SUM: [33, 44], PROFILE: [0, 0] },
    ],
  );
});

test("a batch runs with the best optimization profile, and gets Triton's error if none allows it", async () => {
  await using loaded = await load(
    "profiles",
    sums,
    'max_batch_size: 8 instance_group { count: 1 gpus: [ 1 ] profile: [ "0", "1" ] }',
  );
  const used = async (count: number) => {
    const values = Array.from({ length: count }, () => [1, 2]);
    return responses(await infer(loaded, [rows("A", values), rows("B", values)]))["PROFILE"]![0];
  };
  assert.deepEqual([await used(1), await used(2), await used(3), await used(8)], [0, 0, 1, 1]);
  const many = Array.from({ length: 9 }, () => [1, 2]);
  await assert.rejects(infer(loaded, [rows("A", many), rows("B", many)]), {
    message:
      "request specifies invalid shape for input 'A' for profiles_0_0. Error details: model expected the shape of dimension 0 to be " +
      "between 1 and 2 but received 9",
  });
  assert.ok(
    fixture.log.some((line) =>
      line.includes(
        "failed to find any Optimization Profile among [ 0[0] 1[1]] to support the requested dimensions (or shape values), " +
          "proceeding with first profile.",
      ),
    ),
    fixture.log.join("\n"),
  );
});

test("an output whose shape depends on values has its actual shape", async () => {
  const plan = {
    tensors: [input("A", [-1]), output("KEPT", [-1], ["positive", "A"])],
    profiles: [profile(["A"], [1], [4], [8])],
  };
  const tensors = `input { name: "A" data_type: TYPE_FP32 dims: [ -1 ] } output { name: "KEPT" data_type: TYPE_FP32 dims: [ -1 ] }`;
  await using loaded = await load("kept", plan, tensors);
  for (const [value, kept] of [
    [
      [1, -1, 2],
      [1, 2],
    ],
    [[-1], []],
    [
      [3, 4, 5, 6, 7],
      [3, 4, 5, 6, 7],
    ],
  ] as const)
    assert.deepEqual(responses(await infer(loaded, [floats("A", value)])), { KEPT: kept });
});

test("shape tensors decide an output's shape, and requests with different values run separately", async () => {
  const plan = {
    tensors: [
      input("A", [-1, 2]),
      input("LIKE", [2], { dtype: "INT32", is_shape: true }),
      output("MADE", [-1, -1], ["zeros", "LIKE"]),
      output("SHAPE", [2], ["values", "LIKE"], { dtype: "INT64", is_shape: true }),
    ],
    profiles: [
      {
        A: [
          [1, 2],
          [2, 2],
          [4, 2],
        ],
        LIKE: [
          [1, 1],
          [2, 4],
          [4, 8],
        ],
      },
    ],
  };
  const like = (length: number) => tensor("LIKE", "INT32", [1, 1], new Uint8Array(new Int32Array([length]).buffer));
  await using loaded = await load("shaped", plan);
  const requests = [3, 5, 3].map((length) => request([rows("A", [[1, 2]]), like(length)]));
  const { outcomes } = await only(loaded).execute(requests);
  assert.deepEqual(
    outcomes.map((each) => (each as InferenceResponse).outputs.map(({ name, shape }) => [name, ...shape])),
    [3, 5, 3].map((length) => [
      ["MADE", 1, length],
      ["SHAPE", 1, 1],
    ]),
  );
  await assert.rejects(infer(loaded, [rows("A", [[1, 2]]), like(9)]), {
    message:
      "request specifies invalid shape values for input 'LIKE' for shaped_0. Error details: model expected the shape of dimension 1 " +
      "to be between 1 and 8 but received 9",
  });
});

test("all datatypes round-trip, including those that numpy lacks", async () => {
  for (const [dtype, datatype, bytes] of [
    ["HALF", "FP16", [0, 60, 0, 64]],
    ["BF16", "BF16", [128, 63, 0, 64]],
    ["INT8", "INT8", [255, 3]],
    ["UINT8", "UINT8", [255, 3]],
    ["INT32", "INT32", [255, 0, 0, 0, 1, 2, 3, 4]],
    ["INT64", "INT64", [255, 0, 0, 0, 1, 2, 3, 4, 9, 9, 9, 9, 9, 9, 9, 9]],
    ["BOOL", "BOOL", [1, 0]],
  ] as const) {
    const plan = {
      tensors: [input("A", [2], { dtype }), output("B", [2], ["same", "A"], { dtype })],
      profiles: [profile(["A"], [2], [2], [2])],
    };
    const dims = `data_type: TYPE_${datatype} dims: [ 2 ]`;
    await using loaded = await load(
      `type_${dtype.toLowerCase()}`,
      plan,
      `input { name: "A" ${dims} } output { name: "B" ${dims} }`,
    );
    const { outputs } = await infer(loaded, [tensor("A", datatype, [2], Uint8Array.from(bytes))]);
    assert.deepEqual([outputs[0]!.datatype, [...outputs[0]!.data]], [datatype, bytes], datatype);
  }
});

test("mismatches of a plan and its configuration are rejected with Triton's errors", async () => {
  const io = (a: string, b = 'name: "B" data_type: TYPE_FP32 dims: [ 2 ]') => `input { ${a} } output { ${b} }`;
  const right = 'name: "A" data_type: TYPE_FP32 dims: [ 2 ]';
  const same = (more: object = {}, output_: object = {}) => ({
    tensors: [input("A", [2], more), output("B", [2], ["same", "A"], output_)],
    profiles: [profile(["A"], [2], [2], [2])],
  });
  const cases: readonly (readonly [string, object | string, string, RegExp])[] = [
    ["no plan", "no plan", io(right), /^unable to load plan file to auto complete config: .*\/model\.plan$/],
    [
      "CPU",
      same(),
      `${io(right)} instance_group { kind: KIND_CPU }`,
      /^unable to load model 'r1', TensorRT backend supports only GPU device$/,
    ],
    [
      "implicit batch",
      { ...same(), implicit: true },
      io(right),
      /^unable to load model 'r2': its plan has an implicit batch dimension; build it anew with an explicit one$/,
    ],
    [
      "name",
      same(),
      io('name: "X" data_type: TYPE_FP32 dims: [ 2 ]'),
      /^unexpected inference input 'X', allowed inputs are: A$/,
    ],
    [
      "datatype",
      same(),
      io('name: "A" data_type: TYPE_INT32 dims: [ 2 ]'),
      /^unexpected datatype TYPE_FP32 for inference input 'A', expecting TYPE_INT32 for r4_0$/,
    ],
    [
      "strings",
      same(),
      io('name: "A" data_type: TYPE_STRING dims: [ 2 ]'),
      /^unsupported datatype TYPE_STRING for input 'A' for model 'r5'$/,
    ],
    [
      "dims",
      same(),
      io('name: "A" data_type: TYPE_FP32 dims: [ 3 ]'),
      /^model 'r6', tensor 'A': the model expects 1 dimensions \(shape \[2\]\) but the model configuration specifies 1 dimensions \(shape \[3\]\)$/,
    ],
    [
      "batch",
      same(),
      `max_batch_size: 3 ${io(right)}`,
      /^autofill failed for model 'r7': configuration specified max-batch 3 but TensorRT engine only supports max-batch 0$/,
    ],
    [
      "profile",
      sums,
      'instance_group { profile: [ "2" ] }',
      /^unable to autofill for 'r8', configuration specified invalid profile 2 \. Number of profiles supported by TensorRT engine: 2$/,
    ],
    ["profile's name", sums, 'instance_group { profile: [ "best" ] }', /^unable to parse 'best': stoi$/],
    [
      "shape tensor",
      same(),
      io(`${right} is_shape_tensor: true`),
      /^'A' is incorrectly specified as a shape tensor\.$/,
    ],
    [
      "format",
      same({ format: "CHW4" }),
      io(right),
      /^input 'A' for model 'r11' uses a non-linear IO format, which is not supported/,
    ],
    [
      "output",
      same({}, { dtype: "FP8" }),
      io(right),
      /^unexpected datatype TYPE_INVALID for inference output 'B', expecting TYPE_FP32 for r12_0$/,
    ],
    [
      "strategy",
      same(),
      `${io(right)} parameters { key: "execution_context_allocation_strategy" value { string_value: "X" } }`,
      /^Invalid value for 'execution_context_allocation_strategy': 'X' for model instance 'r13'\. Supported values are 'STATIC' and 'ON_PROFILE_CHANGE'\.$/,
    ],
    [
      "memory",
      {
        ...same({ shape: [2 ** 19] }, { shape: [2 ** 19] }),
        profiles: [profile(["A"], [2 ** 19], [2 ** 19], [2 ** 19])],
      },
      io(right.replace("[ 2 ]", "[ 524288 ]"), 'name: "B" data_type: TYPE_FP32 dims: [ 524288 ]'),
      /^OutOfDeviceMemory: unable to allocate memory for r14_0: out of memory/,
    ],
  ];
  for (const [index, [what, plan, more, message]] of cases.entries())
    await assert.rejects(load(`r${index}`, plan, more), { message }, what);
});

test("a failed run fails its request with the reason, and the next one succeeds", async () => {
  const plan = {
    tensors: [input("A", [-1]), output("B", [-1], ["fails", "A"])],
    profiles: [profile(["A"], [1], [1], [4])],
  };
  await using loaded = await load(
    "fails",
    plan,
    'input { name: "A" data_type: TYPE_FP32 dims: [ -1 ] } output { name: "B" data_type: TYPE_FP32 dims: [ -1 ] }',
  );
  for (let i = 0; i < 2; i += 1)
    await assert.rejects(infer(loaded, [floats("A", [1])]), { message: "unable to enqueue for inference fails_0" });
});

test("without TensorRT's package the load fails with that reason", async () => {
  await using bare = await open({});
  await assert.rejects(load("bare", sums, "", bare), {
    message:
      /^TensorRT cannot be imported where Python models run .*: No module named 'tensorrt'\. Its package there is 'tensorrt'/,
  });
});
