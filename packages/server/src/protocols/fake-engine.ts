import { ByteBudget, InferenceError } from "@galatea/base";
import {
  checkRequest,
  modelFacts,
  modelMetadata,
  type Engine,
  type IndexEntry,
  type LoadOverride,
  type ModelFacts,
  type ModelMetadata,
  type ModelStatistics,
  type ModelTarget,
  type ModelView,
  type NamespaceSource,
  type ServedModel,
} from "../engine/index.ts";
import { noParameters, type ResponseSink, type InferenceRequest, type InferenceResponse } from "../inference/index.ts";
import { completeConfig, parseConfigText, type ModelConfig } from "../modelconfig/index.ts";
import { datatypes, releaseTensors, type Datatype, type Tensor } from "../tensor/index.ts";
import { FakeArena } from "./fake-arena.ts";

/** A function that computes a fake model's outputs. It borrows the inputs until it resolves. */
export type FakeModel = (request: InferenceRequest, arena: FakeArena) => Promise<Tensor[]> | Tensor[];

interface FakeEntry {
  readonly namespace: string;
  readonly config: ModelConfig;
  readonly view: ModelView;
  readonly facts: ModelFacts;
  readonly run: FakeModel;
  readonly usesArena: boolean;
  at: "untouched" | "ready" | "unloaded";
  readonly counted: { inferences: number; executions: Map<number, number>; failures: number };
}

export interface FakeModelOptions {
  readonly inputs: Readonly<Record<string, readonly [Datatype, readonly number[]]>>;
  readonly outputs: Readonly<Record<string, readonly [Datatype, readonly number[]]>>;
  /** True to batch, with max_batch_size 8 by default. */
  readonly batches?: boolean;
  readonly maxBatchSize?: number;
  /** True for a decoupled model: each output is sent as a separate response. */
  readonly decoupled?: boolean;
  readonly labels?: readonly string[];
  readonly usesArena?: boolean;
  /** False if the model is in the repository but not loaded at the start; a test may then load it. */
  readonly loaded?: boolean;
  readonly run: FakeModel;
}

/** Memory that each loaded model reports. */
const modelBytes = 1000;

/**
 * An Engine for tests of protocols. Models are functions; loads and namespaces are recorded. This engine passes the contract tests of
 * `Engine` and checks requests with the real engine's `checkRequest`.
 */
export class FakeEngine implements Engine {
  live = true;
  ready = true;
  /** Number of current model leases. */
  openCount = 0;
  readonly arena: FakeArena;
  readonly calls: string[] = [];
  readonly namespaces = new Map<string, NamespaceSource>();
  readonly #models = new Map<string, FakeEntry>();
  openNamespaceWith: (source: NamespaceSource, signal: AbortSignal) => Promise<void> = () => Promise.resolve();

  constructor(arenaBytes = 2 ** 30, budget = new ByteBudget(Infinity), memory: SharedArrayBuffer | null = null) {
    this.arena = new FakeArena(arenaBytes, budget, memory);
  }

  add(name: string, options: FakeModelOptions, namespace = ""): void {
    const config = configOf(name, options);
    this.#models.set(`${namespace}/${name}`, {
      namespace,
      config,
      view: { version: "1", config, labels: labelsFor(config, options.labels) },
      facts: modelFacts(config),
      run: options.run,
      usesArena: options.usesArena ?? true,
      at: (options.loaded ?? true) ? "ready" : "untouched",
      counted: { inferences: 0, executions: new Map(), failures: 0 },
    });
  }

  remove(name: string, namespace = ""): void {
    this.#models.delete(`${namespace}/${name}`);
  }

  #find({ namespace, modelName, modelVersion }: ModelTarget): FakeEntry {
    const model = this.#models.get(`${namespace}/${modelName}`);
    const unknown = `Request for unknown model: '${modelName}'`;
    if (model === undefined || model.at === "untouched")
      throw new InferenceError("NOT_FOUND", `${unknown} is not found`);
    if (modelVersion === "" || modelVersion === "-1") {
      if (model.at === "ready") return model;
      throw new InferenceError("NOT_FOUND", `${unknown} has no available versions`);
    }
    if (modelVersion !== "1") throw new InferenceError("NOT_FOUND", `${unknown} version ${modelVersion} is not found`);
    if (model.at === "ready") return model;
    throw new InferenceError("UNAVAILABLE", `${unknown} version ${modelVersion} is not at ready state`);
  }

  open(target: ModelTarget): ServedModel {
    if (!this.live) throw new InferenceError("UNAVAILABLE", "Server not ready");
    const model = this.#find(target);
    this.openCount++;
    let isOpen = true;
    return {
      view: model.view,
      isHealthy: true,
      arena: model.usesArena ? this.arena : null,
      infer: (request) => this.#infer(model, request),
      stream: (request, sink) => this.#stream(model, request, sink),
      [Symbol.dispose]: () => {
        if (isOpen) this.openCount--;
        isOpen = false;
      },
    };
  }

  async #infer(model: FakeEntry, request: InferenceRequest): Promise<InferenceResponse> {
    if (model.config.decoupled) {
      releaseTensors(request.inputs);
      const text = `model '${model.config.name}' is decoupled: it does not return exactly one response per request`;
      throw new InferenceError("UNSUPPORTED", text);
    }
    const outputs = await this.#run(model, request);
    return { modelName: model.config.name, modelVersion: "1", outputs, parameters: noParameters };
  }

  async #stream(model: FakeEntry, request: InferenceRequest, sink: ResponseSink): Promise<void> {
    const createResponse = (outputs: readonly Tensor[]) => ({
      modelName: model.config.name,
      modelVersion: "1",
      outputs,
      parameters: noParameters,
    });
    try {
      const created = await this.#run(model, request);
      if (!model.config.decoupled) return sink.respond(createResponse(created), true, () => {});
      for (const output of created) sink.respond(createResponse([output]), false, () => {});
      sink.respond(null, true, () => {});
    } catch (error) {
      sink.respond(InferenceError.from(error), true, () => {});
    }
  }

  /** Runs the model and counts the request. Takes ownership of the request and releases its inputs when the model has ended. */
  async #run(model: FakeEntry, request: InferenceRequest): Promise<readonly Tensor[]> {
    let batchSize: number;
    try {
      batchSize = checkRequest(request, model.facts);
    } catch (error) {
      releaseTensors(request.inputs);
      throw error;
    }
    const { counted } = model;
    try {
      const outputs = await unlessGivenUp(request.signal, () => this.#requestedOutputs(model, request));
      counted.inferences += batchSize;
      counted.executions.set(batchSize, (counted.executions.get(batchSize) ?? 0) + 1);
      return outputs;
    } catch (error) {
      counted.failures++;
      throw error;
    }
  }

  /** Runs the model. Returns the requested outputs and releases all other tensors. */
  async #requestedOutputs(model: FakeEntry, request: InferenceRequest): Promise<readonly Tensor[]> {
    try {
      if (request.signal?.aborted) throw new InferenceError("CANCELLED", "");
      const created = await model.run(request, this.arena);
      const desired = request.requestedOutputs;
      const outputs = desired === null ? created : created.filter((tensor) => desired.includes(tensor.name));
      releaseTensors(created.filter((tensor) => !outputs.includes(tensor)));
      return outputs;
    } finally {
      releaseTensors(request.inputs);
    }
  }

  serverMetadata(): ReturnType<Engine["serverMetadata"]> {
    return { name: "triton", version: "2.51.0", extensions: ["classification"] };
  }

  modelMetadata(target: ModelTarget): ModelMetadata {
    const { config, facts } = this.#find(target);
    return modelMetadata(config, facts, ["1"]);
  }

  statistics(modelName: string, modelVersion: string): readonly ModelStatistics[] {
    const models = this.#own().filter(({ config }) => modelName === "" || config.name === modelName);
    const rows = models.filter((model) => model.at === "ready" && ["", "1"].includes(modelVersion));
    if (modelName === "" || rows.length > 0) return rows.map(statisticsOf);
    const isKnown = models.some((model) => model.at === "ready");
    throw new InferenceError(
      "INVALID_ARG",
      isKnown
        ? `requested model version is not available for model '${modelName}'`
        : `requested model '${modelName}' is not available`,
    );
  }

  repositoryIndex(readyOnly: boolean): Promise<readonly IndexEntry[]> {
    const rows = this.#own().map(({ at, config: { name } }): IndexEntry => {
      if (at === "untouched") return { name, version: "", state: "", reason: "" };
      if (at === "ready") return { name, version: "1", state: "READY", reason: "" };
      return { name, version: "1", state: "UNAVAILABLE", reason: "unloaded" };
    });
    return Promise.resolve(readyOnly ? rows.filter((row) => row.state === "READY") : rows);
  }

  loadModel(modelName: string, override: LoadOverride | null): Promise<void> {
    const files = [...(override?.files ?? [])].map(([path, content]) => `${path}=${Buffer.from(content).toString()}`);
    this.calls.push(`load ${modelName} ${override?.configJson ?? "-"} ${files.join(",")}`);
    const model = this.#models.get(`/${modelName}`);
    if (model === undefined) {
      const text = `failed to load '${modelName}', failed to poll from model repository`;
      return Promise.reject(new InferenceError("INTERNAL", text));
    }
    model.at = "ready";
    return Promise.resolve();
  }

  unloadModel(modelName: string, unloadDependents: boolean): Promise<void> {
    this.calls.push(`unload ${modelName} ${unloadDependents}`);
    const model = this.#models.get(`/${modelName}`);
    if (model?.at === "ready") model.at = "unloaded";
    return Promise.resolve();
  }

  async openNamespace(source: NamespaceSource, signal: AbortSignal): Promise<void> {
    const { namespace, repositoryDirectory } = source;
    if (this.namespaces.has(namespace)) {
      const text = `model repository '${repositoryDirectory}' has already been registered`;
      throw new InferenceError("ALREADY_EXISTS", text);
    }
    await this.openNamespaceWith(source, signal);
    this.namespaces.set(namespace, source);
  }

  closeNamespace(namespace: string): Promise<void> {
    if (!this.namespaces.delete(namespace)) {
      const text = `model repository '${namespace}' is not registered`;
      return Promise.reject(new InferenceError("NOT_FOUND", text));
    }
    for (const [key, model] of this.#models) if (model.namespace === namespace) this.#models.delete(key);
    return Promise.resolve();
  }

  memory(namespace?: string): { usedBytes: number; budgetBytes: number | null } {
    const held = namespace === undefined ? this.namespaces.size : Number(this.namespaces.has(namespace));
    return { usedBytes: modelBytes * held, budgetBytes: null };
  }

  #own(): FakeEntry[] {
    return [...this.#models.values()].filter((model) => model.namespace === "");
  }
}

/** Returns the same labels for every output. */
function labelsFor({ outputs }: ModelConfig, labels: readonly string[] | undefined): ModelView["labels"] {
  return new Map(labels === undefined ? [] : outputs.map(({ name }) => [name, labels]));
}

function configOf(name: string, options: FakeModelOptions): ModelConfig {
  const { batches = false, maxBatchSize = batches ? 8 : 0, decoupled = false } = options;
  const list = (field: string, tensors: FakeModelOptions["inputs"]) =>
    Object.entries(tensors)
      .map(([tensor, [datatype, dims]]) => {
        const type = datatypes[datatype].configName;
        return `${field} { name: "${tensor}" data_type: ${type} dims: [${dims.join(", ")}] }\n`;
      })
      .join("");
  const text = `backend: "python" max_batch_size: ${maxBatchSize}
${list("input", options.inputs)}${list("output", options.outputs)}
model_transaction_policy { decoupled: ${decoupled} }`;
  return completeConfig(parseConfigText(text, "config.pbtxt"), {
    directoryName: name,
    servedName: name,
    versionEntries: ["model.py"],
    gpuCount: 0,
  });
}

/** Rejects with CANCELLED as soon as the signal aborts. `work` then continues in the background, and its result is released. */
function unlessGivenUp(signal: AbortSignal | null, work: () => Promise<readonly Tensor[]>): Promise<readonly Tensor[]> {
  const working = work();
  if (signal === null) return working;
  return new Promise((resolve, reject) => {
    let isGivenUp = false;
    const giveUp = (): void => {
      isGivenUp = true;
      reject(new InferenceError("CANCELLED", ""));
    };
    signal.addEventListener("abort", giveUp, { once: true });
    const ended = (): boolean => {
      signal.removeEventListener("abort", giveUp);
      return isGivenUp;
    };
    working.then(
      (created) => (ended() ? releaseTensors(created) : resolve(created)),
      (error: Error) => void (ended() || reject(error)),
    );
  });
}

function statisticsOf({ config, counted }: FakeEntry): ModelStatistics {
  const times = (count: number) => ({ count, ns: 1000 * count });
  const batches = [...counted.executions].sort(([a], [b]) => a - b);
  const success = times(batches.reduce((sum, [, count]) => sum + count, 0));
  return {
    name: config.name,
    version: "1",
    lastInferenceMs: success.count === 0 ? 0 : 7,
    inferenceCount: counted.inferences,
    executionCount: success.count,
    success,
    fail: times(counted.failures),
    queue: success,
    computeInput: success,
    computeInfer: success,
    computeOutput: success,
    batches: batches.map(([batchSize, count]) => ({
      batchSize,
      computeInput: times(count),
      computeInfer: times(count),
      computeOutput: times(count),
    })),
  };
}
