import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLogger, type LogLevel, systemClock } from "@galatea/base";
import { newInferenceRequest, type InferenceRequest } from "../../inference/index.ts";
import { completeConfig, type ModelConfig, parseConfigText } from "../../modelconfig/index.ts";
import { onnxRuntimeLibrary } from "../../native/index.ts";
import { type Arena, createArena, type Datatype, type Tensor } from "../../tensor/index.ts";
import type { Backend, LoadContext, LoadedModel, ModelSource } from "../backend.ts";
import { noNamespaceMetrics } from "../no-namespace-metrics.ts";
import { noBlsClient } from "../no-bls-client.ts";
import {
  createOnnxRuntimeBackend,
  onnxRuntimeBackendDefaults,
  type OnnxRuntimeBackendOptions,
} from "./onnxruntime-backend.ts";

export const libraryPath = onnxRuntimeLibrary();

/** A repository in a new directory, an arena, and a backend that uses both. */
export interface OnnxFixture extends AsyncDisposable {
  readonly directory: string;
  readonly arena: Arena;
  readonly backend: Backend;
  readonly logged: readonly string[];
  /** Creates `<name>/1/`. */
  source(name: string): Promise<ModelSource>;
  config(name: string, text: string): ModelConfig;
  complete(source: ModelSource, text: string, backendConfig?: Record<string, string>): Promise<ModelConfig>;
  load(source: ModelSource, text: string, inArena?: Arena): Promise<LoadedModel>;
}

export async function openOnnxFixture(options: Partial<OnnxRuntimeBackendOptions> = {}): Promise<OnnxFixture> {
  const directory = await mkdtemp(join(tmpdir(), "onnxruntime-backend-"));
  const arena = createArena({ capacityBytes: 64 * 2 ** 20 });
  const logged: string[] = [];
  const log = createLogger((level: LogLevel, message: string) => logged.push(`${level}: ${message}`));
  const backend = createOnnxRuntimeBackend({
    ...onnxRuntimeBackendDefaults,
    libraryPath,
    processEnv: {},
    slotCount: 4,
    deadlineMs: null,
    intraOpThreadCount: 2,
    ownThreadCountMax: 8,
    log,
    clock: systemClock,
    ...options,
  });
  const context = (backendConfig: Record<string, string>, inArena: Arena = arena): LoadContext => ({
    arena: inArena,
    backendConfig: new Map(Object.entries(backendConfig)),
    onHealth: () => {},
    bls: noBlsClient,
    metrics: noNamespaceMetrics,
    signal: new AbortController().signal,
  });
  const config = (name: string, text: string) =>
    completeConfig(parseConfigText(text, `${name}/config.pbtxt`), {
      directoryName: name,
      servedName: name,
      versionEntries: ["model.onnx"],
      gpuCount: options.gpus?.count ?? 0,
    });
  return {
    directory,
    arena,
    backend,
    logged,
    async source(name) {
      const versionDirectory = join(directory, name, "1");
      await mkdir(versionDirectory, { recursive: true });
      return { servedName: name, modelDirectory: join(directory, name), version: 1, versionDirectory };
    },
    config,
    complete: (source, text, backendConfig = {}) =>
      backend.complete(source, config(source.servedName, text), context(backendConfig)),
    async load(source, text, inArena = arena) {
      const completed = await backend.complete(source, config(source.servedName, text), context({}, inArena));
      return await backend.load(source, completed, context({}, inArena));
    },
    async [Symbol.asyncDispose]() {
      await backend[Symbol.asyncDispose]();
      arena[Symbol.dispose]();
      await rm(directory, { recursive: true });
    },
  };
}

export function floats(name: string, shape: readonly number[], values: readonly number[]): Tensor {
  return bytes(name, "FP32", { shape, data: new Uint8Array(Float32Array.from(values).buffer) });
}

export function bytes(
  name: string,
  datatype: Datatype,
  { shape, data }: { shape: readonly number[]; data: Uint8Array },
): Tensor {
  return { name, datatype, shape, data, block: null };
}

export function request(
  inputs: readonly Tensor[],
  requestedOutputs: readonly string[] | null = null,
): InferenceRequest {
  return newInferenceRequest({
    modelName: "m",
    inputs,
    requestedOutputs,
  });
}

export function numbers(tensor: Tensor): number[] {
  return [...new Float32Array(Uint8Array.from(tensor.data).buffer)];
}
