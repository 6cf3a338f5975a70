/** The memory budget is charged with the memory that ONNX models allocate in their runner process. */
import assert from "node:assert/strict";
import { link, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import type { OnnxModel } from "@galatea/server/onnx-file";
import { mebibyte, privateBytes, onlyRunner, until, write } from "./onnx-fixture.ts";
import {
  floats,
  openOnnxFixture,
  request,
} from "../../packages/server/src/backends/onnxruntime/onnxruntime-fixtures.ts";
import type { OnnxRuntimeBackendOptions } from "../../packages/server/src/backends/onnxruntime/onnxruntime-backend.ts";
import { EngineFixture } from "../../packages/server/src/engine/engine-fixtures.ts";
import { releaseResponse } from "@galatea/server/inference";
import { expanding, harmless, writeModel } from "./onnx-models.ts";

/** Maximum difference between the charge and the private pages of the process: garbage, and memory that is not measured again yet. */
const boundBytes = 16 * mebibyte;
const gibibyteOfFloats = 256 * mebibyte;

async function open(options: Partial<OnnxRuntimeBackendOptions>, memoryBudgetBytes: number | null = null) {
  const shop = await openOnnxFixture({ memoryReleaseMs: 10, ...options });
  const bench = new EngineFixture();
  bench.backends.push(shop.backend);
  bench.engine = bench.open(memoryBudgetBytes);
  // A runner's first model starts a thread and loads parts of the library, which every server has.
  const first = await write(shop, "first", harmless);
  await (await shop.load(first, ""))[Symbol.asyncDispose]();
  const pid = await onlyRunner();
  const bareBytes = privateBytes(pid);
  const heldBytes = () => privateBytes(pid) - bareBytes;
  return {
    bench,
    usedBytes: () => bench.engine.memory().usedBytes,
    heldBytes,
    async write(name: string, model: Partial<OnnxModel>) {
      bench.models[name] = 'backend: "onnxruntime"';
      await mkdir(join(bench.directory, name, "1"), { recursive: true });
      await writeModel(join(bench.directory, name, "1", "model.onnx"), model);
    },
    async share(from: string, name: string) {
      bench.models[name] = 'backend: "onnxruntime"';
      await mkdir(join(bench.directory, name, "1"), { recursive: true });
      await link(join(bench.directory, from, "1", "model.onnx"), join(bench.directory, name, "1", "model.onnx"));
    },
    async run(modelName: string) {
      releaseResponse(await bench.infer({ ...request([floats("x", [1], [1])]), modelName }));
    },
    isCharged: () => Math.abs(bench.engine.memory().usedBytes - heldBytes()) < boundBytes,
    async [Symbol.asyncDispose]() {
      await bench[Symbol.asyncDispose]();
      await shop[Symbol.asyncDispose]();
    },
  };
}

/** A model with `bytes` of constants, which the library keeps in memory. */
function heavy(bytes: number): Partial<OnnxModel> {
  const count = bytes / 4;
  const weights = new Float32Array(count).map((_, index) => index);
  return {
    graphName: `heavy ${bytes}`,
    inputs: [{ name: "x", type: "FLOAT", dims: [1] }],
    outputs: [{ name: "y", type: "FLOAT", dims: [count] }],
    constants: [{ name: "w", type: "FLOAT", dims: [count], bytes: new Uint8Array(weights.buffer) }],
    operators: [{ operator: "Add", domain: "", inputs: ["x", "w"], outputs: ["y"], attributes: {} }],
  };
}

test("a gigabyte that a run leaves in its process is charged, and released when its model is unloaded", async () => {
  await using shop = await open({ keptBytesMax: Number.MAX_SAFE_INTEGER });
  await shop.write("large", expanding(gibibyteOfFloats));
  await shop.write("small", harmless);
  await shop.bench.load("small");
  await shop.bench.load("large");
  const loadedBytes = shop.usedBytes();
  assert.ok(loadedBytes < boundBytes, `${loadedBytes} bytes for two small files`);
  await shop.run("large");
  assert.ok(shop.heldBytes() > 900 * mebibyte, "the library keeps the memory");
  await until("the gigabyte is charged", () => shop.usedBytes() > 900 * mebibyte && shop.isCharged());
  await shop.bench.unload("large");
  await until("only allocated memory is charged", () => shop.isCharged());
});

test("memory that a large run leaves behind is released soon, and the charge matches the allocated memory", async () => {
  await using shop = await open({});
  await shop.write("large", expanding(gibibyteOfFloats));
  await shop.bench.load("large");
  await shop.run("large");
  await until("the memory is released", () => shop.heldBytes() < 64 * mebibyte && shop.isCharged());
});

test("a load is rejected because of memory that runs of another model have left behind", async () => {
  await using shop = await open({ keptBytesMax: Number.MAX_SAFE_INTEGER, memoryReleaseMs: 60_000 }, 512 * mebibyte);
  await shop.write("large", expanding(gibibyteOfFloats));
  await shop.write("heavy", heavy(32 * mebibyte));
  await shop.bench.load("large");
  await shop.run("large");
  // No timer has measured the memory yet; a request for memory measures it.
  await assert.rejects(shop.bench.load("heavy"), /Out of memory: model 'heavy'/);
});

test("24 models with equal content share and are charged for one session, whichever of them are unloaded", async () => {
  await using shop = await open({});
  const names = Array.from({ length: 24 }, (_, index) => `tenant${index}`);
  await shop.write(names[0]!, heavy(64 * mebibyte));
  for (const name of names.slice(1)) await shop.share(names[0]!, name);
  for (const name of names) await shop.bench.load(name);
  assert.ok(shop.usedBytes() > 48 * mebibyte && shop.isCharged(), `${shop.usedBytes()} of ${shop.heldBytes()}`);
  for (const name of names.slice(0, 23)) await shop.bench.unload(name);
  await until("the last is charged", () => shop.usedBytes() > 48 * mebibyte && shop.isCharged());
  await shop.bench.unload(names[23]!);
  await until("nothing is charged", () => shop.usedBytes() === 0);
});
