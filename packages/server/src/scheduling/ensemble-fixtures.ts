import assert from "node:assert/strict";
import { InferenceError } from "@galatea/base";
import {
  releaseResponse,
  type InferenceRequest,
  type InferenceResponse,
  type Outcome,
  type RequestRecord,
  type StreamedRequest,
} from "../inference/index.ts";
import type { EnsembleStepConfig, InputConfig, ModelConfig, OutputConfig } from "../modelconfig/index.ts";
import { releaseTensors } from "../tensor/index.ts";
import { createEnsembleScheduler } from "./ensemble-scheduler.ts";
import type { Scheduler } from "./scheduler.ts";
import type { StepModels } from "./options.ts";
import {
  CountedMemory,
  ManualClock,
  ensembleModel,
  modelOf,
  responseOf,
  tensorOf,
  twoTicks,
} from "./scheduling-fixtures.ts";

export const options = { clock: new ManualClock(), queueLengthMax: 100, modelVersion: "3" };

export function input(name: string, dims: readonly number[] = [-1]): InputConfig {
  return { name, datatype: "FP32", dims, backendDims: dims, optional: false, allowRaggedBatch: false };
}

export function output(name: string, dims: readonly number[] = [-1]): OutputConfig {
  return { name, datatype: "FP32", dims, backendDims: dims, labelFilename: "" };
}

/** Parses steps. `"a: X>Y,Z"` is a step of model a whose input `X_in` reads tensor X and whose outputs `Y_out`, `Z_out` write Y and Z. */
export function steps(...texts: string[]): EnsembleStepConfig[] {
  return texts.map((text) => {
    const [modelName, from, to] = text.split(/: |>/) as [string, string, string];
    return {
      modelName,
      modelVersion: -1,
      inputMap: new Map(from.split(",").map((name) => [`${name}_in`, name])),
      outputMap: new Map(to.split(",").map((name) => [`${name}_out`, name])),
    };
  });
}

export interface RunningStep {
  readonly request: InferenceRequest;
  end(outputs?: readonly string[]): Promise<void>;
  fail(error: Error): Promise<void>;
}

/** A decoupled step that a test controls. */
export interface RunningStream {
  readonly request: InferenceRequest;
  acknowledgedCount: number;
  respond(isFinal?: boolean, outputs?: readonly string[]): Promise<void>;
  error(error: InferenceError): Promise<void>;
  /** Sends the final flag without a response. */
  final(): Promise<void>;
  /** Ends the execution of the step, as a backend does when `execute` resolves. */
  release(): Promise<void>;
}

const stepTimes = { queuedNs: 100, startedNs: 110, computeInputNs: 1, computeInferNs: 2, computeOutputNs: 3 };

/** Step models whose steps end when the test ends them. Each output has its own block. A step's inputs are released when the step ends. */
export class StubSteps implements StepModels {
  /** Steps that continue after their request was cancelled, like an execution that cannot be stopped. */
  ignoresSignal = false;
  readonly memory = new CountedMemory();
  /** Steps by a unique key that starts with the step's name, because several requests may be at one step. */
  readonly open = new Map<string, RunningStep>();
  /** Controls of decoupled steps. */
  readonly streams = new Map<string, RunningStream>();
  readonly log: string[] = [];

  infer(_step: number, request: InferenceRequest, record: RequestRecord): Promise<InferenceResponse> {
    const { modelName } = request;
    const key = this.#start(modelName);
    const { promise, resolve, reject } = Promise.withResolvers<InferenceResponse>();
    let settled = false;
    const settle = (finish: () => void) => {
      if (settled) return twoTicks();
      settled = true;
      this.open.delete(key);
      releaseTensors(request.inputs);
      finish();
      return twoTicks();
    };
    request.signal?.addEventListener("abort", () => {
      if (!this.ignoresSignal) void settle(() => reject(new InferenceError("CANCELLED", "")));
    });
    this.open.set(key, {
      request,
      end: (outputs = request.requestedOutputs ?? []) =>
        settle(() => {
          const tensors = outputs.map((name) => tensorOf(name, [1, 2], this.memory.block()));
          Object.assign(record, stepTimes);
          resolve(responseOf(modelName, tensors));
        }),
      fail: (error) => settle(() => reject(error)),
    });
    return promise;
  }

  stream(_step: number, request: StreamedRequest, record: RequestRecord): Promise<void> {
    const { modelName } = request;
    const key = this.#start(modelName);
    const { promise, resolve } = Promise.withResolvers<void>();
    let isOver = false;
    const respond = (outcome: Outcome | null, isFinal: boolean, consumed = () => {}) => {
      if (isOver) {
        if (outcome !== null && !(outcome instanceof InferenceError)) releaseResponse(outcome);
        return twoTicks();
      }
      isOver = isFinal;
      request.responseSink.respond(outcome, isFinal, consumed);
      return twoTicks();
    };
    const release = () => {
      if (!this.streams.delete(key)) return twoTicks();
      releaseTensors(request.inputs);
      Object.assign(record, stepTimes);
      resolve();
      return twoTicks();
    };
    request.signal?.addEventListener("abort", () => {
      if (this.ignoresSignal) return;
      void respond(new InferenceError("CANCELLED", ""), true);
      void release();
    });
    const outputs = (names: readonly string[]) => names.map((name) => tensorOf(name, [1, 2], this.memory.block()));
    const stream: RunningStream = {
      request,
      acknowledgedCount: 0,
      respond: (isFinal = false, names = request.requestedOutputs ?? []) =>
        respond(responseOf(modelName, outputs(names)), isFinal, () => stream.acknowledgedCount++),
      error: (error) => respond(error, true),
      final: () => respond(null, true),
      release,
    };
    this.streams.set(key, stream);
    return promise;
  }

  #start(modelName: string): string {
    this.log.push(modelName);
    return `${modelName}#${this.log.length}`;
  }

  streamOf(name: string): RunningStream {
    for (const [key, stream] of this.streams) if (key.startsWith(`${name}#`)) return stream;
    return assert.fail(`step ${name} does not stream; streaming: ${[...this.streams.keys()].join()}`);
  }

  step(name: string): RunningStep {
    for (const [key, step] of this.open) if (key.startsWith(`${name}#`)) return step;
    return assert.fail(`step ${name} does not run; running: ${[...this.open.keys()].join()}`);
  }
}

/** Creates the scheduler of an ensemble whose steps the test ends. A step is decoupled if its model's name is in capitals. */
export function scheduled(
  graph: EnsembleStepConfig[],
  config: Partial<ModelConfig> & { inflightRequestsMax?: number },
): { hand: StubSteps; scheduler: Scheduler } {
  const hand = new StubSteps();
  const models = graph.map((step) =>
    modelOf(step.modelName, {
      inputs: [...step.inputMap.keys()].map((name) => input(name)),
      decoupled: /^[A-Z]/.test(step.modelName),
    }),
  );
  return { hand, scheduler: createEnsembleScheduler(ensembleModel(graph, config), models, hand, options) };
}
