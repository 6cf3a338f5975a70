import assert from "node:assert/strict";
import { mkdtempSync, mkdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { InferenceError, silentLogger, systemClock } from "../base/index.ts";
import type { Backend, LoadedModel } from "../backends/index.ts";
import { noParameters, releaseResponse, type InferenceRequest, type Instance } from "../inference/index.ts";
import { completeConfig, parseConfigText } from "../modelconfig/index.ts";
import type { Arena } from "../tensor/index.ts";
import { createEngine, type Catalog, type EngineCore } from "./index.ts";

const echoConfig = `backend: "echo" max_batch_size: 4
input { name: "X" data_type: TYPE_INT32 dims: [ -1 ] }
output { name: "Y" data_type: TYPE_INT32 dims: [ -1 ] }`;
const chainConfig = `platform: "ensemble" max_batch_size: 4
input { name: "A" data_type: TYPE_INT32 dims: [ -1 ] }
output { name: "B" data_type: TYPE_INT32 dims: [ -1 ] }
ensemble_scheduling { step [
 { model_name: "echo" model_version: -1 input_map { key: "X" value: "A" } output_map { key: "Y" value: "mid" } },
 { model_name: "echo2" model_version: -1 input_map { key: "X" value: "mid" } output_map { key: "Y" value: "B" } } ] }`;

interface Disk {
  [model: string]: string;
}

/** Echoes X as Y from the arena; counts what is loaded. */
class EchoBackend implements Backend {
  readonly name = "echo";
  loadedCount = 0;
  memoryBytes = 1000;
  arena: Arena | null = null;
  gate: Promise<void> | null = null;

  complete: Backend["complete"] = (_source, config) => Promise.resolve(config);

  estimateBytes: Backend["estimateBytes"] = () => Promise.resolve(null);

  load: Backend["load"] = async (source, config, context): Promise<LoadedModel> => {
    await this.gate;
    if (config.parameters.get("fail") === "yes") throw new InferenceError("INTERNAL", "ValueError: no");
    this.loadedCount++;
    this.arena = context.arena;
    const instance: Instance = {
      name: `${source.servedName}_0_0`,
      executionsMax: 1,
      givenUp: () => {},
      execute: async (batch) => ({
        computeInputNs: 1,
        computeInferNs: 2,
        computeOutputNs: 3,
        outcomes: batch.map((request) => {
          const input = request.inputs[0];
          assert(input);
          const block = context.arena.allocate(input.data.byteLength);
          block.bytes.set(input.data);
          const output = { name: "Y", datatype: "INT32" as const, shape: input.shape, data: block.bytes, block };
          return { modelName: source.servedName, modelVersion: "1", outputs: [output], parameters: noParameters };
        }),
      }),
    };
    return {
      instances: [instance],
      memoryBytes: () => Promise.resolve(this.memoryBytes),
      [Symbol.asyncDispose]: () => {
        this.loadedCount--;
        return Promise.resolve();
      },
    };
  };

  [Symbol.asyncDispose] = (): Promise<void> => Promise.resolve();
}

let backend: EchoBackend;
let engine: EngineCore;
let disk: Disk;
let directory: string;
const signal = new AbortController().signal;

function catalogOver(models: () => Disk): Catalog {
  return {
    names: () => Promise.resolve(Object.keys(models()).map((name) => ({ name, duplicate: false }))),
    find: (name) => {
      const text = models()[name];
      if (text === undefined) return Promise.reject(new InferenceError("NOT_FOUND", `no directory '${name}'`));
      const message = parseConfigText(text, `${name}/config.pbtxt`);
      const config = completeConfig(message, {
        directoryName: name,
        servedName: name,
        versionEntries: [],
        gpuCount: 0,
      });
      const versionDirectory = join(directory, name, "1");
      mkdirSync(versionDirectory, { recursive: true });
      return Promise.resolve({
        servedName: name,
        modelDirectory: join(directory, name),
        config,
        versions: [{ version: 1, directory: versionDirectory }],
      });
    },
  };
}

function open(memoryBudgetBytes: number | null = null): EngineCore {
  return createEngine({
    id: "test",
    version: "0",
    explicitControl: true,
    strictReadiness: true,
    autoComplete: true,
    backends: [backend],
    backendConfig: () => new Map(),
    catalog: catalogOver(() => disk),
    catalogOf: () => catalogOver(() => disk),
    arenaBytes: 1 << 24,
    namespaceArenaBytes: 1 << 24,
    memoryBudgetBytes,
    queueLengthMax: 100,
    loadsMax: 2,
    metrics: { open: () => ({ succeeded() {}, failed() {}, close() {} }) },
    clock: systemClock,
    log: silentLogger,
  });
}

function request(modelName: string, input: string, values: readonly number[], namespace = ""): InferenceRequest {
  const data = new Uint8Array(Int32Array.from(values).buffer);
  return {
    id: "",
    namespace,
    modelName,
    modelVersion: "",
    inputs: [{ name: input, datatype: "INT32", shape: [1, values.length], data, block: null }],
    requestedOutputs: null,
    parameters: noParameters,
    sequence: null,
    priority: 0,
    queueTimeoutUs: 0,
    signal: null,
  };
}

async function answer(target: InferenceRequest): Promise<{ name: string; values: number[] }> {
  const response = await engine.infer(target);
  const [output] = response.outputs;
  assert(output);
  const values = [...new Int32Array(output.data.slice().buffer)];
  releaseResponse(response);
  return { name: output.name, values };
}

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "engine-"));
  backend = new EchoBackend();
  disk = { echo: echoConfig, echo2: echoConfig, chain: chainConfig };
  engine = open();
});

afterEach(() => engine[Symbol.asyncDispose]());

describe("engine", () => {
  it("loads an ensemble with its steps and hands tensors through it without leaking a block", async () => {
    await engine.loadModel("chain", null, signal);
    assert.deepEqual(await answer(request("chain", "A", [1, 2, 3])), { name: "B", values: [1, 2, 3] });
    assert.equal(backend.arena?.usedBytes, 0);
    assert.deepEqual(
      engine
        .statistics("", "")
        .map((row) => [row.name, row.inferenceCount, row.executionCount])
        .sort((a, b) => String(a[0]).localeCompare(String(b[0]))),
      [
        ["chain", 1, 1],
        ["echo", 1, 1],
        ["echo2", 1, 1],
      ],
    );
  });

  it("makes nothing of a model whose label file is missing", async () => {
    disk.echo = echoConfig.replace('name: "Y"', 'name: "Y" label_filename: "absent.txt"');
    await assert.rejects(
      engine.loadModel("echo", null, signal),
      /failed to open label file .*absent\.txt of output 'Y'/,
    );
    assert.equal(backend.loadedCount, 0);
    assert.equal(engine.memory().usedBytes, 0);
  });

  it("answers lookups in the original's words", async () => {
    await assert.rejects(
      engine.infer(request("nobody", "X", [1])),
      /^InferenceError: Request for unknown model: 'nobody' is not found$/,
    );
    await engine.loadModel("echo", null, signal);
    assert.throws(() => engine.modelReady("", "echo", "3"), /'echo' version 3 is not found/);
    await engine.unloadModel("echo", false);
    await assert.rejects(engine.infer(request("echo", "X", [1])), /'echo' has no available versions/);
  });

  it("keeps the old version when a reload fails, and says why", async () => {
    await engine.loadModel("echo", null, signal);
    disk.echo = `${echoConfig} parameters { key: "fail" value { string_value: "yes" } }`;
    await assert.rejects(
      engine.loadModel("echo", null, signal),
      /load failed for model 'echo': version 1 is at UNAVAILABLE state: Internal: ValueError: no;\n/,
    );
    assert.deepEqual((await answer(request("echo", "X", [7]))).values, [7]);
    assert.equal(backend.loadedCount, 1);
  });

  it("refuses circles, unknown steps and unknown models with the reason", async () => {
    disk.chain = chainConfig.replace('"echo2"', '"chain"');
    await assert.rejects(
      engine.loadModel("chain", null, signal),
      /circular dependency between ensembles: chain -> chain/,
    );
    disk.chain = chainConfig.replace('"echo2"', '"ghost"');
    await assert.rejects(
      engine.loadModel("chain", null, signal),
      /load failed for model 'chain': ensemble chain contains models that are not available or ambiguous: ghost\n/,
    );
    await assert.rejects(
      engine.loadModel("ghost", null, signal),
      /failed to load 'ghost', failed to poll from model repository: no directory/,
    );
  });

  it("tells what is wrong with a configuration from what is wrong with a version, and names no version for ensembles", async () => {
    const refused = (code: string, message: RegExp) => (error: InferenceError) =>
      error.code === code && message.test(error.message);
    disk.echo = `${echoConfig} dynamic_batching { preferred_batch_size: 5 }`;
    await assert.rejects(
      engine.loadModel("echo", null, signal),
      refused("INTERNAL", /^failed to load 'echo', failed to poll from model repository: dynamic batching preferred/),
    );
    disk.echo = echoConfig.replace("dims: [ -1 ]", "dims: [ 0 ]");
    await assert.rejects(
      engine.loadModel("echo", null, signal),
      refused(
        "INVALID_ARG",
        /^load failed for model 'echo': version 1 is at UNAVAILABLE state: Invalid argument: model/,
      ),
    );
    await assert.rejects(
      engine.loadModel("chain", null, signal),
      refused(
        "INVALID_ARG",
        /^load failed for model 'chain': ensemble 'chain' depends on 'echo' .* failed with error: version 1 is at/,
      ),
    );
    disk.echo = echoConfig;
    disk.chain = chainConfig.replace('key: "X" value: "A"', 'key: "Z" value: "A"');
    await assert.rejects(
      engine.loadModel("chain", null, signal),
      refused(
        "INVALID_ARG",
        /^load failed for model 'chain': in ensemble chain, .* non-existing input Z in model echo\n$/,
      ),
    );
    assert.deepEqual(
      (await engine.repositoryIndex(false)).map((row) => [row.name, row.version, row.state]),
      [
        ["echo", "1", "READY"],
        ["echo2", "1", "READY"],
        ["chain", "1", "UNAVAILABLE"],
      ],
    );
  });

  it("takes the steps along when an ensemble is unloaded with its dependents, but not what was loaded by name", async () => {
    await engine.loadModel("echo", null, signal);
    await engine.loadModel("chain", null, signal);
    await engine.unloadModel("chain", true);
    const states = (await engine.repositoryIndex(false)).map((row) => [row.name, row.state]);
    assert.deepEqual(new Map(states as [string, string][]).get("echo"), "READY");
    assert.notEqual(new Map(states as [string, string][]).get("echo2"), "READY");
  });

  it("keeps namespaces apart and gives everything back when one closes", async () => {
    const source = { repositoryDirectory: directory, modelDirectoryName: "chain", servedName: "chain" };
    await engine.openNamespace({ ...source, namespace: "a" }, signal);
    await engine.openNamespace({ ...source, namespace: "b" }, signal);
    await assert.rejects(engine.openNamespace({ ...source, namespace: "a" }, signal), /has already been registered/);
    assert.equal(backend.loadedCount, 4);
    assert.deepEqual((await answer(request("chain", "A", [5], "b"))).values, [5]);
    await engine.closeNamespace("a");
    assert.equal(backend.loadedCount, 2);
    await assert.rejects(engine.infer(request("chain", "A", [5], "a")), /is not found/);
    await assert.rejects(engine.closeNamespace("a"), (error: InferenceError) => error.code === "NOT_FOUND");
  });

  it("refuses a load beyond the memory budget and charges what it measured", async () => {
    await engine[Symbol.asyncDispose]();
    engine = open(2500);
    await engine.loadModel("echo", null, signal);
    assert.equal(engine.memory().usedBytes, 1000);
    await engine.loadModel("echo2", null, signal);
    disk.echo3 = echoConfig;
    await assert.rejects(engine.loadModel("echo3", null, signal), /^InferenceError: Out of memory: model 'echo3'/);
    assert.equal(backend.loadedCount, 2);
    assert.equal(engine.memory().usedBytes, 2000);
  });
});
