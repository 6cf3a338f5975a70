import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createLogger, delay, InferenceError, systemClock, type Logger } from "@galatea/base";
import {
  ExecutionNotStarted,
  DeferredResponses,
  newInferenceRequest,
  type Execution,
  type InferenceRequest,
  type InferenceResponse,
  type Instance,
} from "../../inference/index.ts";
import { completeConfig, parseConfigText, type ModelConfig } from "../../modelconfig/index.ts";
import { createArena, datatypes, type Arena, type Datatype, type Tensor } from "../../tensor/index.ts";
import type { NamespaceMetrics } from "../namespace-metrics.ts";
import { noNamespaceMetrics } from "../no-namespace-metrics.ts";
import { noBlsClient } from "../no-bls-client.ts";
import type { Backend, LoadedModel, ModelSource } from "../backend.ts";
import {
  createPythonBackend,
  environmentDefaults,
  preparePythonEnvironment,
  pythonBackendDefaults,
  type PythonBackendOptions,
} from "./index.ts";

export interface WrittenModel {
  readonly source: ModelSource;
  readonly config: ModelConfig;
}

/**
 * A real backend with a real interpreter and numpy, for the tests of this directory. The interpreter's environment is created once and
 * kept.
 */
export interface PythonFixture extends AsyncDisposable {
  readonly backend: Backend;
  readonly arena: Arena;
  readonly log: string[];
  readonly health: { ok: boolean; reason?: string }[];
  /** Directory in which models are written. */
  readonly directory: string;
  /** Writes a model, completes and loads it. */
  load(name: string, modelPy: string, config?: string): Promise<LoadedModel>;
  source(name: string, modelPy: string, config?: string): Promise<WrittenModel>;
  complete(name: string, modelPy: string, config?: string): Promise<ModelConfig>;
  /** Completes the configuration of a model that has been written. */
  completeWritten(model: WrittenModel): Promise<ModelConfig>;
  loadWritten(model: WrittenModel): Promise<LoadedModel>;
}

export const pythonEnv = { PATH: "/usr/local/bin:/usr/bin:/bin", HOME: homedir(), LANG: "C.UTF-8" };

export const addSubConfig = `
backend: "python"
input [{ name: "INPUT0" data_type: TYPE_FP32 dims: [ 16 ] }, { name: "INPUT1" data_type: TYPE_FP32 dims: [ 16 ] }]
output [{ name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 16 ] }, { name: "OUTPUT1" data_type: TYPE_FP32 dims: [ 16 ] }]`;

export const addSubModel = `
import triton_python_backend_utils as pb_utils
class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            a = pb_utils.get_input_tensor_by_name(request, "INPUT0").as_numpy()
            b = pb_utils.get_input_tensor_by_name(request, "INPUT1").as_numpy()
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT0", a + b), pb_utils.Tensor("OUTPUT1", a - b)]))
        return responses
`;
import { testTimeoutMs } from "@galatea/base/core/eventually-fixture.ts";

/** Configuration of a model with one input IN and one output OUT of any length. */
export function oneInOneOut(datatype = "TYPE_FP32", more = ""): string {
  return `backend: "python"
input [{ name: "IN" data_type: ${datatype} dims: [ -1 ] }]
output [{ name: "OUT" data_type: ${datatype} dims: [ -1 ] }]
${more}`;
}

function testPython(): Promise<string> {
  return preparePythonEnvironment({
    dataDirectory: join(homedir(), ".cache/galatea/python-test"),
    packages: ["numpy"],
    wheelsOnly: false,
    pythons: ["python3.11", "python3"],
    env: pythonEnv,
    clock: systemClock,
    onProgress: () => {},
    signal: AbortSignal.timeout(testTimeoutMs),
  });
}

/** Options of a backend without any flags. */
const unasked = {
  ...pythonBackendDefaults,
  ...environmentDefaults,
  ignoresVariables: false,
  packagesDirectory: null,
  environmentBytesMax: 32 * 2 ** 30,
  preImports: [],
  findRunner: () => Promise.resolve(null),
  sharedFileBytesMax: 2 ** 30,
  tenants: null,
  onConfinement: () => {},
  gpuCount: 0,
  gpuBytesOf: () => Promise.resolve(new Map()),
  instancesOnDemandMax: 0,
  hangKillMs: null,
};

export async function openFixture(
  overrides: Partial<PythonBackendOptions> = {},
  metrics: (arena: Arena) => NamespaceMetrics = () => noNamespaceMetrics,
): Promise<PythonFixture> {
  const python = await testPython();
  const directory = await mkdtemp(join(tmpdir(), "galatea-python-"));
  // Sets the permissions that unpacked archives have, so that a tenant's user may read the files.
  await chmod(directory, 0o755);
  const log: string[] = [];
  const logger: Logger = createLogger((level, message) => log.push(`${level}: ${message}`));
  const backend = createPythonBackend({
    ...unasked,
    python,
    pythonEnv,
    environmentsDirectory: join(directory, "environments"),
    workerDirectory: fileURLToPath(new URL("../../../python", import.meta.url)),
    clock: systemClock,
    logger,
    print: (line) => log.push(`printed: ${line}`),
    random: Math.random,
    ...overrides,
  });
  const arena = createArena({ capacityBytes: 2 ** 30 });
  const health: PythonFixture["health"] = [];
  const context = {
    arena,
    backendConfig: new Map<string, string>(),
    onHealth: (one: PythonFixture["health"][number]) => health.push(one),
    bls: noBlsClient,
    metrics: metrics(arena),
    signal: new AbortController().signal,
  };
  const source: PythonFixture["source"] = async (name, modelPy, config = oneInOneOut()) => {
    const modelDirectory = join(directory, name);
    const versionDirectory = join(modelDirectory, "1");
    await mkdir(versionDirectory, { recursive: true });
    await writeFile(join(versionDirectory, "model.py"), modelPy);
    const parsed = completeConfig(parseConfigText(config, "config.pbtxt"), {
      directoryName: name,
      servedName: name,
      versionEntries: ["model.py"],
      gpuCount: overrides.gpuCount ?? 0,
    });
    return { source: { servedName: name, modelDirectory, version: 1, versionDirectory }, config: parsed };
  };
  const completeWritten = (model: WrittenModel) => backend.complete(model.source, model.config, context);
  const loadWritten = async (model: WrittenModel) => backend.load(model.source, await completeWritten(model), context);
  return {
    backend,
    arena,
    directory,
    log,
    health,
    source,
    completeWritten,
    loadWritten,
    complete: async (...model) => completeWritten(await source(...model)),
    load: async (...model) => loadWritten(await source(...model)),
    async [Symbol.asyncDispose]() {
      await backend[Symbol.asyncDispose]();
      arena[Symbol.dispose]();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

export function tensor(name: string, datatype: Datatype, shape: number[], data: Uint8Array): Tensor {
  return { name, datatype, shape, data, block: null };
}

export function floats(name: string, values: readonly number[]): Tensor {
  return tensor(name, "FP32", [values.length], new Uint8Array(new Float32Array(values).buffer));
}

/** Returns the same tensor with its bytes in a block of the arena, like a tensor of a request body. */
export function inArena(arena: Arena, plain: Tensor): Tensor {
  const block = arena.allocate(plain.data.byteLength);
  block.bytes.set(plain.data);
  return { ...plain, data: block.bytes, block };
}

export function request(inputs: Tensor[], more: Partial<InferenceRequest> = {}): InferenceRequest {
  return newInferenceRequest({
    modelName: "m",
    inputs,
    ...more,
  });
}

export function floatsOf(output: Tensor): number[] {
  const copy = output.data.slice();
  return [...new Float32Array(copy.buffer, 0, copy.byteLength / datatypes.FP32.byteSize)];
}

export const header = "import triton_python_backend_utils as pb_utils\nimport numpy as np\n";

/** A model whose execute is `body`; `requests` is the batch. */
export function model(body: string, more = ""): string {
  const indented = body.replaceAll("\n", "\n        ");
  return `${header}class TritonPythonModel:\n    def execute(self, requests):\n        ${indented}\n${more}`;
}

export const echo =
  'return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", r.inputs()[0].as_numpy())]) for r in requests]';

export function only(loaded: LoadedModel): Instance {
  return loaded.instances[0]!;
}

/** Executes a batch like the scheduler: if the execution was not started, waits for the next worker and tries again. */
export async function executed(instance: Instance, batch: readonly InferenceRequest[]): Promise<Execution> {
  for (;;) {
    try {
      return await instance.execute(batch);
    } catch (error) {
      if (!(error instanceof ExecutionNotStarted)) throw error;
    }
    while (instance.supervision?.state === "restarting") await instance.supervision.changed();
  }
}

export async function infer(loaded: LoadedModel, inputs: Tensor[]): Promise<InferenceResponse> {
  const { outcomes } = await executed(only(loaded), [request(inputs)]);
  const [first] = outcomes;
  const outcome = first instanceof DeferredResponses ? await first.ended : first;
  if (outcome instanceof InferenceError) throw outcome;
  if (outcome === undefined || outcome === null) throw new Error("the model has no one response");
  return outcome;
}

export function pidOf(loaded: LoadedModel): number {
  return (loaded.instances[0] as unknown as { pid: number }).pid;
}

export async function until(condition: () => boolean): Promise<void> {
  const signal = AbortSignal.timeout(testTimeoutMs);
  while (!condition()) await delay(systemClock, 2, signal);
}
