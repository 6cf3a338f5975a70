import { InferenceError } from "@galatea/base";
import { machineBytes, type Backend, type LoadedModel } from "../backends/index.ts";
import {
  noParameters,
  type Execution,
  type InferenceRequest,
  type Instance,
  type InferenceResponse,
  type Outcome,
  DeferredResponses,
  type ResponseSink,
} from "../inference/index.ts";
import type { ModelConfig } from "../modelconfig/index.ts";
import type { Arena, Tensor } from "../tensor/index.ts";
import { EngineFixture } from "./engine-fixtures.ts";
import { contractModels, type ContractModel, type ContractTensor, type EngineSubject } from "./engine.contract.ts";

/** Opens a real engine for the contract tests of `Engine`. */
export function openEngineSubject(): Promise<EngineSubject> {
  const bench = new EngineFixture();
  const backend = new ContractBackend();
  bench.backends.push(backend);
  for (const [name, model] of Object.entries(contractModels)) bench.models[name] = configText(model);
  return bench.engine[Symbol.asyncDispose]().then(() => {
    const engine = bench.open(null);
    bench.engine = engine;
    return {
      engine,
      holdFailing: (until) => void (backend.failingWaitsFor = until),
      exit: () => engine.abandon("the server exits"),
      [Symbol.asyncDispose]: () => bench[Symbol.asyncDispose](),
    };
  });
}

function configText({ inputs, outputs, maxBatchSize, decoupled }: ContractModel): string {
  const list = (field: string, tensors: Readonly<Record<string, ContractTensor>>) =>
    Object.entries(tensors)
      .map(([name, [datatype, dims]]) => {
        const type = datatype === "BYTES" ? "STRING" : datatype;
        return `${field} { name: "${name}" data_type: TYPE_${type} dims: [${dims.join(", ")}] }\n`;
      })
      .join("");
  return `backend: "contract" max_batch_size: ${maxBatchSize}\n${list("input", inputs)}${list("output", outputs)}model_transaction_policy { decoupled: ${decoupled} }`;
}

/** A backend with the models that the contract tests use. */
class ContractBackend implements Backend {
  readonly name = "contract";
  failingWaitsFor: Promise<void> = Promise.resolve();

  complete: Backend["complete"] = (_source, config) => Promise.resolve(config);

  estimateBytes: Backend["estimateBytes"] = () => Promise.resolve(null);

  warmUp: Backend["warmUp"] = () => Promise.resolve();

  load: Backend["load"] = (source, config, { arena }): Promise<LoadedModel> => {
    const execute = async (batch: readonly InferenceRequest[]): Promise<Execution> => {
      if (source.servedName === "failing") await this.failingWaitsFor;
      const times = { computeInputNs: 1, computeInferNs: 2, computeOutputNs: 3 };
      if (config.decoupled) return { ...times, ...count(batch, config, arena) };
      return { ...times, outcomes: batch.map((request) => outcomeOf(request, config, arena)) };
    };
    const instance: Instance = {
      name: `${config.name}_0_0`,
      executionsMax: 1,
      supervision: null,
      abandonRequest: () => {},
      execute,
    };
    return Promise.resolve({
      instances: [instance],
      memoryBytes: () => Promise.resolve(machineBytes(1000)),
      [Symbol.asyncDispose]: () => Promise.resolve(),
    });
  };

  [Symbol.asyncDispose] = (): Promise<void> => Promise.resolve();
}

function outcomeOf(request: InferenceRequest, config: ModelConfig, arena: Arena): Outcome {
  if (config.name === "failing") return new InferenceError("INTERNAL", "boom");
  const input = request.inputs[0]!;
  const expected = config.outputs.filter(({ name }) => request.requestedOutputs?.includes(name) ?? true);
  return createResponse(
    config,
    expected.map(({ name }) => ({ ...input, name, ...placed(arena, input.data) })),
  );
}

/** Sends one response for each number of the input, in later event loop ticks, as a worker process does. */
function count(batch: readonly InferenceRequest[], config: ModelConfig, arena: Arena) {
  const outcomes = batch.map(({ inputs, responseSink }) => new DeferredResponses(send(inputs, responseSink)));
  return { outcomes };

  async function send(inputs: readonly Tensor[], responseSink: ResponseSink | undefined): Promise<null> {
    const values = new Int32Array(inputs[0]!.data.slice().buffer);
    for (const value of values) {
      await new Promise((resolve) => setImmediate(resolve));
      const data = new Uint8Array(Int32Array.of(value).buffer);
      const output: Tensor = { name: "Y", datatype: "INT32", shape: [1], ...placed(arena, data) };
      responseSink?.respond(createResponse(config, [output]), false, () => {});
    }
    responseSink?.respond(null, true, () => {});
    return null;
  }
}

function placed(arena: Arena, data: Uint8Array): Pick<Tensor, "data" | "block"> {
  const block = arena.allocate(data.length);
  block.bytes.set(data);
  return { data: block.bytes, block };
}

function createResponse(config: ModelConfig, outputs: readonly Tensor[]): InferenceResponse {
  return { modelName: config.name, modelVersion: "1", outputs, parameters: noParameters };
}
