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
import { type BatchOutputs, type MadeRows, outputsFor, tensorOf } from "./made-outputs.ts";
import type { OpenModel } from "./shared-models.ts";
import { type RequestRows, sliceRows } from "./slice-rows.ts";
import type { TreeLanes } from "./tree-lanes.ts";

export interface FilInstanceDependencies {
  readonly name: string;
  readonly modelName: string;
  readonly modelVersion: string;
  readonly opened: OpenModel;
  /** Evaluator with this thread's workspace. */
  readonly evaluator: Evaluator;
  readonly lanes: TreeLanes;
  readonly threadsMax: number;
  readonly runDeadlineMs: number | null;
  readonly arena: Arena;
  readonly clock: Clock;
}

/**
 * A batch with at most this many steps, about 25 microseconds, is evaluated in the serving thread: passing it to another thread takes
 * longer.
 */
const stepsAtOnceMax = 2 ** 15;

/** Creates an instance that evaluates one batch at a time. */
export function filInstance(parts: FilInstanceDependencies): Instance {
  let running: { readonly waiting: Set<InferenceRequest>; readonly controller: AbortController } | null = null;
  return {
    name: parts.name,
    executionsMax: 1,
    supervision: null,
    abandonRequest(request) {
      if (running?.waiting.delete(request) === true && running.waiting.size === 0) {
        running.controller.abort(new InferenceError("CANCELLED", "no client waits for the responses"));
      }
    },
    async execute(batch) {
      running = { waiting: new Set(batch), controller: new AbortController() };
      const { clock } = parts;
      const startNs = clock.monotonicNs();
      let inferNs = startNs;
      let outputNs = startNs;
      const finish = (outcomes: readonly Outcome[]): Execution => ({
        outcomes,
        computeInputNs: inferNs - startNs,
        computeInferNs: outputNs - inferNs,
        computeOutputNs: clock.monotonicNs() - outputNs,
      });
      let outputs: BatchOutputs = { answers: null, contributions: null };
      try {
        const rows = batch.map((request) => rowsOf(parts, request));
        const rowCount = rows.reduce((sum, one) => sum + one.rowCount, 0);
        outputs = outputsFor(parts.opened.model, { batch, rowCount, arena: parts.arena });
        inferNs = outputNs = clock.monotonicNs();
        await evaluate(parts, { rows, rowCount, outputs, signal: running.controller.signal });
        outputNs = clock.monotonicNs();
        return finish(outcomesOf(parts, { rows, outputs }));
      } catch (error) {
        const failure = InferenceError.from(error);
        return finish(batch.map(() => failure));
      } finally {
        outputs.answers?.block?.release();
        outputs.contributions?.block?.release();
        running = null;
      }
    },
  };
}

/** A request's rows, in `data`. */
interface GivenRows {
  readonly rowCount: number;
  readonly tensor: Tensor;
}

function rowsOf({ opened }: FilInstanceDependencies, { inputs: [tensor] }: InferenceRequest): GivenRows {
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
  readonly rows: readonly GivenRows[];
  readonly rowCount: number;
  readonly outputs: BatchOutputs;
  readonly signal: AbortSignal;
}

async function evaluate(
  parts: FilInstanceDependencies,
  { rows, rowCount, outputs, signal }: Evaluation,
): Promise<void> {
  const { opened, lanes, arena } = parts;
  const { featureCount, rowSteps: walkSteps, explained } = opened.model.forest;
  const { answers, contributions } = outputs;
  const rowSteps = walkSteps + (contributions === null ? 0 : (explained?.rowSteps ?? 0));
  if (rowCount * rowSteps <= stepsAtOnceMax) return evaluateNow(parts, rows, outputs);
  const copies: Block[] = [];
  let firstRow = 0;
  const placeOf = (made: MadeRows | null, index: number): number | null =>
    made === null || made.block === null || made.wanted[index] !== true
      ? null
      : made.block.byteOffset + firstRow * made.rowBytes;
  try {
    const placed = rows.map((given, index): RequestRows => {
      const one = {
        rowsAt: given.rowCount === 0 ? 0 : placeInArena(given.tensor, arena, copies),
        rowCount: given.rowCount,
        answersAt: placeOf(answers, index),
        contributionsAt: placeOf(contributions, index),
        rowBytes: 4 * featureCount,
        answerBytes: answers?.rowBytes ?? 0,
        contributionBytes: contributions?.rowBytes ?? 0,
      };
      firstRow += given.rowCount;
      return one;
    });
    const { clock, modelName, runDeadlineMs, threadsMax } = parts;
    const late = () => executionTimeout(`the run of model '${modelName}'`, runDeadlineMs);
    // A slice takes little time, so an aborted run ends when the slices that threads are evaluating have ended.
    using deadline =
      runDeadlineMs === null ? null : openDeadline({ clock, afterMs: runDeadlineMs, signal, createError: late });
    const slices = sliceRows(placed, rowSteps);
    await lanes.run({ opened, arena, slices, threadsMax, signal: deadline?.signal ?? signal });
  } finally {
    for (const copy of copies) copy.release();
  }
}

function evaluateNow({ evaluator }: FilInstanceDependencies, rows: readonly GivenRows[], outputs: BatchOutputs): void {
  let firstRow = 0;
  const viewOf = (made: MadeRows | null, index: number, rowCount: number): Float32Array | null => {
    if (made === null || made.block === null || made.wanted[index] !== true) return null;
    const { buffer, byteOffset } = made.block.bytes;
    return new Float32Array(buffer, byteOffset + firstRow * made.rowBytes, (rowCount * made.rowBytes) / 4);
  };
  for (const [index, { tensor, rowCount }] of rows.entries()) {
    const answers = viewOf(outputs.answers, index, rowCount);
    const contributions = viewOf(outputs.contributions, index, rowCount);
    evaluator.evaluate({ rows: integersOf(tensor.data), rowCount, answers, contributions });
    firstRow += rowCount;
  }
}

/** Views of integers must begin at a multiple of their size; a tensor may not. */
function integersOf(data: Uint8Array): Int32Array {
  const { buffer, byteOffset, byteLength } = data.byteOffset % 4 === 0 ? data : data.slice();
  return new Int32Array(buffer, byteOffset, byteLength / 4);
}

/** Returns the offset of a tensor's data in the arena, copying them there if necessary. */
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

/** Each response owns its rows of each output that it selects. */
function outcomesOf(
  { modelName, modelVersion }: FilInstanceDependencies,
  { rows, outputs }: { readonly rows: readonly GivenRows[]; readonly outputs: BatchOutputs },
): readonly Outcome[] {
  let firstRow = 0;
  const made = [outputs.answers, outputs.contributions].filter((each) => each !== null);
  return rows.map(({ rowCount }, index) => {
    const wanted = made.filter((each) => each.wanted[index] === true);
    const tensors = wanted.map((each) => tensorOf(each, { firstRow, rowCount }));
    firstRow += rowCount;
    return { modelName, modelVersion, outputs: tensors, parameters: noParameters };
  });
}
