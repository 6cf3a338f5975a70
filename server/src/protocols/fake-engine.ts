import { ByteBudget, InferenceError } from "../base/index.ts";
import type { Engine, ModelMetadata, ModelTarget, NamespaceSource, ServedModel } from "../engine/index.ts";
import { noParameters, type InferenceRequest, type InferenceResponse } from "../inference/index.ts";
import { completeConfig, parseConfigText } from "../modelconfig/index.ts";
import {
  BlockPart,
  datatypes,
  elementCount,
  releaseTensors,
  type Arena,
  type Block,
  type Datatype,
  type Tensor,
} from "../tensor/index.ts";

/** What a fake model does with a request; the inputs are borrowed until it resolves. */
export type FakeModel = (request: InferenceRequest, arena: FakeArena) => Promise<Tensor[]> | Tensor[];

interface FakeEntry {
  readonly metadata: ModelMetadata;
  readonly batches: boolean;
  readonly run: FakeModel;
  readonly labels: readonly string[];
  readonly usesArena: boolean;
}

/** Counts references as the arena does and poisons what was given back, so that a read after release shows. */
export class FakeArena implements Arena {
  readonly id = 1;
  readonly fd = -1;
  readonly capacityBytes: number;
  usedBytes = 0;

  readonly #budget: ByteBudget;

  constructor(capacityBytes: number, budget: ByteBudget) {
    this.capacityBytes = capacityBytes;
    this.#budget = budget;
  }

  allocate(byteLength: number): Block {
    if (this.usedBytes + byteLength > this.capacityBytes) {
      throw new InferenceError("UNAVAILABLE", `arena of ${this.capacityBytes} bytes is full`);
    }
    this.#budget.take(byteLength);
    this.usedBytes += byteLength;
    const bytes = new Uint8Array(byteLength);
    let references = 1;
    const block: Block = {
      arenaId: this.id,
      byteOffset: 0,
      byteLength,
      bytes,
      get holderCount() {
        return references;
      },
      part: (at, partBytes) => new BlockPart(block, at, partBytes),
      retain: () => {
        if (references === 0) throw new Error("bug: retain of a released block");
        references++;
      },
      release: () => {
        if (references === 0) throw new Error("bug: block released twice");
        if (--references > 0) return;
        this.usedBytes -= byteLength;
        this.#budget.give(byteLength);
        bytes.fill(0xdb);
      },
    };
    return block;
  }

  [Symbol.dispose](): void {}
}

export interface FakeModelOptions {
  readonly inputs: Readonly<Record<string, readonly [Datatype, readonly number[]]>>;
  readonly outputs: Readonly<Record<string, readonly [Datatype, readonly number[]]>>;
  readonly batches?: boolean;
  readonly labels?: readonly string[];
  readonly usesArena?: boolean;
  readonly run: FakeModel;
}

/**
 * An Engine for tests of protocols: models are functions, requests are owned, checked for names, datatypes and sizes with the
 * original's texts, and released in every outcome; loads and namespaces are recorded.
 */
export class FakeEngine implements Engine {
  live = true;
  /** Models that are held by calls now. */
  openCount = 0;
  ready = true;
  readonly arena: FakeArena;
  readonly calls: string[] = [];
  readonly namespaces = new Map<string, NamespaceSource>();
  readonly #models = new Map<string, FakeEntry>();
  openNamespaceWith: (source: NamespaceSource, signal: AbortSignal) => Promise<void> = () => Promise.resolve();

  constructor(arenaBytes = 2 ** 30, budget = new ByteBudget(Infinity)) {
    this.arena = new FakeArena(arenaBytes, budget);
  }

  add(name: string, options: FakeModelOptions, namespace = ""): void {
    const batches = options.batches ?? false;
    const list = (tensors: FakeModelOptions["inputs"]) =>
      Object.entries(tensors).map(([tensor, [datatype, dims]]) => ({
        name: tensor,
        datatype,
        shape: batches ? [-1, ...dims] : dims,
      }));
    this.#models.set(`${namespace}/${name}`, {
      metadata: {
        name,
        versions: ["1"],
        platform: "python",
        inputs: list(options.inputs),
        outputs: list(options.outputs),
      },
      batches,
      run: options.run,
      labels: options.labels ?? [],
      usesArena: options.usesArena ?? true,
    });
  }

  remove(name: string, namespace = ""): void {
    this.#models.delete(`${namespace}/${name}`);
  }

  #find(namespace: string, name: string, version: string): FakeEntry {
    const model = this.#models.get(`${namespace}/${name}`);
    if (model === undefined) throw new InferenceError("NOT_FOUND", `Request for unknown model: '${name}' is not found`);
    if (version !== "" && version !== "1") {
      throw new InferenceError("NOT_FOUND", `Request for unknown model: '${name}' version ${version} is not found`);
    }
    return model;
  }

  open({ namespace, modelName, modelVersion }: ModelTarget): ServedModel {
    const model = this.#find(namespace, modelName, modelVersion);
    this.openCount++;
    let isOpen = true;
    const maxBatchSize = model.batches ? 8 : 0;
    const list = (field: string, tensors: ModelMetadata["inputs"]) =>
      tensors
        .map(({ name, datatype, shape }) => {
          const dims = model.batches ? shape.slice(1) : shape;
          return `${field} { name: "${name}" data_type: ${datatypes[datatype].configName} dims: [${dims.join(", ")}] }\n`;
        })
        .join("");
    const { inputs, outputs } = model.metadata;
    const text = `backend: "python" max_batch_size: ${maxBatchSize}\n${list("input", inputs)}${list("output", outputs)}`;
    return {
      version: "1",
      config: completeConfig(parseConfigText(text, "config.pbtxt"), {
        directoryName: modelName,
        servedName: modelName,
        versionEntries: ["model.py"],
        gpuCount: 0,
      }),
      isHealthy: true,
      arena: model.usesArena ? this.arena : null,
      labelsOf: () => model.labels,
      infer: (request) => this.#infer(model, request),
      stream: async (request, sink) => {
        const outcome = await this.#infer(model, request).catch((error: unknown) => InferenceError.from(error));
        sink.respond(outcome, true, () => {});
      },
      [Symbol.dispose]: () => {
        if (isOpen) this.openCount--;
        isOpen = false;
      },
    };
  }

  async #infer(model: FakeEntry, request: InferenceRequest): Promise<InferenceResponse> {
    try {
      check(request, model.metadata);
      const made = await model.run(request, this.arena);
      const wanted = request.requestedOutputs;
      const outputs = wanted === null ? made : made.filter((tensor) => wanted.includes(tensor.name));
      releaseTensors(made.filter((tensor) => !outputs.includes(tensor)));
      return { modelName: request.modelName, modelVersion: "1", outputs, parameters: noParameters };
    } finally {
      releaseTensors(request.inputs);
    }
  }

  serverMetadata(): { name: string; version: string; extensions: readonly string[] } {
    return { name: "triton", version: "2.51.0", extensions: ["classification"] };
  }

  modelMetadata({ namespace, modelName, modelVersion }: ModelTarget): ModelMetadata {
    return this.#find(namespace, modelName, modelVersion).metadata;
  }

  statistics(modelName: string): ReturnType<Engine["statistics"]> {
    if (modelName !== "" && !this.#models.has(`/${modelName}`)) {
      throw new InferenceError("INVALID_ARG", `requested model '${modelName}' is not available`);
    }
    const one = { count: 1, ns: 1000 };
    return [...this.#models.values()]
      .filter((model) => modelName === "" || model.metadata.name === modelName)
      .map((model) => ({
        name: model.metadata.name,
        version: "1",
        lastInferenceMs: 7,
        inferenceCount: 1,
        executionCount: 1,
        success: one,
        fail: { count: 0, ns: 0 },
        queue: one,
        computeInput: one,
        computeInfer: one,
        computeOutput: one,
        batches: [{ batchSize: 1, computeInput: one, computeInfer: one, computeOutput: one }],
      }));
  }

  repositoryIndex(readyOnly: boolean): ReturnType<Engine["repositoryIndex"]> {
    const rows = [...this.#models.values()].map(({ metadata }) => ({
      name: metadata.name,
      version: "1",
      state: "READY" as const,
      reason: "",
    }));
    return Promise.resolve(
      readyOnly ? rows : [...rows, { name: "untouched", version: "", state: "" as const, reason: "" }],
    );
  }

  loadModel(modelName: string, override: Parameters<Engine["loadModel"]>[1]): Promise<void> {
    const files = [...(override?.files ?? [])].map(([path, content]) => `${path}=${Buffer.from(content).toString()}`);
    this.calls.push(`load ${modelName} ${override?.configJson ?? "-"} ${files.join(",")}`);
    if (modelName !== "nope") return Promise.resolve();
    return Promise.reject(
      new InferenceError("INTERNAL", "failed to load 'nope', failed to poll from model repository"),
    );
  }

  unloadModel(modelName: string, unloadDependents: boolean): Promise<void> {
    this.calls.push(`unload ${modelName} ${unloadDependents}`);
    return Promise.resolve();
  }

  async openNamespace(source: NamespaceSource, signal: AbortSignal): Promise<void> {
    await this.openNamespaceWith(source, signal);
    this.namespaces.set(source.namespace, source);
  }

  closeNamespace(namespace: string): Promise<void> {
    if (this.namespaces.delete(namespace)) return Promise.resolve();
    return Promise.reject(new InferenceError("NOT_FOUND", `namespace '${namespace}' is not registered`));
  }

  memory(namespace?: string): { usedBytes: number; budgetBytes: number | null } {
    return {
      usedBytes: 1000 * (namespace === undefined ? this.namespaces.size : Number(this.namespaces.has(namespace))),
      budgetBytes: null,
    };
  }
}

function check(request: InferenceRequest, metadata: ModelMetadata): void {
  const prefix = `[request id: ${request.id === "" ? "<id_unknown>" : request.id}] `;
  const { modelName } = request;
  for (const name of request.requestedOutputs ?? []) {
    if (metadata.outputs.some((output) => output.name === name)) continue;
    throw new InferenceError("INVALID_ARG", `unexpected inference output '${name}' for model '${modelName}'`);
  }
  for (const [index, input] of request.inputs.entries()) {
    if (request.inputs.findIndex((other) => other.name === input.name) === index) continue;
    throw new InferenceError("INVALID_ARG", `${prefix}input '${input.name}' already exists in request`);
  }
  if (request.inputs.length !== metadata.inputs.length) {
    const missing = metadata.inputs.filter((wanted) => !request.inputs.some((input) => input.name === wanted.name));
    const names = (tensors: readonly { name: string }[]) =>
      `[${tensors.map((tensor) => `'${tensor.name}'`).join(",")}]`;
    throw new InferenceError(
      "INVALID_ARG",
      `${prefix}expected ${metadata.inputs.length} inputs but got ${request.inputs.length} inputs for model '${modelName}'. Got input(s) ${names(request.inputs)}, but missing required input(s) ${names(missing)}. Please provide all required input(s).`,
    );
  }
  for (const input of request.inputs) checkInput(input, metadata, prefix);
}

function checkInput(input: Tensor, metadata: ModelMetadata, prefix: string): void {
  const wanted = metadata.inputs.find((candidate) => candidate.name === input.name);
  if (wanted === undefined) {
    throw new InferenceError("INVALID_ARG", `unexpected inference input '${input.name}' for model '${metadata.name}'`);
  }
  if (wanted.datatype !== input.datatype) {
    throw new InferenceError(
      "INVALID_ARG",
      `${prefix}inference input '${input.name}' data-type is '${input.datatype}', but model '${metadata.name}' expects '${wanted.datatype}'`,
    );
  }
  const expected = elementCount(input.shape) * datatypes[input.datatype].byteSize;
  if (input.datatype !== "BYTES" && expected !== input.data.length) {
    throw new InferenceError(
      "INVALID_ARG",
      `${prefix}input byte size mismatch for input '${input.name}' for model '${metadata.name}'. Expected ${expected}, got ${input.data.length}`,
    );
  }
}

/** A copy of `data` in the arena, as a worker's output would lie there. */
export function arenaTensor(arena: FakeArena, tensor: Omit<Tensor, "block">): Tensor {
  if (tensor.data.length === 0) return { ...tensor, block: null };
  const block = arena.allocate(tensor.data.length);
  block.bytes.set(tensor.data);
  return { ...tensor, data: block.bytes, block };
}

/** The models most tests want: add_sub, an identity per datatype, and one that fails as its input says. */
export function addUsualModels(engine: FakeEngine): void {
  const sixteen = ["FP32", [16]] as const;
  engine.add("add_sub", {
    inputs: { INPUT0: sixteen, INPUT1: sixteen },
    outputs: { OUTPUT0: sixteen, OUTPUT1: sixteen },
    batches: true,
    labels: Array.from({ length: 10 }, (_, index) => `l${index}`),
    run: (request, arena) => {
      const [a, b] = ["INPUT0", "INPUT1"].map((name) => request.inputs.find((input) => input.name === name)!);
      const left = new Float32Array(a!.data.slice().buffer);
      const right = new Float32Array(b!.data.slice().buffer);
      const shape = a!.shape;
      const sum = new Uint8Array(left.map((value, index) => value + right[index]!).buffer);
      const difference = new Uint8Array(left.map((value, index) => value - right[index]!).buffer);
      return [
        arenaTensor(arena, { name: "OUTPUT0", datatype: "FP32", shape, data: sum }),
        arenaTensor(arena, { name: "OUTPUT1", datatype: "FP32", shape, data: difference }),
      ];
    },
  });
  const identity: FakeModel = (request, arena) =>
    request.inputs.map((input) => arenaTensor(arena, { ...input, name: "OUT" }));
  for (const datatype of Object.keys(datatypes) as Datatype[]) {
    const tensor = [datatype, [-1]] as const;
    engine.add(`id_${datatype.toLowerCase()}`, { inputs: { IN: tensor }, outputs: { OUT: tensor }, run: identity });
  }
  engine.add("id1_bytes", { inputs: { IN: ["BYTES", [1]] }, outputs: { OUT: ["BYTES", [1]] }, run: identity });
  engine.add("slow", {
    inputs: { IN: ["FP32", [-1]] },
    outputs: { OUT: ["FP32", [-1]] },
    run: (request, arena) => {
      const { data } = request.inputs[0]!;
      const code = new DataView(data.buffer, data.byteOffset).getFloat32(0, true);
      if (code === -1) throw new InferenceError("INTERNAL", "boom");
      if (code === -2) throw new InferenceError("INVALID_ARG", "boom");
      if (code === -3) throw new InferenceError("UNAVAILABLE", "boom");
      return identity(request, arena);
    },
  });
}
