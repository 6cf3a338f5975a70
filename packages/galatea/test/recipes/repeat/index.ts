import { InferenceError } from "@galatea/base";
import {
  machineBytes,
  type Backend,
  type LoadContext,
  type LoadedModel,
  type ModelSource,
} from "@galatea/server/backends";
import { noParameters, type InferenceRequest, type Outcome } from "@galatea/server/inference";
import type { ModelConfig } from "@galatea/server/modelconfig";

/** The backend `repeat`: its models respond with their input, repeated as often as the backend is configured. */
export class RepeatBackend implements Backend {
  readonly name = "repeat";
  readonly #times: number;

  constructor(times: number) {
    this.#times = times;
  }

  complete(_source: ModelSource, config: ModelConfig): Promise<ModelConfig> {
    return Promise.resolve(config);
  }

  estimateBytes(): Promise<null> {
    return Promise.resolve(null);
  }

  load({ servedName, version }: ModelSource, config: ModelConfig, { arena }: LoadContext): Promise<LoadedModel> {
    const [output] = config.outputs;
    if (output === undefined) throw new InferenceError("INVALID_ARG", `model '${servedName}' has no output`);
    const outcomeOf = ({ inputs: [input] }: InferenceRequest): Outcome => {
      if (input === undefined) return new InferenceError("INVALID_ARG", `model '${servedName}' has no input`);
      const block = arena.allocate(input.data.byteLength * this.#times);
      for (let time = 0; time < this.#times; time++) block.bytes.set(input.data, time * input.data.byteLength);
      const shape = [input.shape[0]! * this.#times];
      const outputs = [{ name: output.name, datatype: input.datatype, shape, data: block.bytes, block }];
      return { modelName: servedName, modelVersion: String(version), outputs, parameters: noParameters };
    };
    return Promise.resolve({
      instances: [
        {
          name: `${servedName}_0`,
          executionsMax: 1,
          supervision: null,
          abandonRequest: () => {},
          execute: (batch) =>
            Promise.resolve({
              outcomes: batch.map(outcomeOf),
              computeInputNs: 0,
              computeInferNs: 0,
              computeOutputNs: 0,
            }),
        },
      ],
      memoryBytes: () => Promise.resolve(machineBytes(0)),
      [Symbol.asyncDispose]: () => Promise.resolve(),
    });
  }

  warmUp(): Promise<void> {
    return Promise.resolve();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return Promise.resolve();
  }
}
