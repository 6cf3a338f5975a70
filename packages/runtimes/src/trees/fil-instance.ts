import { type Clock, InferenceError, openDeadline } from "@galatea/base";
import {
  type Execution,
  type InferenceRequest,
  type Instance,
  noParameters,
  type Outcome,
} from "@galatea/server/inference";
import type { Arena, Block, Tensor } from "@galatea/server/tensor";
import { executionTimeout } from "@galatea/server/backends";
import type { Evaluator } from "./evaluation/evaluator.ts";
import { type BatchOutputs, type OutputRows, allocateBatchOutputs, tensorOf } from "./batch-outputs.ts";
import type { OpenModel } from "./shared-models.ts";
import { type RequestRows, sliceRows } from "./slice-rows.ts";
import type { TreeThreads } from "./tree-threads.ts";

export interface FilInstanceDependencies {
  readonly name: string;
  readonly modelName: string;
  readonly modelVersion: string;
  readonly opened: OpenModel;
  /** Evaluator that uses the workspace of the serving thread. */
  readonly evaluator: Evaluator;
  readonly threads: TreeThreads;
  readonly threadsMax: number;
  readonly runDeadlineMs: number | null;
  readonly arena: Arena;
  readonly clock: Clock;
}

/**
 * Maximum cost of a batch that is evaluated in the serving thread, about 25 microseconds. For such a batch, passing it to a worker thread
 * would take longer.
 */
const stepsAtOnceMax = 2 ** 15;

/** Creates an instance that evaluates one batch at a time. */
export function filInstance(dependencies: FilInstanceDependencies): Instance {
  let running: { readonly waiting: Set<InferenceRequest>; readonly controller: AbortController } | null = null;
  return {
    name: dependencies.name,
    executionsMax: 1,
    supervision: null,
    abandonRequest(request) {
      if (running?.waiting.delete(request) === true && running.waiting.size === 0) {
        running.controller.abort(new InferenceError("CANCELLED", "no client waits for the responses"));
      }
    },
    async execute(batch) {
      running = { waiting: new Set(batch), controller: new AbortController() };
      const { clock } = dependencies;
      const startNs = clock.monotonicNs();
      let inferNs = startNs;
      let outputNs = startNs;
      const finish = (outcomes: readonly Outcome[]): Execution => ({
        outcomes,
        computeInputNs: inferNs - startNs,
        computeInferNs: outputNs - inferNs,
        computeOutputNs: clock.monotonicNs() - outputNs,
      });
      let outputs: BatchOutputs = { predictions: null, contributions: null };
      try {
        const rows = batch.map((request) => rowsOf(dependencies, request));
        const rowCount = rows.reduce((sum, one) => sum + one.rowCount, 0);
        outputs = allocateBatchOutputs(dependencies.opened.model, { batch, rowCount, arena: dependencies.arena });
        inferNs = outputNs = clock.monotonicNs();
        await evaluate(dependencies, { rows, rowCount, outputs, signal: running.controller.signal });
        outputNs = clock.monotonicNs();
        return finish(outcomesOf(dependencies, { rows, outputs }));
      } catch (error) {
        const failure = InferenceError.from(error);
        return finish(batch.map(() => failure));
      } finally {
        outputs.predictions?.block?.release();
        outputs.contributions?.block?.release();
        running = null;
      }
    },
  };
}

/** The rows of a request, in the data of its tensor. */
interface InputRows {
  readonly rowCount: number;
  readonly tensor: Tensor;
}

function rowsOf({ opened }: FilInstanceDependencies, { inputs: [tensor] }: InferenceRequest): InputRows {
  const { featureCount } = opened.model.forest;
  const rowCount = tensor?.shape[0] ?? 0;
  if (tensor === undefined || tensor.data.byteLength !== 4 * rowCount * featureCount) {
    throw new InferenceError(
      "INTERNAL",
      `the input has ${tensor?.data.byteLength ?? 0} bytes; ${rowCount} rows of ${featureCount} FP32 features need ${4 * rowCount * featureCount}`,
    );
  }
  return { rowCount, tensor };
}

interface Evaluation {
  readonly rows: readonly InputRows[];
  readonly rowCount: number;
  readonly outputs: BatchOutputs;
  readonly signal: AbortSignal;
}

async function evaluate(
  dependencies: FilInstanceDependencies,
  { rows, rowCount, outputs, signal }: Evaluation,
): Promise<void> {
  const { opened, threads, arena } = dependencies;
  const { featureCount, rowSteps: walkSteps, explained } = opened.model.forest;
  const { predictions, contributions } = outputs;
  const rowSteps = walkSteps + (contributions === null ? 0 : (explained?.rowSteps ?? 0));
  if (rowCount * rowSteps <= stepsAtOnceMax) return evaluateNow(dependencies, rows, outputs);
  const copies: Block[] = [];
  let firstRow = 0;
  const offsetOf = (output: OutputRows | null, index: number): number | null =>
    output === null || output.block === null || output.isRequested[index] !== true
      ? null
      : output.block.byteOffset + firstRow * output.rowBytes;
  try {
    const segments = rows.map((input, index): RequestRows => {
      const request = {
        rowsAt: input.rowCount === 0 ? 0 : placeInArena(input.tensor, arena, copies),
        rowCount: input.rowCount,
        predictionsAt: offsetOf(predictions, index),
        contributionsAt: offsetOf(contributions, index),
        rowBytes: 4 * featureCount,
        predictionBytes: predictions?.rowBytes ?? 0,
        contributionBytes: contributions?.rowBytes ?? 0,
      };
      firstRow += input.rowCount;
      return request;
    });
    const { clock, modelName, runDeadlineMs, threadsMax } = dependencies;
    const late = () => executionTimeout(`the run of model '${modelName}'`, runDeadlineMs);
    // An aborted run ends after the slices that threads are evaluating, each of which takes about a millisecond.
    using deadline =
      runDeadlineMs === null ? null : openDeadline({ clock, afterMs: runDeadlineMs, signal, createError: late });
    const slices = sliceRows(segments, rowSteps);
    await threads.run({ opened, arena, slices, threadsMax, signal: deadline?.signal ?? signal });
  } finally {
    for (const copy of copies) copy.release();
  }
}

function evaluateNow({ evaluator }: FilInstanceDependencies, rows: readonly InputRows[], outputs: BatchOutputs): void {
  let firstRow = 0;
  const viewOf = (output: OutputRows | null, index: number, rowCount: number): Float32Array | null => {
    if (output === null || output.block === null || output.isRequested[index] !== true) return null;
    const { buffer, byteOffset } = output.block.bytes;
    return new Float32Array(buffer, byteOffset + firstRow * output.rowBytes, (rowCount * output.rowBytes) / 4);
  };
  for (const [index, { tensor, rowCount }] of rows.entries()) {
    const predictions = viewOf(outputs.predictions, index, rowCount);
    const contributions = viewOf(outputs.contributions, index, rowCount);
    evaluator.evaluate({ rows: integersOf(tensor.data), rowCount, predictions, contributions });
    firstRow += rowCount;
  }
}

/** Returns the data as integers. Copies data that is not aligned to four bytes, which an Int32Array requires. */
function integersOf(data: Uint8Array): Int32Array {
  const { buffer, byteOffset, byteLength } = data.byteOffset % 4 === 0 ? data : data.slice();
  return new Int32Array(buffer, byteOffset, byteLength / 4);
}

/** Returns the offset of a tensor's data in the arena. Copies data from elsewhere, or unaligned data, to a new block in `copies`. */
function placeInArena({ block, data }: Tensor, arena: Arena, copies: Block[]): number {
  if (block !== null && block.arenaId === arena.id) {
    const at = block.byteOffset + (data.byteOffset - block.bytes.byteOffset);
    if (at % 4 === 0) return at;
  }
  const copy = arena.allocate(data.byteLength);
  copies.push(copy);
  copy.bytes.set(data);
  return copy.byteOffset;
}

/** Returns the results of the requests. Each owns its rows of the outputs that it selects. */
function outcomesOf(
  { modelName, modelVersion }: FilInstanceDependencies,
  { rows, outputs }: { readonly rows: readonly InputRows[]; readonly outputs: BatchOutputs },
): readonly Outcome[] {
  let firstRow = 0;
  const outputRows = [outputs.predictions, outputs.contributions].filter((each) => each !== null);
  return rows.map(({ rowCount }, index) => {
    const requested = outputRows.filter((each) => each.isRequested[index] === true);
    const tensors = requested.map((each) => tensorOf(each, { firstRow, rowCount }));
    firstRow += rowCount;
    return { modelName, modelVersion, outputs: tensors, parameters: noParameters };
  });
}
