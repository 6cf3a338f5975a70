/** Shared code of the tests of harmful ONNX models. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { OnnxModel } from "@galatea/server/onnx-file";
import { deadlyInput, writeModel } from "./onnx-models.ts";
import { InferenceError } from "@galatea/base";
import { type InferenceRequest, type Outcome, releaseResponse, DeferredResponses } from "@galatea/server/inference";
import { childrenOf } from "@galatea/base/processes";
import type { LoadedModel, ModelSource } from "@galatea/server/backends";
import type { OnnxRuntimeBackendOptions } from "../../packages/server/src/backends/onnxruntime/onnxruntime-backend.ts";
import {
  bytes,
  floats,
  numbers,
  openOnnxFixture,
  request,
  type OnnxFixture,
} from "../../packages/server/src/backends/onnxruntime/onnxruntime-fixtures.ts";
import { testTimeoutMs } from "../../packages/base/src/core/eventually-fixture.ts";

export const mebibyte = 2 ** 20;

export function integers(name: string, values: readonly number[]) {
  return bytes(name, "INT32", { shape: [values.length], data: new Uint8Array(Int32Array.from(values).buffer) });
}

export const division = (x: readonly number[], by: readonly number[]) =>
  request([integers("x", x), integers("by", by)]);
export const deadly = () => division(deadlyInput.x, deadlyInput.by);
export const negation = () => request([floats("x", [2], [1, 2])]);
export const product = () =>
  request([
    floats(
      "x",
      [512, 512],
      Array.from({ length: 512 * 512 }, () => 0),
    ),
  ]);

export async function write(shop: OnnxFixture, name: string, model: Partial<OnnxModel>): Promise<ModelSource> {
  const source = await shop.source(name);
  await writeModel(join(source.versionDirectory, "model.onnx"), model);
  return source;
}

export async function load(
  shop: OnnxFixture,
  name: string,
  model: Partial<OnnxModel>,
  arena = shop.arena,
): Promise<LoadedModel> {
  const config = "instance_group { count: 4 kind: KIND_CPU }";
  return await shop.load(await write(shop, name, model), config, arena);
}

/** Returns the only outcome, and releases the response. */
export async function run(model: LoadedModel, what: InferenceRequest, instance = 0): Promise<Outcome> {
  const { outcomes } = await model.instances[instance]!.execute([what]);
  const [outcome] = outcomes;
  assert.ok(outcome !== undefined && !(outcome instanceof DeferredResponses));
  if (!(outcome instanceof InferenceError)) releaseResponse(outcome);
  return outcome;
}

export async function negates(model: LoadedModel, instance = 0): Promise<void> {
  const { outcomes } = await model.instances[instance]!.execute([negation()]);
  const [outcome] = outcomes;
  assert.ok(outcome !== undefined && !(outcome instanceof DeferredResponses));
  if (outcome instanceof InferenceError) throw outcome;
  assert.deepEqual(numbers(outcome.outputs[0]!), [-1, -2]);
  releaseResponse(outcome);
}

export function failureOf(outcome: Outcome): string {
  assert.ok(outcome instanceof InferenceError, "the run fails");
  return `${outcome.code}: ${outcome.message}`;
}

/** The runner processes, which are children of this process. */
export async function runners(): Promise<readonly number[]> {
  const pids = childrenOf(process.pid);
  return pids.filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, "latin1").includes("runner-worker");
    } catch {
      return false;
    }
  });
}

export async function onlyRunner(): Promise<number> {
  const [pid, ...more] = await runners();
  assert.ok(pid !== undefined && more.length === 0, `one runner, not ${more.length + 1}`);
  return pid;
}

export async function until(what: string, look: () => boolean | Promise<boolean>): Promise<void> {
  const endMs = performance.now() + testTimeoutMs;
  while (!(await look())) {
    if (performance.now() > endMs) throw new Error(`in vain: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** Private pages of a process, in bytes. */
export function privateBytes(pid: number): number {
  const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, "latin1");
  let kibibytes = 0;
  for (const match of rollup.matchAll(/^Private_\w+:\s+(\d+) kB$/gm)) kibibytes += Number(match[1]);
  return kibibytes * 1024;
}

export const isUnderWay = async (pid: number) => {
  const ticks = () => Number(readFileSync(`/proc/${pid}/stat`, "latin1").split(") ")[1]!.split(" ")[11]);
  const before = ticks();
  await until("the runner works", () => ticks() > before + 5);
};

export const open = (options: Partial<OnnxRuntimeBackendOptions> = {}) => openOnnxFixture(options);
