import assert from "node:assert/strict";
import { mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { InferenceError } from "@galatea/base";
import type { LoadedModel, ModelSource } from "../backend.ts";
import type { DeviceBytes } from "../device-bytes.ts";
import { writeOnnxFile } from "../../onnx-file/index.ts";
import { rejectEmbeddedEngines } from "./embedded-engines.ts";
import { GpuMemory } from "./gpu-memory.ts";
import { noGpus, type OnnxGpus } from "./gpus.ts";
import { isGpuLost } from "./lost-device.ts";
import { floats, libraryPath, numbers, openOnnxFixture, request, type OnnxFixture } from "./onnxruntime-fixtures.ts";
import { providersOnGpu } from "./provider-options.ts";

/** negative = -x, FP32 [n]. */
async function writeNegative(shop: OnnxFixture, name: string): Promise<ModelSource> {
  const source = await shop.source(name);
  await writeOnnxFile(join(source.versionDirectory, "model.onnx"), {
    graphName: name,
    opsets: { "": 17 },
    inputs: [{ name: "x", type: "FLOAT", dims: ["n"] }],
    outputs: [{ name: "negative", type: "FLOAT", dims: ["n"] }],
    constants: [],
    operators: [{ operator: "Neg", domain: "", inputs: ["x"], outputs: ["negative"], attributes: {} }],
  });
  return source;
}

interface Twin extends OnnxGpus {
  readonly requested: { readonly device: number; readonly providers: ReturnType<typeof providersOnGpu> }[];
  /** GPU memory of the fake's process, as the driver reports it. */
  held: DeviceBytes;
}

/**
 * Simulates two GPUs. Everything is as on a machine with GPUs, including separate processes and a separate library path, except for the last
 * step. Sessions get no execution provider, and therefore run on the CPU.
 */
function fake(options: Partial<OnnxGpus> = {}): Twin {
  const gpus: Twin = {
    ...noGpus,
    count: 2,
    requested: [],
    held: new Map(),
    findLibrary: () => Promise.resolve({ libraryPath, processEnv: {} }),
    bytesOf: () => Promise.resolve(gpus.held),
    keepsEngines: true,
    providersOn: (config, device) => {
      gpus.requested.push({ device, providers: providersOnGpu(config, device) });
      return [];
    },
    ...options,
  };
  return gpus;
}

async function negativeOf(model: LoadedModel, values: readonly number[]): Promise<readonly number[][]> {
  const responseCount: number[][] = [];
  for (const instance of model.instances) {
    const execution = await instance.execute([request([floats("x", [values.length], values)])]);
    const [outcome] = execution.outcomes;
    if (outcome === undefined || outcome instanceof InferenceError || !("outputs" in outcome)) throw outcome;
    responseCount.push(numbers(outcome.outputs[0]!));
  }
  return responseCount;
}

const accelerated = (text: string) =>
  `optimization { execution_accelerators { gpu_execution_accelerator [ ${text} ] } } instance_group { kind: KIND_GPU }`;
const parameter = (key: string, value: string) => `parameters { key: "${key}" value: "${value}" }`;

test("each GPU of a group has its own session and instances, and so has the CPU", async () => {
  const gpus = fake();
  await using shop = await openOnnxFixture({ gpus });
  const source = await writeNegative(shop, "placed");
  const groups = "instance_group [ { count: 2 kind: KIND_GPU gpus: [ 1, 0 ] }, { count: 1 kind: KIND_CPU } ]";
  await using model = await shop.load(source, groups);
  assert.deepEqual(
    model.instances.map(({ name }) => name),
    ["placed_0_0", "placed_0_0", "placed_0_1", "placed_0_1", "placed_1_0"],
  );
  assert.deepEqual(
    await negativeOf(model, [1, -2]),
    Array.from({ length: 5 }, () => [-1, 2]),
  );
  const requested = new Map(gpus.requested.map(({ device, providers }) => [device, providers]));
  assert.deepEqual(
    requested,
    new Map([0, 1].map((device) => [device, [{ name: "cuda", options: [["device_id", String(device)]] }]])),
  );
});

test("models are placed on the machine's GPUs by default, and a missing GPU is named in the error", async () => {
  await using shop = await openOnnxFixture({ gpus: fake() });
  const source = await writeNegative(shop, "free");
  await using model = await shop.load(source, "");
  assert.equal(model.instances.length, 2, "one on each GPU");
  await assert.rejects(shop.load(source, "instance_group { kind: KIND_GPU gpus: [ 2 ] }"), {
    code: "INVALID_ARG",
    message: /specifies invalid or unsupported gpu id 2\. .* are: 0, 1$/,
  });
});

test("GPU memory is charged to the oldest model with a session there, and a load reserves its file's length", async () => {
  const gpus = fake();
  let reads = 0;
  // The driver is read before the load and after it.
  const bytesOf = () => Promise.resolve(new Map(reads++ === 0 ? [] : [["gpu 1", 700] as const]));
  await using shop = await openOnnxFixture({ gpus: { ...gpus, bytesOf } });
  const text = "instance_group { count: 1 kind: KIND_GPU gpus: [ 1 ] }";
  const [first, second] = [await writeNegative(shop, "first"), await writeNegative(shop, "second")];
  const expected = await shop.backend.estimateBytes(first, shop.config("first", text));
  assert.ok(expected!.get("gpu 1")! > 0 && expected!.get("gpu 0") === undefined);
  const model = await shop.load(first, text);
  assert.equal((await model.memoryBytes()).get("gpu 1"), 700);
  await using same = await shop.load(first, text);
  assert.equal((await same.memoryBytes()).get("gpu 1"), undefined);
  assert.deepEqual(await shop.backend.estimateBytes(first, shop.config("first", text)), new Map());
  const elsewhere = shop.config("first", text.replace("[ 1 ]", "[ 0 ]"));
  assert.ok((await shop.backend.estimateBytes(first, elsewhere))!.get("gpu 0")! > 0, "the other GPU does not have it");
  await model[Symbol.asyncDispose]();
  assert.equal((await same.memoryBytes()).get("gpu 1"), 700, "the charge moves on");
  await using other = await shop.load(second, text);
  assert.equal((await other.memoryBytes()).get("gpu 1"), 0, "another graph, another session, nothing added");
});

test("without a GPU a model with a GPU accelerator fails, and KIND_AUTO and KIND_GPU alone run on the CPU", async () => {
  await using shop = await openOnnxFixture();
  const source = await writeNegative(shop, "insistent");
  await assert.rejects(shop.load(source, accelerated('{ name: "tensorrt" }')), {
    code: "INVALID_ARG",
    message:
      /^instance group insistent_0 of model insistent has kind KIND_GPU but no GPUs are available, and .* 'tensorrt'/,
  });
  for (const text of [
    accelerated('{ name: "cuda" }').replace("KIND_GPU", "KIND_AUTO"),
    "instance_group { kind: KIND_GPU }",
  ]) {
    await using model = await shop.load(source, text);
    assert.deepEqual((await negativeOf(model, [3]))[0], [-3]);
  }
  assert.ok(shop.logged.some((line) => line.includes("requests KIND_GPU; its ONNX Runtime sessions run on the CPU")));
});

test("without the set-up for GPUs the load fails with what to do, and the next load tries again", async () => {
  let isMade = false;
  const findLibrary = () =>
    isMade
      ? Promise.resolve({ libraryPath, processEnv: {} })
      : Promise.reject(new InferenceError("UNAVAILABLE", "set it up"));
  await using shop = await openOnnxFixture({ gpus: fake({ findLibrary }) });
  const source = await writeNegative(shop, "early");
  await assert.rejects(shop.load(source, ""), { code: "UNAVAILABLE", message: "set it up" });
  isMade = true;
  await using model = await shop.load(source, "");
  assert.deepEqual(await negativeOf(model, [1]), [[-1], [-1]]);
});

test("a provider that cannot be opened fails only the load, with the loader's reason and what is needed", async () => {
  await using shop = await openOnnxFixture({ gpus: fake({ providersOn: providersOnGpu }) });
  const source = await writeNegative(shop, "driverless");
  const refusal = (provider: string, needs: RegExp) => (error: InferenceError) => {
    assert.equal(error.code, "UNAVAILABLE");
    assert.match(error.message, new RegExp(`^the execution provider '${provider}' cannot be used: .*It needs `, "s"));
    assert.match(error.message, needs);
    return true;
  };
  await assert.rejects(shop.load(source, ""), refusal("cuda", /galatea model add onnxruntime-gpu/));
  // The package for the CPU on arm64 contains no code for TensorRT, and its error says so.
  await assert.rejects(
    shop.load(source, accelerated('{ name: "tensorrt" }')),
    refusal("tensorrt", /libnvinfer\.so\.10/),
  );
  await using model = await shop.load(source, "instance_group { kind: KIND_CPU }");
  assert.deepEqual((await negativeOf(model, [1]))[0], [-1]);
});

test("parameters of accelerators and of the model reach the providers by the library's names, TensorRT first", async () => {
  await using shop = await openOnnxFixture();
  const { name, message, parameters, ...rest } = shop.config(
    "tuned",
    `parameters { key: "cudnn_conv_algo_search" value { string_value: "1" } }
     parameters { key: "arena_extend_strategy" value { string_value: "1" } }
     parameters { key: "gpu_mem_limit" value { string_value: "1073741824" } }
     ${accelerated(
       `{ name: "cuda" ${parameter("use_tf32", "false")} },
        { name: "tensorrt" ${parameter("precision_mode", "FP16")} ${parameter("max_workspace_size_bytes", "1048576")}
          ${parameter("trt_engine_cache_enable", "true")} ${parameter("trt_engine_cache_path", "engines")}
          ${parameter("trt_profile_min_shapes", "x:1")} }`,
     )}`,
  );
  const [tensorRt, cuda] = providersOnGpu({ name, message, parameters, ...rest }, 3);
  assert.equal(tensorRt!.name, "tensorrt");
  assert.deepEqual(Object.fromEntries(tensorRt!.options), {
    trt_fp16_enable: "1",
    trt_max_workspace_size: "1048576",
    trt_engine_cache_enable: "1",
    trt_engine_cache_path: "engines",
    trt_profile_min_shapes: "x:1",
    device_id: "3",
  });
  assert.deepEqual(
    [cuda!.name, Object.fromEntries(cuda!.options)],
    [
      "cuda",
      {
        use_tf32: "0",
        cudnn_conv_algo_search: "HEURISTIC",
        arena_extend_strategy: "kSameAsRequested",
        gpu_mem_limit: "1073741824",
        device_id: "3",
      },
    ],
  );
});

const refusals: readonly (readonly [accelerator: string, message: RegExp])[] = [
  ['{ name: "abacus" }', /^unknown Execution Accelerator 'abacus' is requested$/],
  ['{ name: "openvino" }', /^unknown Execution Accelerator 'openvino' is requested$/],
  [
    `{ name: "tensorrt" ${parameter("beads", "3")} }`,
    /^unknown parameter 'beads' is provided for TensorRT Execution Accelerator$/,
  ],
  [
    // The address of a function that the library would call.
    `{ name: "cuda" ${parameter("gpu_external_alloc", "4096")} }`,
    /^unknown parameter 'gpu_external_alloc' is provided for CUDA Execution Accelerator$/,
  ],
  [`{ name: "cuda" ${parameter("user_compute_stream", "4096")} }`, /^unknown parameter 'user_compute_stream'/],
  [`{ name: "cuda" ${parameter("__proto__", "1")} }`, /^unknown parameter '__proto__'/],
  [`{ name: "tensorrt" ${parameter("precision_mode", "FP4")} }`, /^unsupported precision mode 'FP4' is requested$/],
  [`{ name: "cuda" ${parameter("cudnn_conv_algo_search", "1")} }`, /^unsupported cudnn_conv_algo_search value '1'/],
  [`{ name: "cuda" ${parameter("use_tf32", "maybe")} }`, /'use_tf32' value 'maybe' to boolean value$/],
  [`{ name: "tensorrt" ${parameter("max_workspace_size_bytes", "-1")} }`, /value '-1' to integral number$/],
  [`{ name: "tensorrt" ${parameter("trt_extra_plugin_lib_paths", "x.so")} }`, /is not served: it opens a library/],
  [`{ name: "tensorrt" ${parameter("trt_dump_subgraphs", "1")} }`, /is not served: it writes files/],
  [`{ name: "tensorrt" ${parameter("trt_engine_cache_enable", "1")} }`, /needs 'trt_engine_cache_path'/],
  [
    `{ name: "tensorrt" ${parameter("trt_engine_cache_path", "/tmp/engines")} }`,
    /names '\/tmp\/engines'; it has to be/,
  ],
  [`{ name: "tensorrt" ${parameter("trt_engine_cache_path", "a/../../b")} }`, /to stay below it$/],
  [`{ name: "tensorrt" ${parameter("trt_engine_cache_path", "1/engines")} }`, /not a directory of the model, next to/],
  [
    `{ name: "tensorrt" ${parameter("trt_engine_cache_path", "link/engines")} }`,
    /not a directory of the model, next to/,
  ],
  [`{ name: "tensorrt" ${parameter("int8_calibration_table_name", "../table")} }`, /is a file's name, not a path$/],
];

test("parameters that no provider has, and paths outside the model, are rejected by name", async () => {
  await using shop = await openOnnxFixture({ gpus: fake({ providersOn: providersOnGpu }) });
  const source = await writeNegative(shop, "refused");
  await mkdir(join(shop.directory, "elsewhere"));
  await symlink(join(shop.directory, "elsewhere"), join(source.modelDirectory, "link"));
  for (const [accelerator, message] of refusals) {
    await assert.rejects(shop.load(source, accelerated(accelerator)), { message }, accelerator);
  }
});

test("engines are not cached where tenants share a process, because an archive could contain one and engines are code", async () => {
  await using shop = await openOnnxFixture({ gpus: fake({ keepsEngines: false, providersOn: providersOnGpu }) });
  const source = await writeNegative(shop, "tenant");
  const text = accelerated(`{ name: "tensorrt" ${parameter("trt_engine_cache_path", "engines")} }`);
  await assert.rejects(shop.load(source, text), {
    code: "UNSUPPORTED",
    message: /would run in a process that tenants share$/,
  });
});

test("a graph with embedded engines is rejected where tenants share a process, at any position in its file", async () => {
  const tensorRt = [{ name: "tensorrt", options: [] }] as const;
  await using shop = await openOnnxFixture({ gpus: fake({ keepsEngines: false, providersOn: () => tensorRt }) });
  const source = await shop.source("engines");
  const file = join(source.versionDirectory, "model.onnx");
  const chunk = 2 ** 20;
  for (const before of [0, 5, chunk - 4, chunk - 9, 2 * chunk - 1, 3 * chunk + 17]) {
    await writeFile(file, Buffer.concat([Buffer.alloc(before), Buffer.from("EPContext"), Buffer.alloc(7)]));
    await assert.rejects(
      shop.load(source, ""),
      { code: "UNSUPPORTED", message: /has operators 'EPContext'/ },
      `${before}`,
    );
    await rejectEmbeddedEngines(file, "m", [{ name: "cuda", options: [] }]);
  }
  for (const bytes of ["", "EPContex", "x".repeat(chunk)]) {
    await writeFile(file, bytes);
    await rejectEmbeddedEngines(file, "m", tensorRt);
  }
});

test("GPU memory that runs retain is charged to the sessions that ran, and released with them", async () => {
  let held: DeviceBytes = new Map([["gpu 0", 100]]);
  const memory = new GpuMemory(() => Promise.resolve(held));
  await memory.during("a", 0, async () => (held = new Map([["gpu 0", 400]])));
  await memory.during("b", 0, async () => (held = new Map([["gpu 0", 500]])));
  // Memory that existed before the first session is not charged to the opening of one session; it is divided among all.
  assert.deepEqual([memory.bytesOf("a"), memory.bytesOf("b")], [new Map([["gpu 0", 400]]), new Map([["gpu 0", 100]])]);
  memory.ran("b", 10);
  held = new Map([["gpu 0", 900]]);
  assert.deepEqual(await memory.look(), ["b"]);
  assert.equal(memory.bytesOf("b").get("gpu 0"), 500);
  memory.closed("b");
  assert.equal(memory.bytesOf("b").size, 0);
});

test("errors that make a process lose its GPU are distinguished from those of a single run", () => {
  const text = (code: number) => `onnx runtime error 1: CUDA failure ${code}: text ; GPU=0 ; expr=cudaMemcpyAsync(700)`;
  assert.deepEqual(
    [700, 710, 719, 214].map((code) => isGpuLost(text(code))),
    [true, true, true, true],
  );
  assert.deepEqual(
    [1, 2, 701, 98].map((code) => isGpuLost(text(code))),
    [false, false, false, false],
  );
  assert.equal(isGpuLost("onnx runtime error 6: Non-zero status code 700 returned while running Neg node"), false);
});
