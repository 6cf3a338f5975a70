import assert from "node:assert/strict";
import { test } from "node:test";
import { InferenceError, type InferenceCode } from "../base/index.ts";
import { noParameters, releaseResponse, type InferenceRequest, type Outcome } from "../inference/index.ts";
import type { Tensor } from "../tensor/index.ts";
import type { Engine, ServedModel } from "./engine.ts";

/** A tensor that a model of the suite takes or gives: datatype and dimensions, without the batch. */
export type ContractTensor = readonly ["INT32" | "BYTES", readonly number[]];

export interface ContractModel {
  readonly inputs: Readonly<Record<string, ContractTensor>>;
  readonly outputs: Readonly<Record<string, ContractTensor>>;
  /** 0: it does not batch. */
  readonly maxBatchSize: number;
  readonly decoupled: boolean;
}

const numbers: ContractTensor = ["INT32", [-1]];

/**
 * The models that lie in the engine's repository, none of them loaded. Each gives its input `X` back as each of its outputs, and
 * `failing` raises an INTERNAL error `boom` instead. `counting` answers once for each number of its input, then ends.
 */
export const contractModels = {
  echo: { inputs: { X: numbers }, outputs: { Y: numbers, Z: numbers }, maxBatchSize: 4, decoupled: false },
  words: { inputs: { X: ["BYTES", [2]] }, outputs: { Y: ["BYTES", [2]] }, maxBatchSize: 0, decoupled: false },
  failing: { inputs: { X: numbers }, outputs: { Y: numbers }, maxBatchSize: 4, decoupled: false },
  counting: { inputs: { X: numbers }, outputs: { Y: ["INT32", [1]] }, maxBatchSize: 0, decoupled: true },
} as const satisfies Readonly<Record<string, ContractModel>>;

export type ContractModelName = keyof typeof contractModels;

/** An engine that allows loading by name; a namespace's directory holds the same models. */
export interface EngineSubject extends AsyncDisposable {
  readonly engine: Engine;
  /** What `failing` waits for before it raises, if anything. */
  holdFailing(until: Promise<void>): void;
  /** The server begins to exit. */
  exit(): void;
}

const signal = new AbortController().signal;

/** What every Engine does. `open` gives one with nothing loaded. */
export function engineContract(name: string, open: () => Promise<EngineSubject>): void {
  const check = (title: string, work: (engine: Engine, subject: EngineSubject) => Promise<void>): void => {
    test(`${name}: ${title}`, async () => {
      await using subject = await open();
      await work(subject.engine, subject);
    });
  };
  lookups(check);
  inference(check);
  decoupledModels(check);
  repositoryControl(check);
  namespaces(check);
}

type Check = (title: string, work: (engine: Engine, subject: EngineSubject) => Promise<void>) => void;

function lookups(check: Check): void {
  check(
    "a name or version that is not there is told in Triton's words, by every method that looks one up",
    async (engine) => {
      await load(engine, "echo");
      for (const [modelName, modelVersion, code, message] of [
        ["nobody", "", "NOT_FOUND", "Request for unknown model: 'nobody' is not found"],
        ["words", "", "NOT_FOUND", "Request for unknown model: 'words' is not found"],
        ["echo", "3", "NOT_FOUND", "Request for unknown model: 'echo' version 3 is not found"],
      ] as const) {
        const target = { namespace: "", modelName, modelVersion };
        assert.throws(() => engine.open(target), told(code, message));
        assert.throws(() => engine.modelMetadata(target), told(code, message));
      }
    },
  );

  check("a model is found without a version, by its number and by -1", async (engine) => {
    await load(engine, "echo");
    for (const version of ["", "1", "-1"]) {
      using model = hold(engine, "echo", version);
      assert.equal(model.version, "1");
    }
  });

  check("a held model tells its completed configuration, and may be let go of twice", async (engine) => {
    await load(engine, "echo");
    const model = hold(engine, "echo");
    const { config } = model;
    assert.deepEqual([config.name, config.maxBatchSize, config.decoupled, model.isHealthy], ["echo", 4, false, true]);
    assert.deepEqual(
      config.outputs.map((output) => [output.name, output.datatype, output.dims]),
      [
        ["Y", "INT32", [-1]],
        ["Z", "INT32", [-1]],
      ],
    );
    assert.deepEqual(model.labelsOf("Y"), []);
    assert.deepEqual(model.labelsOf("no such output"), []);
    model[Symbol.dispose]();
    model[Symbol.dispose]();
  });

  check("metadata give shapes as clients send them", async (engine) => {
    await load(engine, "echo");
    await load(engine, "words");
    const tensor = (of: string, datatype: string, shape: number[]) => ({ name: of, datatype, shape });
    assert.deepEqual(metadataOf(engine, "echo"), {
      name: "echo",
      versions: ["1"],
      inputs: [tensor("X", "INT32", [-1, -1])],
      outputs: [tensor("Y", "INT32", [-1, -1]), tensor("Z", "INT32", [-1, -1])],
    });
    assert.deepEqual(metadataOf(engine, "words").inputs, [tensor("X", "BYTES", [2])]);
  });
}

function inference(check: Check): void {
  check(
    "a request is answered with the outputs it asks for, and its memory is free when both are released",
    async (engine) => {
      await load(engine, "echo");
      using model = hold(engine, "echo");
      for (const [requestedOutputs, names] of [
        [null, ["Y", "Z"]],
        [["Z"], ["Z"]],
      ] as const) {
        const response = await model.infer(request(model, "echo", [1, 2], { requestedOutputs }));
        assert.deepEqual([response.modelName, response.modelVersion], ["echo", "1"]);
        assert.deepEqual(response.outputs.map((output) => output.name).sort(), names);
        for (const { shape, data } of response.outputs)
          assert.deepEqual(
            [shape, [...new Int32Array(data.slice().buffer)]],
            [
              [1, 2],
              [1, 2],
            ],
          );
        releaseResponse(response);
        assert.equal(model.arena?.usedBytes, 0);
      }
    },
  );

  for (const [what, change, message] of refusals)
    check(`${what} is refused in Triton's words, and the inputs are given back`, async (engine) => {
      await load(engine, "echo");
      using model = hold(engine, "echo");
      await assert.rejects(model.infer(change(request(model, "echo", [1, 2]))), told("INVALID_ARG", message));
      assert.equal(model.arena?.usedBytes, 0);
    });

  check("strings are counted and measured", async (engine) => {
    await load(engine, "words");
    using model = hold(engine, "words");
    const words = (bytes: readonly number[]) => {
      const input = inputOf(model, Uint8Array.from(bytes), { datatype: "BYTES", shape: [2] });
      return model.infer({ ...request(model, "words", []), inputs: [input] });
    };
    releaseResponse(await words([1, 0, 0, 0, 65, 0, 0, 0, 0]));
    await assert.rejects(
      words([1, 0, 0, 0, 65]),
      told(
        "INVALID_ARG",
        "[request id: <id_unknown>] expected 2 string elements for inference input 'X' for model 'words', got 1",
      ),
    );
    await assert.rejects(
      words([9, 0, 0, 0, 65]),
      told("INVALID_ARG", /^incomplete string data for inference input 'X'/),
    );
    assert.equal(model.arena?.usedBytes, 0);
  });

  check("what a model raises is the request's error, and the inputs are given back", async (engine) => {
    await load(engine, "failing");
    using model = hold(engine, "failing");
    await assert.rejects(model.infer(request(model, "failing", [1])), told("INTERNAL", "boom"));
    assert.equal(model.arena?.usedBytes, 0);
  });

  check("a request that nobody waits for is cancelled, before it runs and while it does", async (engine, subject) => {
    await load(engine, "failing");
    using model = hold(engine, "failing");
    const gone = { ...request(model, "failing", [1]), signal: AbortSignal.abort() };
    await assert.rejects(model.infer(gone), { code: "CANCELLED" });
    const held = Promise.withResolvers<void>();
    subject.holdFailing(held.promise);
    const leaving = new AbortController();
    const answer = model.infer({ ...request(model, "failing", [1]), signal: leaving.signal });
    const cancelled = assert.rejects(answer, { code: "CANCELLED" });
    leaving.abort();
    await cancelled;
    assert.notEqual(model.arena?.usedBytes, 0, "the model still reads its input");
    held.resolve();
    await until(() => model.arena?.usedBytes === 0);
  });

  check("statistics count what was answered and what failed, not what was refused", async (engine) => {
    await load(engine, "echo");
    await load(engine, "failing");
    using model = hold(engine, "echo");
    using failing = hold(engine, "failing");
    const two = inputOf(model, bytesOf([1, 2]), { shape: [2, 1] });
    releaseResponse(await model.infer({ ...request(model, "echo", []), inputs: [two] }));
    releaseResponse(await model.infer(request(model, "echo", [1])));
    await assert.rejects(model.infer({ ...request(model, "echo", [1]), requestedOutputs: ["W"] }));
    await assert.rejects(failing.infer(request(failing, "failing", [1])));
    assert.deepEqual(counts(engine, "echo"), [["echo", "1", 3, 2, 2, 0]]);
    assert.deepEqual(
      counts(engine, "failing").map((row) => row.slice(4)),
      [[0, 1]],
    );
    assert.deepEqual(new Set(counts(engine, "").map(([modelName]) => modelName)), new Set(["echo", "failing"]));
    const [row] = engine.statistics("echo", "1");
    assert.deepEqual(
      row?.batches.map((batch) => [batch.batchSize, batch.computeInfer.count]),
      [
        [1, 1],
        [2, 1],
      ],
    );
    const unknown = told("INVALID_ARG", "requested model 'nobody' is not available");
    assert.throws(() => engine.statistics("nobody", ""), unknown);
    const absent = told("INVALID_ARG", "requested model version is not available for model 'echo'");
    assert.throws(() => engine.statistics("echo", "2"), absent);
  });
}

function decoupledModels(check: Check): void {
  check("a decoupled model gives its answers to the sink in order and says which is the last", async (engine) => {
    await load(engine, "counting");
    using model = hold(engine, "counting");
    assert.equal(model.config.decoupled, true);
    assert.deepEqual(await streamed(model, request(model, "counting", [5, 6, 7])), ["5", "6", "7", "final"]);
    assert.deepEqual(await streamed(model, request(model, "counting", [])), ["final"]);
    assert.equal(model.arena?.usedBytes, 0);
  });

  check("what is refused is the stream's only answer, and the inputs are given back", async (engine) => {
    await load(engine, "counting");
    using model = hold(engine, "counting");
    const wrong = { ...request(model, "counting", [1]), requestedOutputs: ["W"] };
    const refusal = "unexpected inference output 'W' for model 'counting'";
    assert.deepEqual(await streamed(model, wrong), [`INVALID_ARG ${refusal} final`]);
    assert.equal(model.arena?.usedBytes, 0);
  });

  check("a decoupled model has no one answer", async (engine) => {
    await load(engine, "counting");
    using model = hold(engine, "counting");
    await assert.rejects(model.infer(request(model, "counting", [1])), { code: "UNSUPPORTED" });
    assert.equal(model.arena?.usedBytes, 0);
  });
}

function repositoryControl(check: Check): void {
  check("the index lists what lies on disk with what became of it", async (engine) => {
    await load(engine, "echo");
    await load(engine, "words");
    await engine.unloadModel("words", false);
    await until(async () => (await index(engine)).every((row) => row.at(2) !== "UNLOADING"));
    const rows = await index(engine);
    assert.deepEqual(
      rows.find(([model]) => model === "echo"),
      ["echo", "1", "READY", ""],
    );
    assert.deepEqual(
      rows.find(([model]) => model === "words"),
      ["words", "1", "UNAVAILABLE", "unloaded"],
    );
    assert.deepEqual(
      rows.find(([model]) => model === "failing"),
      ["failing", "", "", ""],
    );
    assert.deepEqual(
      (await engine.repositoryIndex(true)).map((row) => [row.name, row.state]),
      [["echo", "READY"]],
    );
  });

  check("a model that was unloaded has no versions until it is loaded again", async (engine) => {
    await load(engine, "echo");
    await engine.unloadModel("echo", false);
    const target = { namespace: "", modelName: "echo", modelVersion: "" };
    const none = told("NOT_FOUND", "Request for unknown model: 'echo' has no available versions");
    assert.throws(() => engine.open(target), none);
    await until(async () => (await index(engine)).every((row) => row.at(2) !== "UNLOADING"));
    const notReady = told("UNAVAILABLE", "Request for unknown model: 'echo' version 1 is not at ready state");
    assert.throws(() => engine.open({ ...target, modelVersion: "1" }), notReady);
    assert.throws(() => engine.statistics("echo", ""), { code: "INVALID_ARG" });
    await load(engine, "echo");
    hold(engine, "echo")[Symbol.dispose]();
  });

  check("a call that holds a model is answered although it was unloaded", async (engine) => {
    await load(engine, "echo");
    using model = hold(engine, "echo");
    await engine.unloadModel("echo", false);
    releaseResponse(await model.infer(request(model, "echo", [7])));
    assert.equal(model.config.name, "echo");
  });

  check("a name in no repository cannot be loaded, and may be unloaded", async (engine) => {
    const notPolled = told("INTERNAL", /^failed to load 'ghost', failed to poll from model repository/);
    await assert.rejects(load(engine, "ghost"), notPolled);
    await engine.unloadModel("ghost", false);
    const unknown = told("NOT_FOUND", "Request for unknown model: 'ghost' is not found");
    assert.throws(() => hold(engine, "ghost"), unknown);
  });

  check("an engine that exits is neither live nor ready and gives no model out", async (engine, subject) => {
    await load(engine, "echo");
    assert.deepEqual([engine.live, engine.ready], [true, true]);
    subject.exit();
    assert.deepEqual([engine.live, engine.ready], [false, false]);
    assert.throws(() => hold(engine, "echo"), told("UNAVAILABLE", "Server not ready"));
  });
}

function namespaces(check: Check): void {
  const source = (namespace: string, servedName = "echo") => ({
    namespace,
    repositoryDirectory: `/archives/${namespace}`,
    modelDirectoryName: servedName,
    servedName,
  });

  check("a namespace's models are its own, and go with their memory when it is closed", async (engine) => {
    await engine.openNamespace(source("a"), signal);
    assert.throws(() => hold(engine, "echo"), { code: "NOT_FOUND" });
    assert.throws(() => hold(engine, "echo", "", "b"), { code: "NOT_FOUND" });
    const usedBytes = engine.memory("a").usedBytes;
    assert.ok(usedBytes > 0);
    await engine.openNamespace(source("b"), signal);
    assert.deepEqual([engine.memory("a").usedBytes, engine.memory().usedBytes], [usedBytes, 2 * usedBytes]);
    {
      using model = hold(engine, "echo", "", "a");
      releaseResponse(await model.infer({ ...request(model, "echo", [1]), namespace: "a" }));
    }
    await engine.closeNamespace("a");
    assert.throws(
      () => hold(engine, "echo", "", "a"),
      told("NOT_FOUND", "Request for unknown model: 'echo' is not found"),
    );
    assert.deepEqual([engine.memory("a").usedBytes, engine.memory().usedBytes], [0, usedBytes]);
    hold(engine, "echo", "", "b")[Symbol.dispose]();
  });

  check("a namespace is registered once, and closed once", async (engine) => {
    await engine.openNamespace(source("a"), signal);
    await assert.rejects(
      engine.openNamespace(source("a"), signal),
      told("ALREADY_EXISTS", "model repository '/archives/a' has already been registered"),
    );
    await engine.closeNamespace("a");
    const unknown = told("NOT_FOUND", "model repository 'a' is not registered");
    await assert.rejects(engine.closeNamespace("a"), unknown);
  });

  check("nothing is registered by a load that fails", async (engine) => {
    await assert.rejects(
      engine.openNamespace(source("a", "ghost"), signal),
      told("INTERNAL", /^failed to load 'ghost'/),
    );
    await assert.rejects(engine.closeNamespace("a"), { code: "NOT_FOUND" });
    await engine.openNamespace(source("a"), signal);
  });

  check("the index and the statistics are of the server's own models", async (engine) => {
    await engine.openNamespace(source("a"), signal);
    assert.deepEqual(await engine.repositoryIndex(true), []);
    assert.deepEqual(engine.statistics("", ""), []);
  });
}

/** What is refused of a good request to `echo` with one row of two numbers. */
const refusals: readonly (readonly [string, (good: InferenceRequest) => InferenceRequest, string])[] = [
  [
    "an output that the model has not",
    (good) => ({ ...good, requestedOutputs: ["Y", "W"] }),
    "unexpected inference output 'W' for model 'echo'",
  ],
  [
    "an input that is missing",
    (good) => withInputs(good, []),
    "[request id: <id_unknown>] expected 1 inputs but got 0 inputs for model 'echo'. Got input(s) [], but missing required input(s) ['X']. Please provide all required input(s).",
  ],
  [
    "an input that the model has not",
    (good) => withInputs(good, [{ ...good.inputs[0]!, name: "W" }]),
    "unexpected inference input 'W' for model 'echo'",
  ],
  [
    "an input that is there twice",
    (good) => withInputs({ ...good, id: "r1" }, [good.inputs[0]!, { ...good.inputs[0]!, block: null }]),
    "[request id: r1] input 'X' already exists in request",
  ],
  [
    "another datatype",
    (good) => withInputs(good, [{ ...good.inputs[0]!, datatype: "FP32" }]),
    "[request id: <id_unknown>] inference input 'X' data-type is 'FP32', but model 'echo' expects 'INT32'",
  ],
  [
    "a number of bytes that is not the shape's",
    (good) => withInputs(good, [{ ...good.inputs[0]!, shape: [1, 3] }]),
    "[request id: <id_unknown>] input byte size mismatch for input 'X' for model 'echo'. Expected 12, got 8",
  ],
  [
    "a shape without a batch",
    (good) => withInputs(good, [{ ...good.inputs[0]!, shape: [] }]),
    "[request id: <id_unknown>] input 'X' has no shape but model requires batch dimension for 'echo'",
  ],
  [
    "a batch beyond the model's",
    (good) => withInputs(good, [{ ...good.inputs[0]!, shape: [5, 2] }]),
    "[request id: <id_unknown>] inference request batch-size must be <= 4 for 'echo'",
  ],
];

function withInputs(good: InferenceRequest, inputs: readonly Tensor[]): InferenceRequest {
  if (!inputs.some((input) => input.block !== null)) for (const input of good.inputs) input.block?.release();
  return { ...good, inputs };
}

const bytesOf = (values: readonly number[]) => new Uint8Array(Int32Array.from(values).buffer);

function inputOf(model: ServedModel, bytes: Uint8Array, more: Partial<Tensor>): Tensor {
  assert.ok(model.arena);
  if (bytes.length === 0) return { name: "X", datatype: "INT32", shape: [0], data: bytes, block: null, ...more };
  const block = model.arena.allocate(bytes.length);
  block.bytes.set(bytes);
  return { name: "X", datatype: "INT32", shape: [1], data: block.bytes.subarray(0, bytes.length), block, ...more };
}

/** A request with one row of numbers, in the model's own memory, as protocols read it. */
function request(
  model: ServedModel,
  modelName: ContractModelName,
  values: readonly number[],
  more: Partial<InferenceRequest> = {},
): InferenceRequest {
  const shape = model.config.maxBatchSize > 0 ? [1, values.length] : [values.length];
  return {
    id: "",
    namespace: "",
    modelName,
    modelVersion: "",
    inputs: [inputOf(model, bytesOf(values), { shape })],
    requestedOutputs: null,
    parameters: noParameters,
    sequence: null,
    priority: 0,
    queueTimeoutUs: 0,
    signal: null,
    receivedNs: 0,
    deadlineNs: Number.POSITIVE_INFINITY,
    caller: null,
    trace: null,
    ...more,
  };
}

/** What a sink is given, a line for each answer. */
async function streamed(model: ServedModel, asked: InferenceRequest): Promise<readonly string[]> {
  const lines: string[] = [];
  await model.stream(asked, {
    respond(outcome: Outcome | null, isFinal, taken) {
      const words: string[] = [];
      if (outcome instanceof InferenceError) words.push(`${outcome.code} ${outcome.message}`);
      else if (outcome !== null) {
        const { data } = outcome.outputs[0]!;
        words.push(String(new DataView(data.buffer, data.byteOffset).getInt32(0, true)));
        releaseResponse(outcome);
      }
      if (isFinal) words.push("final");
      lines.push(words.join(" "));
      taken();
    },
  });
  return lines;
}

const load = (engine: Engine, modelName: string) => engine.loadModel(modelName, null, signal);

const hold = (engine: Engine, modelName: string, modelVersion = "", namespace = "") =>
  engine.open({ namespace, modelName, modelVersion });

function metadataOf(engine: Engine, modelName: string) {
  const { platform: _platform, ...rest } = engine.modelMetadata({ namespace: "", modelName, modelVersion: "" });
  return rest;
}

const counts = (engine: Engine, modelName: string) =>
  engine
    .statistics(modelName, "")
    .map((row) => [row.name, row.version, row.inferenceCount, row.executionCount, row.success.count, row.fail.count]);

const index = async (engine: Engine) =>
  (await engine.repositoryIndex(false)).map((row) => [row.name, row.version, row.state, row.reason]);

const told = (code: InferenceCode, message: string | RegExp) => (error: unknown) => {
  assert.ok(error instanceof InferenceError);
  assert.equal(error.code, code);
  if (typeof message === "string") assert.equal(error.message, message);
  else assert.match(error.message, message);
  return true;
};

async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await new Promise((resolve) => setImmediate(resolve));
}
