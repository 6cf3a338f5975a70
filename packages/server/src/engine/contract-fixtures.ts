import assert from "node:assert/strict";
import { InferenceError, type InferenceCode } from "@galatea/base";
import { releaseResponse, newInferenceRequest, type InferenceRequest, type Outcome } from "../inference/index.ts";
import type { Tensor } from "../tensor/index.ts";
import type { Engine, ServedModel } from "./engine.ts";

/** The datatype and the dimensions, without the batch dimension, of an input or output of a contract model. */
export type ContractTensor = readonly ["INT32" | "BYTES", readonly number[]];

export interface ContractModel {
  readonly inputs: Readonly<Record<string, ContractTensor>>;
  readonly outputs: Readonly<Record<string, ContractTensor>>;
  /** Maximum batch size; 0 for a model that does not batch. */
  readonly maxBatchSize: number;
  readonly decoupled: boolean;
}

const numbers: ContractTensor = ["INT32", [-1]];

/**
 * The models in the engine's repository. None of them is loaded at the start. Each returns its input `X` as each of its outputs; `failing`
 * raises an INTERNAL error `boom` instead. `counting` sends one response for each number of its input, then an empty final response.
 */
export const contractModels = {
  echo: { inputs: { X: numbers }, outputs: { Y: numbers, Z: numbers }, maxBatchSize: 4, decoupled: false },
  words: { inputs: { X: ["BYTES", [2]] }, outputs: { Y: ["BYTES", [2]] }, maxBatchSize: 0, decoupled: false },
  failing: { inputs: { X: numbers }, outputs: { Y: numbers }, maxBatchSize: 4, decoupled: false },
  counting: { inputs: { X: numbers }, outputs: { Y: ["INT32", [1]] }, maxBatchSize: 0, decoupled: true },
} as const satisfies Readonly<Record<string, ContractModel>>;

export type ContractModelName = keyof typeof contractModels;

/** An engine that allows loading by name. The directory of a namespace contains the same models as the engine's repository. */
export interface EngineSubject extends AsyncDisposable {
  readonly engine: Engine;
  /** Promise that `failing` awaits before it raises. */
  holdFailing(until: Promise<void>): void;
  /** Starts the server's exit. */
  exit(): void;
}

export type Check = (title: string, work: (engine: Engine, subject: EngineSubject) => Promise<void>) => void;

export const signal = new AbortController().signal;

export function withInputs(good: InferenceRequest, inputs: readonly Tensor[]): InferenceRequest {
  if (!inputs.some((input) => input.block !== null)) for (const input of good.inputs) input.block?.release();
  return { ...good, inputs };
}

export const bytesOf = (values: readonly number[]) => new Uint8Array(Int32Array.from(values).buffer);

export function inputOf(model: ServedModel, bytes: Uint8Array, more: Partial<Tensor>): Tensor {
  assert.ok(model.arena);
  if (bytes.length === 0) return { name: "X", datatype: "INT32", shape: [0], data: bytes, block: null, ...more };
  const block = model.arena.allocate(bytes.length);
  block.bytes.set(bytes);
  return { name: "X", datatype: "INT32", shape: [1], data: block.bytes.subarray(0, bytes.length), block, ...more };
}

/** Returns a request with one row of numbers in the model's arena, as protocols create it. */
export function request(
  model: ServedModel,
  modelName: ContractModelName,
  values: readonly number[],
  more: Partial<InferenceRequest> = {},
): InferenceRequest {
  const shape = model.view.config.maxBatchSize > 0 ? [1, values.length] : [values.length];
  return newInferenceRequest({
    modelName,
    inputs: [inputOf(model, bytesOf(values), { shape })],
    ...more,
  });
}

/** Sends a request and returns the responses that its sink received, one line for each. */
export async function streamed(model: ServedModel, requested: InferenceRequest): Promise<readonly string[]> {
  const lines: string[] = [];
  await model.stream(requested, {
    respond(outcome: Outcome | null, isFinal, consumed) {
      const words: string[] = [];
      if (outcome instanceof InferenceError) words.push(`${outcome.code} ${outcome.message}`);
      else if (outcome !== null) {
        const { data } = outcome.outputs[0]!;
        words.push(String(new DataView(data.buffer, data.byteOffset).getInt32(0, true)));
        releaseResponse(outcome);
      }
      if (isFinal) words.push("final");
      lines.push(words.join(" "));
      consumed();
    },
  });
  return lines;
}

export const load = (engine: Engine, modelName: string) => engine.loadModel(modelName, null, signal);

export const hold = (engine: Engine, modelName: string, modelVersion = "", namespace = "") =>
  engine.open({ namespace, modelName, modelVersion });

export function metadataOf(engine: Engine, modelName: string) {
  const { platform: _platform, ...rest } = engine.modelMetadata({ namespace: "", modelName, modelVersion: "" });
  return rest;
}

export const counts = (engine: Engine, modelName: string) =>
  engine
    .statistics(modelName, "")
    .map((row) => [row.name, row.version, row.inferenceCount, row.executionCount, row.success.count, row.fail.count]);

export const index = async (engine: Engine) =>
  (await engine.repositoryIndex(false)).map((row) => [row.name, row.version, row.state, row.reason]);

export const failsWith = (code: InferenceCode, message: string | RegExp) => (error: unknown) => {
  assert.ok(error instanceof InferenceError);
  assert.equal(error.code, code);
  if (typeof message === "string") assert.equal(error.message, message);
  else assert.match(error.message, message);
  return true;
};
