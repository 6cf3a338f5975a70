import assert from "node:assert/strict";
import { mkdtempSync, mkdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ByteBudget, InferenceError, silentLogger, systemClock } from "@galatea/base";
import {
  noNamespaceMetrics,
  machineBytes,
  type Backend,
  type LoadContext,
  type LoadedModel,
  type NamespaceMetrics,
} from "../backends/index.ts";
import {
  noParameters,
  releaseResponse,
  newInferenceRequest,
  type InferenceRequest,
  type InferenceResponse,
  type Instance,
} from "../inference/index.ts";
import { completeConfig, parseConfigText } from "../modelconfig/index.ts";
import { chooseVersions } from "../repository/index.ts";
import type { Arena } from "../tensor/index.ts";
import { createEngine, type EngineCore } from "./create-engine.ts";
import type { Catalog } from "./catalog.ts";
import type { ServedModel } from "./engine.ts";

export const echoConfig = `backend: "echo" max_batch_size: 4
input { name: "X" data_type: TYPE_INT32 dims: [ -1 ] }
output { name: "Y" data_type: TYPE_INT32 dims: [ -1 ] }`;

const echoStep = (model: string, from: string, to: string, version: number) =>
  `step { model_name: "${model}" model_version: ${version} input_map { key: "X" value: "${from}" } output_map { key: "Y" value: "${to}" } }`;

/** Returns the configuration of an ensemble that runs the models one after another. Its input is X and its output Y, as for the models. */
export function chainOf(models: readonly string[], version = -1): string {
  const tensor = (i: number) => (i === 0 ? "X" : i === models.length ? "Y" : `mid${i}`);
  return `platform: "ensemble" max_batch_size: 4
input { name: "X" data_type: TYPE_INT32 dims: [ -1 ] }
output { name: "Y" data_type: TYPE_INT32 dims: [ -1 ] }
ensemble_scheduling { ${models.map((model, i) => echoStep(model, tensor(i), tensor(i + 1), version)).join("\n")} }`;
}

/** Returns the configuration with a parameter that makes the load of one version, or of all versions, fail. */
export const failing = (config: string, version: number | "all" = "all") =>
  `${config} parameters { key: "fail" value { string_value: "${version}" } }`;

/** A backend whose models return X as Y, in a block of the arena. Counts the loaded models. */
export class EchoBackend implements Backend {
  readonly name = "echo";
  loadedCount = 0;
  memoryBytes = 1000;
  /** Reports that the memory of the model that was loaded last has changed. */
  onMemory: LoadContext["onMemory"];
  arena: Arena | null = null;
  metrics: NamespaceMetrics | null = null;
  /** Promises that executions await, by the name of their model. */
  readonly pending = new Map<string, Promise<void>>();

  heldBytes: NonNullable<Backend["heldBytes"]> = () => Promise.resolve(0);

  complete: Backend["complete"] = (_source, config) => Promise.resolve(config);

  estimateBytes: Backend["estimateBytes"] = () => Promise.resolve(null);

  warmUp: Backend["warmUp"] = () => Promise.resolve();

  load: Backend["load"] = async (source, config, context): Promise<LoadedModel> => {
    const fails = config.parameters.get("fail");
    if (fails === "all" || fails === String(source.version)) throw new InferenceError("INTERNAL", "ValueError: no");
    this.loadedCount++;
    this.arena = context.arena;
    this.onMemory = context.onMemory;
    this.metrics = context.metrics;
    let isUp = true;
    const instance: Instance = {
      name: `${source.servedName}_0_0`,
      executionsMax: 1,
      supervision: null,
      abandonRequest: () => {},
      execute: async (batch) => {
        await this.pending.get(source.servedName);
        assert(isUp, `${source.servedName} executes while it is loaded`);
        return {
          computeInputNs: 1,
          computeInferNs: 2,
          computeOutputNs: 3,
          outcomes: batch.map((request) => {
            const input = request.inputs[0];
            assert(input);
            const block = context.arena.allocate(input.data.byteLength);
            block.bytes.set(input.data);
            const output = { name: "Y", datatype: input.datatype, shape: input.shape, data: block.bytes, block };
            const modelVersion = String(source.version);
            return { modelName: source.servedName, modelVersion, outputs: [output], parameters: noParameters };
          }),
        };
      },
    };
    return {
      instances: [instance],
      memoryBytes: () => Promise.resolve(machineBytes(this.memoryBytes)),
      [Symbol.asyncDispose]: () => {
        isUp = false;
        this.loadedCount--;
        return Promise.resolve();
      },
    };
  };

  [Symbol.asyncDispose] = (): Promise<void> => Promise.resolve();
}

/**
 * An engine whose models are not on disk. `models` has their configurations as text by name; `versions` has the version directories of
 * models that do not have only version 1.
 */
export class EngineFixture implements AsyncDisposable {
  readonly backend = new EchoBackend();
  /** Options of the engines that `open` creates afterwards. */
  readonly backends: Backend[] = [this.backend];
  readonly models: Record<string, string> = {};
  readonly versions: Record<string, readonly number[]> = {};
  readonly signal = new AbortController().signal;
  engine: EngineCore;
  /** Metrics of models that are not disposed, by namespace. */
  readonly metricsDoors = new Map<string, NamespaceMetrics>();
  /** Lines of the log at INFO. */
  readonly infos: string[] = [];
  /** Catalogs that were disposed of. */
  closedCatalogCount = 0;
  readonly #directory = mkdtempSync(join(tmpdir(), "engine-"));

  constructor() {
    this.engine = this.open(null);
  }

  open(memoryBudgetBytes: number | null, drainMsMax = 30_000): EngineCore {
    return createEngine({
      id: "test",
      version: "0",
      explicitControl: true,
      strictReadiness: true,
      autoComplete: true,
      backends: this.backends,
      backendConfig: () => new Map(),
      catalog: this.#catalog(),
      catalogOf: () => this.#catalog(),
      arenaBytes: 1 << 24,
      namespaceArenaBytes: 1 << 24,
      requestMemory: new ByteBudget(Infinity),
      memoryBudgetBytes,
      queueLengthMax: 100,
      loadsMax: 2,
      drainMsMax,
      metrics: {
        open: () => ({ succeeded() {}, failed() {}, close() {} }),
        ofModels: (namespace) => {
          const entry = { ...noNamespaceMetrics, [Symbol.dispose]: () => void this.metricsDoors.delete(namespace) };
          this.metricsDoors.set(namespace, entry);
          return entry;
        },
      },
      clock: systemClock,
      log: { ...silentLogger, info: (text) => this.infos.push(text) },
    });
  }

  get directory(): string {
    return this.#directory;
  }

  load(name: string): Promise<void> {
    return this.engine.loadModel(name, null, this.signal);
  }

  unload(name: string): Promise<void> {
    return this.engine.unloadModel(name, false);
  }

  async infer(request: InferenceRequest): Promise<InferenceResponse> {
    using model = this.engine.open(request);
    return await model.infer(request);
  }

  /** Leases a model of the server's own repository, as a call does. */
  hold(modelName: string, modelVersion = ""): ServedModel {
    return this.engine.open({ namespace: "", modelName, modelVersion });
  }

  async respond(target: InferenceRequest): Promise<{ name: string; version: string; values: number[] }> {
    const response = await this.infer(target);
    const [output] = response.outputs;
    assert(output);
    const values = [...new Int32Array(output.data.slice().buffer)];
    releaseResponse(response);
    return { name: output.name, version: response.modelVersion, values };
  }

  async states(): Promise<Record<string, string>> {
    const rows = (await this.engine.repositoryIndex(false)).filter((row) => row.version !== "");
    return Object.fromEntries(
      rows.map((row) => [`${row.name}/${row.version}`, `${row.state} ${row.reason}`.trimEnd()]),
    );
  }

  #catalog(): Catalog {
    return {
      [Symbol.asyncDispose]: () => {
        this.closedCatalogCount++;
        return Promise.resolve();
      },
      names: () => Promise.resolve(Object.keys(this.models).map((name) => ({ name, duplicate: false }))),
      find: (name) => {
        const text = this.models[name];
        if (text === undefined) return Promise.reject(new InferenceError("NOT_FOUND", `no directory '${name}'`));
        const message = parseConfigText(text, `${name}/config.pbtxt`);
        const config = completeConfig(message, {
          directoryName: name,
          servedName: name,
          versionEntries: [],
          gpuCount: 0,
        });
        const modelDirectory = join(this.#directory, name);
        const versions = chooseVersions(config.versionPolicy, this.versions[name] ?? [1]).map((version) => {
          const directory = join(modelDirectory, String(version));
          mkdirSync(directory, { recursive: true });
          return { version, directory };
        });
        return Promise.resolve({ servedName: name, modelDirectory, config, versions, misnamedVersions: [] });
      },
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.engine[Symbol.asyncDispose]();
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

export function requestTo(
  modelName: string,
  values: readonly number[],
  more: { readonly input?: string; readonly namespace?: string } = {},
): InferenceRequest {
  const data = new Uint8Array(Int32Array.from(values).buffer);
  return newInferenceRequest({
    namespace: more.namespace ?? "",
    modelName,
    inputs: [{ name: more.input ?? "X", datatype: "INT32", shape: [1, values.length], data, block: null }],
  });
}
