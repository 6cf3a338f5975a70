import { type Clock, InferenceError } from "@galatea/base";
import type { Execution, InferenceRequest, Instance, Outcome } from "../../inference/index.ts";
import { noParameters } from "../../inference/index.ts";
import { onnxStringType, type RunResult } from "../../native/index.ts";
import { type Arena, type Block, datatypes, elementCount, releaseTensors, type Tensor } from "../../tensor/index.ts";
import { datatypeOfElements } from "./element-types.ts";
import { predictOutputShape } from "./predict-shapes.ts";
import { type InputSlot, joinInputs } from "./join-inputs.ts";
import type { LeasedSession } from "./leased-session.ts";
import type { ModelInput, ModelOutput } from "./model-run.ts";
import { splitOutput } from "./split-output.ts";

export interface InstanceDependencies {
  readonly name: string;
  readonly modelName: string;
  readonly modelVersion: string;
  readonly batches: boolean;
  readonly session: LeasedSession;
  readonly arena: Arena;
  readonly clock: Clock;
  readonly inputs: readonly InputSlot[];
  /** Configured outputs in their order, each with its index in the session. */
  readonly outputs: readonly { readonly name: string; readonly index: number }[];
}

/** The requests of the running batch that are not cancelled, and the callback that ends the run when no such request is left. */
interface Running {
  readonly waiting: Set<InferenceRequest>;
  readonly controller: AbortController;
}

/** Creates an instance. It runs one batch at a time on a session that other instances share. */
export function onnxRuntimeInstance(dependencies: InstanceDependencies): Instance {
  let running: Running | null = null;
  return {
    name: dependencies.name,
    executionsMax: 1,
    supervision: null,
    abandonRequest(request) {
      if (running?.waiting.delete(request) && running.waiting.size === 0) running.controller.abort();
    },
    async execute(batch) {
      running = { waiting: new Set(batch), controller: new AbortController() };
      const { signal } = running.controller;
      const startNs = dependencies.clock.monotonicNs();
      let inferNs = startNs;
      let outputNs = startNs;
      const finish = (outcomes: readonly Outcome[]): Execution => ({
        outcomes,
        computeInputNs: inferNs - startNs,
        computeInferNs: outputNs - inferNs,
        computeOutputNs: dependencies.clock.monotonicNs() - outputNs,
      });
      try {
        const joined = joinInputs(batch, dependencies.inputs, dependencies.arena);
        let created: AllocatedOutputs;
        try {
          inferNs = outputNs = dependencies.clock.monotonicNs();
          created = await run(dependencies, {
            inputs: joined.inputs,
            requestedOutputs: requestedModelOutputs(dependencies, batch),
            signal,
          });
          outputNs = dependencies.clock.monotonicNs();
        } finally {
          for (const block of joined.blocks) block.release();
        }
        return finish(responsesOf(dependencies, { batch, rowCounts: joined.rowCounts, made: created }));
      } catch (error) {
        const failure = InferenceError.from(error);
        return finish(batch.map(() => failure));
      } finally {
        running = null;
      }
    },
  };
}

type RequestedModelOutput = InstanceDependencies["outputs"][number];

/** Returns the outputs that at least one request of the batch selects. */
function requestedModelOutputs(
  dependencies: InstanceDependencies,
  batch: readonly InferenceRequest[],
): readonly RequestedModelOutput[] {
  if (batch.some((request) => request.requestedOutputs === null)) return dependencies.outputs;
  return dependencies.outputs.filter(({ name }) => batch.some((request) => request.requestedOutputs?.includes(name)));
}

/** The outputs of a run. The receiver releases the blocks. */
interface AllocatedOutputs {
  readonly results: readonly { readonly name: string; readonly result: RunResult; readonly block: Block | null }[];
}

interface RunOptions {
  readonly inputs: readonly ModelInput[];
  readonly requestedOutputs: readonly RequestedModelOutput[];
  readonly signal: AbortSignal | null;
}

async function run(dependencies: InstanceDependencies, options: RunOptions): Promise<AllocatedOutputs> {
  const { session, arena } = dependencies;
  const { unforeseeable } = session;
  const { inputs, requestedOutputs, signal } = options;
  const blocks = new Map<number, Block>();
  const allocate = (index: number, byteLength: number): Block => {
    const block = arena.allocate(byteLength);
    blocks.set(index, block);
    return block;
  };
  let foreseen = false;
  try {
    const outputs = requestedOutputs.map(({ index }): ModelOutput => {
      const value = session.outputs[index];
      if (value === undefined || value.elementType === onnxStringType || unforeseeable.has(index)) {
        return { index, target: null };
      }
      const shape = predictOutputShape(value, inputs, session.inputs);
      const datatype = datatypeOfElements(value.elementType);
      if (shape === null || datatype === undefined) return { index, target: null };
      foreseen = true;
      const byteLength = elementCount(shape) * datatypes[datatype].byteSize;
      return { index, target: { shape, byteLength, block: byteLength === 0 ? null : allocate(index, byteLength) } };
    });
    const results = await session.run({ arena, run: { inputs, outputs, allocate }, signal });
    return {
      results: requestedOutputs.map(({ name, index }, position) => ({
        name,
        result: results[position] as RunResult,
        block: blocks.get(index) ?? null,
      })),
    };
  } catch (error) {
    for (const block of blocks.values()) block.release();
    if (!foreseen || !isShapeSurprise(error)) throw error;
    // The actual sizes differ from the declared ones. In later runs, the library allocates these outputs.
    for (const { index } of requestedOutputs) unforeseeable.add(index);
    return await run(dependencies, options);
  }
}

/** ONNX Runtime's error texts, of newer and older versions, for an output that does not fit its preallocated memory. */
const shapeSurprises = ["OrtValue shape verification failed", "The output OrtValue provided for output"];

function isShapeSurprise(error: unknown): boolean {
  return error instanceof InferenceError && shapeSurprises.some((words) => error.message.includes(words));
}

/** Returns one outcome for each request. Every response owns a reference to each block that it uses. */
function responsesOf(
  dependencies: InstanceDependencies,
  options: { batch: readonly InferenceRequest[]; rowCounts: readonly number[]; made: AllocatedOutputs },
): readonly Outcome[] {
  const { batch, rowCounts, made } = options;
  const outputs: Tensor[][] = batch.map(() => []);
  try {
    for (const { name, result, block } of made.results) {
      const chunks = splitOutput(
        { name, result, block },
        dependencies.batches ? rowCounts : null,
        batch.map((request) => request.requestedOutputs?.includes(name) ?? true),
      );
      for (const [index, chunk] of chunks.entries()) {
        if (chunk !== null) (outputs[index] as Tensor[]).push(chunk);
      }
    }
  } catch (error) {
    for (const tensors of outputs) releaseTensors(tensors);
    throw error;
  } finally {
    for (const { block } of made.results) block?.release();
  }
  return outputs.map((tensors) => ({
    modelName: dependencies.modelName,
    modelVersion: dependencies.modelVersion,
    outputs: tensors,
    parameters: noParameters,
  }));
}
